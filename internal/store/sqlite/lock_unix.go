//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sqlite

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockWait is how long a lock may still be held that is being given up: by a process
// that is about to end, or by one that this process has forked and that has not yet
// begun its own program.
const lockWait = time.Second

// takeLock locks a file until unlock is called or the process ends.
func takeLock(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(10 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR && (err != syscall.EWOULDBLOCK || time.Now().After(end)) {
			break
		}
	}
	if err == nil {
		return f.Close, nil // closing drops the lock
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errInUse
	}
	return nil, errors.Join(err, f.Close())
}

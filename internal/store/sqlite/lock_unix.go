//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// takeLock locks a file until unlock is called or the process ends.
func takeLock(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
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

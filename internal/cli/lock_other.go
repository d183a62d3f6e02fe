//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package cli

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errSharing is ERROR_SHARING_VIOLATION of Windows: the file is open without
// leave for others, which is how a host locks it there.
const errSharing = syscall.Errno(32)

// locked reports whether a process holds the lock on a file.
func locked(name string) (bool, error) {
	f, err := os.Open(name)
	switch {
	case err == nil:
		return false, f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, errSharing):
		return true, nil
	}
	return false, err
}

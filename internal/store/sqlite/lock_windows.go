package sqlite

import (
	"os"
	"syscall"
)

// errSharing is ERROR_SHARING_VIOLATION.
const errSharing = syscall.Errno(32)

// takeLock opens a file that nobody else may open meanwhile, until unlock is
// called or the process ends.
func takeLock(name string) (unlock func() error, err error) {
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == errSharing {
		return nil, errInUse
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), name).Close, nil
}

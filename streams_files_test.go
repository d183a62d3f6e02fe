//go:build unix

package fermata_test

import (
	"syscall"
	"testing"
)

// needFiles skips a test that needs more open files than it can have.
func needFiles(t testing.TB, n uint64) {
	t.Helper()
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err == nil && uint64(lim.Cur) < n {
		t.Skipf("the limit of open files is %d, this test needs %d", lim.Cur, n)
	}
}

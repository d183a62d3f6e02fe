//go:build !linux && !darwin && !freebsd && !windows

package cli

// freeSpace is not known on this system.
func freeSpace(string) (uint64, bool) { return 0, false }

//go:build linux || darwin || freebsd

package cli

import "syscall"

// freeSpace is how much this user may still write below a folder.
func freeSpace(dir string) (uint64, bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return 0, false
	}
	return uint64(st.Bavail) * uint64(st.Bsize), true //nolint:unconvert // the types differ between systems
}

//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ownCPU is the processor time of this process: what the load costs.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

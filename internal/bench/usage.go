package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of the times in /proc/PID/stat on every Linux there is.
const tick = 10 * time.Millisecond

// proc reads a file about a process as fields. There are none on a system
// without /proc: what would come of them is then shown as nothing.
func proc(pid int, name string) ([][]byte, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil && runtime.GOOS != "linux" {
		return nil, nil
	}
	// A name in brackets, which may hold spaces, is left out.
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]), err
}

// CPU is the processor time a process has used, in user and system mode.
func CPU(pid int) (time.Duration, error) {
	f, err := proc(pid, "stat")
	if err != nil || len(f) < 13 {
		return 0, err
	}
	user, err := strconv.ParseInt(string(f[11]), 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(string(f[12]), 10, 64)
	return time.Duration(user+system) * tick, err
}

// RSS is the memory a process has resident, in bytes.
func RSS(pid int) (int64, error) {
	f, err := proc(pid, "statm")
	if err != nil || len(f) < 2 {
		return 0, err
	}
	pages, err := strconv.ParseInt(string(f[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// TreeCPU is the processor time of a process and of its children, those that have
// ended too.
func TreeCPU(pid int) (total time.Duration, err error) {
	f, err := proc(pid, "stat")
	if err != nil || len(f) < 15 {
		return 0, err
	}
	for _, field := range f[11:15] { // its own, in user and system mode, and its ended children's
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * tick
	}
	living, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	for _, field := range bytes.Fields(living) {
		child, err := strconv.Atoi(string(field))
		if err != nil {
			return 0, err
		}
		one, err := CPU(child)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile
		}
		if err != nil {
			return 0, err
		}
		total += one
	}
	return total, nil
}

package kill

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDiskFailsForAWhile: while nothing can be written, nothing is acknowledged;
// once there is room again, every run goes on by itself.
func TestDiskFailsForAWhile(t *testing.T) {
	flags := egress(t)
	if flags == nil {
		t.Skip("serve has no flag --allow-egress, so nothing can be called")
	}
	r := newReceiver(t)
	h := newHost(t, flags...)
	h.start()
	h.register(flow("effect", []any{post("call", r.http.URL+"?refuse=3"), noop("z")}, chain("call", "z")))
	h.register(flow("delay", []any{step("d", "core.delay", object{"delayMs": 30}), noop("z")}, chain("d", "z")))
	var ids []string
	for i := range 20 {
		id, err := h.create([]string{"effect", "delay"}[i%2], fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	h.writable(4096) // below the size of every file there is
	time.Sleep(300 * time.Millisecond)
	if r, err := h.call("POST", "/runs", object{"workflowId": "delay"}); err == nil && r.status == 201 {
		t.Errorf("a run was acknowledged that cannot have been written: %v", r)
	}
	h.writable(unix.RLIM_INFINITY)
	for _, id := range ids {
		if s := h.await(id); s.Status != "completed" {
			t.Errorf("run %s of %s is %s although the disk works again", id, s.WorkflowID, s.Status)
		}
	}
	if err := h.down().terminate(); err != nil { // its complaints about the disk are right
		t.Error(err)
	}
}

// writable bounds the size of the files the host may write.
func (h *host) writable(size uint64) {
	h.t.Helper()
	lim := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(h.live.cmd.Process.Pid, unix.RLIMIT_FSIZE, &lim, nil); err != nil {
		h.t.Skipf("the size of a process's files cannot be bounded here: %v", err)
	}
}

package fermata_test

import "testing"

// A host that is about to stop says so to whoever asks whether it is ready, and goes on
// with everything else.
func TestWireLeave(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.do("GET", "/host/fermata/ready", nil).want(t, 200)
	s.host.Leave()
	s.do("GET", "/host/fermata/ready", nil).refused(t, 503, "service_unavailable")
	s.do("GET", "/host/fermata/live", nil).want(t, 200)
	s.register(gate("gate"))
	s.do("POST", "/runs", `{"workflowId":"gate"}`).want(t, 201)
}

package kill

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stop ends the process with SIGTERM. The error says how it ended other than
// with exit code 0.
func (h *host) stop() error {
	p := h.down()
	if p == nil {
		return nil
	}
	err := p.terminate()
	h.client.CloseIdleConnections()
	for _, line := range p.out.complaints() {
		h.t.Errorf("the host complained: %s", line)
	}
	return err
}

// TestStopsWithOpenStreams: SIGTERM ends the host although 200 subscribers wait
// for a run that goes nowhere, and ends their streams as it should.
func TestStopsWithOpenStreams(t *testing.T) {
	h := newHost(t)
	h.start()
	h.register(flow("gate", []any{step("ok", "core.approvalGate", object{"title": "Go on?"})}, nil))
	id, err := h.create("gate", "t")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var cut atomic.Int64
	for range 200 {
		body := openStream(t, h, id)
		wg.Go(func() {
			defer body.Body.Close()
			in := bufio.NewScanner(body.Body)
			for in.Scan() {
			}
			if in.Err() != nil {
				cut.Add(1)
			}
		})
	}
	if err := h.stop(); err != nil {
		t.Fatalf("SIGTERM with open streams: %v", err)
	}
	wg.Wait()
	if n := cut.Load(); n > 0 {
		t.Errorf("%d of 200 streams were cut off instead of ended", n)
	}
	h.start()
	if n := len(h.inbox()); n != 1 {
		t.Errorf("%d open interrupts after the restart", n)
	}
}

// openStream opens a stream and reads its first frame.
func openStream(t *testing.T, h *host, id string) *http.Response {
	t.Helper()
	req, err := request("GET", h.url+"/runs/"+segment(id)+"/events?streamMode=debug", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 {
		t.Fatalf("stream: %d", res.StatusCode)
	}
	return res
}

// TestStopsUnderLoad: whoever is at work while the host stops gets an outcome
// that can be relied on: done, refused for now, or no answer at all.
func TestStopsUnderLoad(t *testing.T) {
	h := newHost(t)
	h.start()
	h.register(flow("gate", []any{noop("a"), step("ok", "core.approvalGate", object{"title": "Go on?"})}, chain("a", "ok")))
	var mu sync.Mutex
	done := map[string]bool{} // run id → its answer was acknowledged
	var rounds atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				id, answered, ok := gateOnce(h)
				if id != "" {
					mu.Lock()
					done[id] = answered
					mu.Unlock()
					rounds.Add(1)
				}
				if !ok {
					return
				}
			}
		})
	}
	for deadline := time.Now().Add(patience); rounds.Load() < 100 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	h.mu.Lock()
	p := h.live
	h.mu.Unlock()
	err := p.terminate()
	wg.Wait()
	h.down()
	if err != nil {
		t.Fatalf("SIGTERM under load: %v", err)
	}
	for _, line := range p.out.complaints() {
		t.Errorf("the host complained: %s", line)
	}
	h.start()
	for id, answered := range done {
		if s := h.snapshot(id); answered && s.Status != "completed" {
			t.Errorf("run %s is %s, and its answer was acknowledged", id, s.Status)
		}
	}
	t.Logf("%d runs acknowledged", len(done))
}

// gateOnce starts a run and answers its gate; ok is false once the host is
// going or gone.
func gateOnce(h *host) (id string, answered, ok bool) {
	r, err := h.call("POST", "/runs", object{"workflowId": "gate"})
	if err != nil || going(h, r) {
		return "", false, false
	}
	var made struct{ RunID string }
	if r.status != 201 || json.Unmarshal(r.body, &made) != nil {
		h.t.Errorf("create: %v", r)
		return "", false, false
	}
	r, err = h.call("POST", "/runs/"+segment(made.RunID)+"/interrupts/ok", object{"resumeValue": object{"action": "accept"}})
	if err != nil || going(h, r) {
		return made.RunID, false, false
	}
	if r.status != 200 {
		h.t.Errorf("answer: %v", r)
	}
	return made.RunID, r.status == 200, true
}

// going reports whether the host refused something because it stops.
func going(h *host, r reply) bool {
	if r.status == 503 && !strings.Contains(string(r.body), `"service_unavailable"`) {
		h.t.Errorf("a refusal without its code: %v", r)
	}
	return r.status == 503
}

package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/schema"
)

const key = "examples-examples-examples-examples"

// host is an embedded host on loopback with a database of its own.
type host struct {
	t    *testing.T
	dir  string
	host *fermata.Host
	http *httptest.Server
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir()}
	h.start()
	t.Cleanup(h.stop)
	return h
}

func (h *host) start() {
	h.t.Helper()
	f, err := fermata.Open(context.Background(), fermata.Config{
		DataDir: h.dir, BootstrapKey: key,
		AllowEgress: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // where the stand-in services are
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := f.Start(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	h.host, h.http = f, httptest.NewServer(f.Handler())
}

func (h *host) stop() {
	if h.host == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.host.Stop(ctx); err != nil {
		h.t.Error(err)
	}
	h.http.CloseClientConnections()
	h.http.Close()
	h.host = nil
}

func (h *host) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

// call makes one request and returns the answer, whose status must be one of
// those wanted.
func (h *host) call(method, path string, body []byte, want ...int) []byte {
	h.t.Helper()
	req, err := http.NewRequest(method, h.http.URL+path, bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, status := range want {
		if res.StatusCode == status {
			return b
		}
	}
	h.t.Fatalf("%s %s: status %d, want %v: %s", method, path, res.StatusCode, want, b)
	return nil
}

// apply registers a workflow file, with the members of some nodes changed: most
// often waits, which no test should sit out. changes goes by node id.
func (h *host) apply(file string, changes map[string]change) {
	h.t.Helper()
	b := definition(h.t, file)
	if len(changes) > 0 {
		var def map[string]any
		decode(h.t, b, &def)
		changes = maps.Clone(changes) // scenarios share them
		for _, n := range def["nodes"].([]any) {
			n := n.(map[string]any)
			changes[n["id"].(string)].to(n)
			delete(changes, n["id"].(string))
		}
		for id := range changes {
			h.t.Fatalf("%s has no node %s to change", file, id)
		}
		b = encode(h.t, def)
	}
	h.call("PUT", "/host/fermata/workflows/"+strings.TrimSuffix(file, ".json"), b, 200, 201)
}

// change is what a test changes in a node.
type change struct{ settings, config map[string]any }

func (c change) to(n map[string]any) {
	for member, values := range map[string]map[string]any{"settings": c.settings, "config": c.config} {
		for k, v := range values {
			m, _ := n[member].(map[string]any)
			if m == nil {
				m = map[string]any{}
				n[member] = m
			}
			m[k] = v
		}
	}
}

func definition(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
}

func segment(run string) string { return strings.ReplaceAll(run, "/", "~2F") }

// run starts a run.
func (h *host) run(workflow string, inputs map[string]any) string {
	h.t.Helper()
	var created struct{ RunID string }
	decode(h.t, h.call("POST", "/runs", encode(h.t, map[string]any{"workflowId": workflow, "inputs": inputs}), 201), &created)
	return created.RunID
}

type snapshot struct {
	Status     string
	Variables  map[string]any
	Channels   map[string]any
	Error      *failure
	NodeStates map[string]struct {
		Status    string
		Visit     int
		Attempt   int
		Error     *failure
		Interrupt *struct{ Data map[string]any }
		Children  []struct{ RunID string }
	}
}

type failure struct {
	Code    string
	Message string
	Details map[string]any
}

func (h *host) snapshot(run string) snapshot {
	h.t.Helper()
	var s snapshot
	decode(h.t, h.call("GET", "/runs/"+segment(run), nil, 200), &s)
	return s
}

// until waits for a run to come to a point.
func (h *host) until(run, what string, reached func(s snapshot) bool) snapshot {
	h.t.Helper()
	var s snapshot
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(3 * time.Millisecond) {
		if s = h.snapshot(run); reached(s) {
			return s
		}
	}
	h.t.Fatalf("the run never came to: %s\nit is %s, error %+v\nevents %v", what, s.Status, s.Error, h.types(run))
	return s
}

func (h *host) ended(run string) snapshot {
	h.t.Helper()
	return h.until(run, "its end", func(s snapshot) bool {
		return s.Status == "completed" || s.Status == "failed" || s.Status == "cancelled"
	})
}

// answer waits until a node asks, and answers it.
func (h *host) answer(run, node string, value any) {
	h.t.Helper()
	h.until(run, node+" asks", func(s snapshot) bool { return s.NodeStates[node].Interrupt != nil })
	h.signal(run, node, value, 200)
}

// signal answers a node at once, whether it asks already or not.
func (h *host) signal(run, node string, value any, status int) {
	h.t.Helper()
	h.call("POST", "/runs/"+segment(run)+"/interrupts/"+node, encode(h.t, map[string]any{"resumeValue": value}), status)
}

type logged struct {
	Sequence int64
	Type     string
	NodeID   string
	Payload  json.RawMessage
}

// events reads the log of a run. Every payload in it must satisfy the schema of
// its type, and the sequence must have no gap.
func (h *host) events(run string) []logged {
	h.t.Helper()
	var page struct{ Events []logged }
	decode(h.t, h.call("GET", "/runs/"+segment(run)+"/events/poll?timeout=1", nil, 200), &page)
	for i, e := range page.Events {
		if e.Sequence != int64(i) {
			h.t.Errorf("event %d has sequence %d", i, e.Sequence)
		}
		if err := schema.ValidatePayload(e.Type, e.Payload); err != nil {
			h.t.Errorf("event %d, %s: %v\n%s", i, e.Type, err, e.Payload)
		}
	}
	return page.Events
}

func (h *host) types(run string) []string {
	h.t.Helper()
	var out []string
	for _, e := range h.events(run) {
		out = append(out, e.Type)
	}
	return out
}

// outputs are what a completed run came to.
func (h *host) outputs(run string) map[string]any {
	h.t.Helper()
	events := h.events(run)
	last := events[len(events)-1]
	if last.Type != "run.completed" {
		h.t.Fatalf("the log ends with %s", last.Type)
	}
	var p struct{ Outputs map[string]any }
	decode(h.t, last.Payload, &p)
	return p.Outputs
}

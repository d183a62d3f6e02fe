package fermata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/ids"
)

const testKey = "test-key-test-key-test-key-test-key"

// server is a host under test, over real HTTP on loopback.
type server struct {
	t    testing.TB
	dir  string
	cfg  fermata.Config
	host *fermata.Host
	http *httptest.Server
}

func start(t testing.TB, change ...func(*fermata.Config)) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.cfg = fermata.Config{DataDir: s.dir, BootstrapKey: testKey}
	for _, c := range change {
		c(&s.cfg)
	}
	backend(t, &s.cfg)
	s.up()
	t.Cleanup(s.down)
	return s
}

func (s *server) up() {
	s.t.Helper()
	h, err := fermata.Open(context.Background(), s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := h.Start(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	s.host, s.http = h, httptest.NewServer(h.Handler())
}

func (s *server) down() {
	if s.host == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.host.Stop(ctx); err != nil {
		s.t.Error(err)
	}
	s.http.CloseClientConnections()
	s.http.Close()
	s.host = nil
}

// restart stops the host in order and starts it again on the same data.
func (s *server) restart() {
	s.down()
	s.up()
}

type answer struct {
	status int
	header http.Header
	body   []byte
	json   map[string]any
}

func (s *server) do(method, path string, body any, header ...string) answer {
	s.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	default:
		enc, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		r = bytes.NewReader(enc)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*hang)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.http.URL+path, r)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			req.Header.Del(header[i])
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: b}
	if len(b) > 0 && strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		var large *json.UnmarshalTypeError // a number no float64 holds
		if err := json.Unmarshal(b, &a.json); err != nil && !errors.As(err, &large) {
			s.t.Fatalf("%s %s: not JSON: %v\n%s", method, path, err, b)
		}
	}
	s.conforms(method, path, a)
	return a
}

func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// refused wants the closed envelope with a code.
func (a answer) refused(t testing.TB, status int, code string) answer {
	t.Helper()
	a.want(t, status)
	if a.json["error"] != code || a.json["message"] == "" {
		t.Fatalf("want code %s: %s", code, a.body)
	}
	for k := range a.json {
		if k != "error" && k != "message" && k != "details" {
			t.Fatalf("the envelope is not closed: %s", a.body)
		}
	}
	return a
}

func (a answer) str(key string) string { s, _ := a.json[key].(string); return s }

// flow makes a definition of nodes and edges.
func flow(id string, nodes []any, edges []any, extra ...map[string]any) map[string]any {
	d := map[string]any{
		"id": id, "name": id, "version": "1.0", "nodes": nodes, "edges": edges, "triggers": []any{},
		"variables": []any{}, "metadata": map[string]any{}, "settings": map[string]any{},
	}
	for _, x := range extra {
		for k, v := range x {
			d[k] = v
		}
	}
	return d
}

func step(id, typeID string, config map[string]any, extra ...map[string]any) map[string]any {
	if config == nil {
		config = map[string]any{}
	}
	n := map[string]any{
		"id": id, "typeId": typeID, "name": id, "position": map[string]any{"x": 0, "y": 0},
		"config": config, "inputs": map[string]any{},
	}
	for _, x := range extra {
		for k, v := range x {
			n[k] = v
		}
	}
	return n
}

func edge(from, to string, extra ...map[string]any) map[string]any {
	e := map[string]any{"id": from + "-" + to, "sourceNodeId": from, "targetNodeId": to}
	for _, x := range extra {
		for k, v := range x {
			e[k] = v
		}
	}
	return e
}

func (s *server) register(def map[string]any) {
	s.t.Helper()
	a := s.do("PUT", "/host/fermata/workflows/"+def["id"].(string), def)
	if a.status != 200 && a.status != 201 {
		s.t.Fatalf("register %s: %d %s", def["id"], a.status, a.body)
	}
}

func (s *server) run(workflow string, extra ...map[string]any) string {
	s.t.Helper()
	body := map[string]any{"workflowId": workflow}
	for _, x := range extra {
		for k, v := range x {
			body[k] = v
		}
	}
	return s.do("POST", "/runs", body).want(s.t, 201).str("runId")
}

// seg is a run id as one path segment.
func seg(id string) string { return strings.ReplaceAll(id, "/", "~2F") }

func (s *server) snapshot(id string) map[string]any {
	s.t.Helper()
	return s.do("GET", "/runs/"+seg(id), nil).want(s.t, 200).json
}

// await waits, within a bound, until a run is in one of the given statuses.
func (s *server) await(id string, statuses ...string) map[string]any {
	s.t.Helper()
	var last map[string]any
	for range 2000 {
		last = s.snapshot(id)
		for _, st := range statuses {
			if last["status"] == st {
				return last
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	b, _ := json.MarshalIndent(last, "", " ")
	s.t.Fatalf("run %s did not become %v: %s\nevents: %v", id, statuses, b, s.types(id))
	return nil
}

func (s *server) events(id string) []map[string]any {
	s.t.Helper()
	a := s.do("GET", "/runs/"+seg(id)+"/events/poll?timeout=1", nil).want(s.t, 200)
	var out []map[string]any
	for _, e := range a.json["events"].([]any) {
		out = append(out, e.(map[string]any))
	}
	return out
}

func (s *server) types(id string) []string {
	s.t.Helper()
	var out []string
	for _, e := range s.events(id) {
		out = append(out, e["type"].(string))
	}
	return out
}

func (s *server) answer(id, node string, value any) answer {
	s.t.Helper()
	return s.do("POST", "/runs/"+seg(id)+"/interrupts/"+node, map[string]any{"resumeValue": value})
}

func cutID(id string) (tenant, opaque string, ok bool) { return strings.Cut(id, "/") }

func runID(tenant, opaque string) ids.Run { return ids.Run{Tenant: tenant, Opaque: opaque} }

package fermata_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// bundleDoc is what tests look at of a debug bundle of either major.
type bundleDoc struct {
	BundleVersion string `json:"bundleVersion"`
	Host          struct{ Name, Version string }
	Run           struct {
		RunID, WorkflowID, Status     string
		EndedAt                       *string
		Error                         map[string]any
		Inputs, Variables, NodeStates map[string]any
	}
	Events           []bundledEvent
	Spans            []any
	Metrics          struct{ NodeCount, EventCount int }
	RedactionApplied bool
	RedactionMode    string
	Truncated        bool
	TruncatedReason  string
}

type bundledEvent struct {
	Sequence                int64
	Seq                     *int64
	Type, NodeID, Timestamp string
	Data, Payload           json.RawMessage
}

func (s *server) bundle(id, query string) (bundleDoc, []byte) {
	s.t.Helper()
	a := s.do("GET", "/host/fermata/runs/"+seg(id)+"/debug-bundle"+query, nil).want(s.t, 200)
	return s.readBundle(a)
}

func (s *server) readBundle(a answer) (bundleDoc, []byte) {
	s.t.Helper()
	var b bundleDoc
	if err := json.Unmarshal(a.body, &b); err != nil {
		s.t.Fatal(err)
	}
	if got := a.header.Get("Cache-Control"); got != "no-store" {
		s.t.Errorf("Cache-Control %q", got)
	}
	if b.Metrics.EventCount != len(b.Events) || b.Truncated != (b.TruncatedReason != "") || b.RedactionApplied && b.RedactionMode == "passthrough" {
		s.t.Errorf("a bundle that contradicts itself: %+v", b)
	}
	return b, a.body
}

// validSeed holds a document against a schema of the seed, where that is beside the
// module.
func validSeed(t testing.TB, name string, doc []byte) {
	t.Helper()
	folder := filepath.Join("..", "shared", "protocol", "seed", "spec-artifacts-2.0.0-rc.0", "schemas", "v2")
	b, err := os.ReadFile(filepath.Join(folder, name+".schema.json"))
	if err != nil {
		return
	}
	c := jsonschema.NewCompiler()
	for file, text := range map[string]string{
		name + ".schema.json": string(b),
		// The seed refers to ids of a file that it does not hold.
		"ids.schema.json": `{"$defs":{"runId":{"type":"string"},"workflowId":{"type":"string"},"spanId":{"type":"string"}}}`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("https://openwop.dev/spec/v2/"+file, v); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("https://openwop.dev/spec/v2/" + name + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("not a %s of the seed: %v\n%.1000s", name, err, doc)
	}
}

// A bundle holds the run and the whole log as poll shows it.
func TestWireBundle(t *testing.T) {
	t.Parallel()
	s, id := talker(t)
	b, raw := s.bundle(id, "")
	validSeed(t, "debug-bundle", raw)
	if b.BundleVersion != "2" || b.Host.Name != "fermata" || b.Run.RunID != id || b.Run.Status != "completed" || b.Run.EndedAt == nil || b.Truncated || !b.RedactionApplied || b.RedactionMode != "mask" {
		t.Errorf("%.600s", raw)
	}
	log := s.docs(id)
	nodes := map[string]bool{}
	for i, doc := range log {
		e := validEvent(t, doc)
		if i >= len(b.Events) {
			t.Fatalf("%d events of %d", len(b.Events), len(log))
		}
		got := b.Events[i]
		if got.Sequence != e.Sequence || got.Type != e.Type || got.NodeID != e.NodeID || string(got.Data) != string(e.Payload) {
			t.Errorf("event %d is %+v, want %s", i, got, doc)
		}
		if e.NodeID != "" {
			nodes[e.NodeID] = true
		}
	}
	if len(b.Events) != len(log) || b.Metrics.NodeCount != len(nodes) || len(b.Run.NodeStates) != 4 || b.Spans == nil {
		t.Errorf("%d events, %d nodes, %d states", len(b.Events), b.Metrics.NodeCount, len(b.Run.NodeStates))
	}
	for n := range len(log) + 2 {
		b, raw := s.bundle(id, fmt.Sprintf("?maxEvents=%d", n))
		if len(b.Events) != min(n, len(log)) || b.Truncated != (n < len(log)) || b.Truncated && b.TruncatedReason != "events_truncated_to_size_cap" {
			t.Errorf("maxEvents=%d: %d events, truncated %v for %q", n, len(b.Events), b.Truncated, b.TruncatedReason)
		}
		validSeed(t, "debug-bundle", raw)
	}
	for _, query := range []string{"maxEvents=-1", "maxEvents=x", "maxEvents=", "maxEvents=1&maxEvents=2", "maxEvents=%2B1", "max=1"} {
		s.do("GET", "/host/fermata/runs/"+seg(id)+"/debug-bundle?"+query, nil).refused(t, 400, "validation_error")
	}
	s.do("GET", "/host/fermata/runs/default~2F0123456789abcdef/debug-bundle", nil).refused(t, 404, "not_found")
}

// The status of a bundle has seven words.
func TestWireBundleStatus(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("asks"))
	s.register(flow("waits", []any{step("w", "core.interrupt", map[string]any{"kind": "external-event", "data": map[string]any{"eventType": "x", "correlation": map[string]any{}}})}, []any{}))
	s.register(flow("fails", []any{step("f", "core.fail", map[string]any{"code": "internal_error", "message": "no"})}, []any{}))
	s.register(flow("clears", []any{step("c", "core.clarificationGate", map[string]any{"questions": []any{map[string]any{"id": "q", "question": "?"}}})}, []any{}))
	for _, c := range []struct{ workflow, status, want string }{
		{"asks", "waiting-approval", "waiting-approval"}, {"clears", "waiting-input", "waiting-clarification"},
		{"waits", "waiting-external", "waiting-approval"}, {"fails", "failed", "failed"},
	} {
		id := s.run(c.workflow)
		s.await(id, c.status)
		b, raw := s.bundle(id, "")
		validSeed(t, "debug-bundle", raw)
		if b.Run.Status != c.want || (b.Run.EndedAt != nil) != (c.status == "failed") || (b.Run.Error != nil) != (c.status == "failed") {
			t.Errorf("%s: %.500s", c.workflow, raw)
		}
		if c.status != "failed" {
			s.do("POST", "/runs/"+seg(id)+":pause", nil).want(t, 202)
			if b, _ := s.bundle(id, ""); b.Run.Status != "running" {
				t.Errorf("paused: %s", b.Run.Status)
			}
		}
	}
}

// What a workflow does not declare is masked in a bundle whatever its mode, and what
// it calls sensitive in its own.
func TestWireBundleMasksInputs(t *testing.T) {
	t.Parallel()
	s := start(t)
	vars := []any{map[string]any{"name": "plain", "type": "string"}, map[string]any{"name": "secret", "type": "string", "sensitive": true}}
	for mode, want := range map[string]struct {
		secret  string
		applied bool
	}{
		"mask": {"[REDACTED]", true}, "omit": {"", true}, "hash": {"sha256:", true}, "passthrough": {"sensitive-canary", false},
	} {
		s.register(flow("in-"+mode, []any{step("a", "core.noop", nil)}, []any{}, map[string]any{
			"variables": vars, "metadata": map[string]any{"complianceConfig": map[string]any{"maskingMode": mode}},
		}))
		inputs := map[string]any{"plain": "shown", "secret": "sensitive-canary"}
		for _, extra := range []bool{false, true} {
			if extra {
				inputs["userField"] = "input-canary"
				inputs["deep"] = map[string]any{"k": []any{"input-canary"}}
			}
			id := s.run("in-"+mode, map[string]any{"inputs": inputs})
			s.await(id, "completed")
			b, raw := s.bundle(id, "")
			validSeed(t, "debug-bundle", raw)
			if bytes.Contains(raw, []byte("input-canary")) || mode != "passthrough" && bytes.Contains(raw, []byte("sensitive-canary")) {
				t.Errorf("%s: a canary is in the bundle: %s", mode, raw)
			}
			var started struct{ Inputs map[string]any }
			if err := json.Unmarshal(b.Events[0].Data, &started); err != nil {
				t.Fatal(err)
			}
			for _, in := range []map[string]any{b.Run.Inputs, started.Inputs} {
				got, _ := in["secret"].(string)
				if in["plain"] != "shown" || !strings.HasPrefix(got, want.secret) || (mode == "omit") != (got == "") {
					t.Errorf("%s: inputs %v", mode, in)
				}
			}
			if b.RedactionApplied != (want.applied || extra) || (b.RedactionMode == "passthrough") == (want.applied || extra) {
				t.Errorf("%s, extra %v: applied %v, mode %s", mode, extra, b.RedactionApplied, b.RedactionMode)
			}
			if extra { // the log itself is not touched
				if log := s.events(id); !strings.Contains(fmt.Sprint(log[0]), "input-canary") {
					t.Errorf("the log has lost an input: %v", log[0])
				}
			}
		}
	}
}

// A log of more than a bundle has room for is cut, and the process holds no more of it
// than that.
func TestWireBundleIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) {
		c.Nodes = append(c.Nodes, node.Type{ID: "test.write", Description: "Writes a lot.", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
			for i := range 400 {
				in.Log("info", fmt.Sprint(i, " ", strings.Repeat("x", 32<<10)), nil)
			}
			return node.Done(nil), nil
		}})
	})
	s.register(flow("long", []any{step("a", "test.write", nil)}, []any{}))
	id := s.run("long")
	s.await(id, "completed")
	b, raw := s.bundle(id, "")
	validSeed(t, "debug-bundle", raw)
	if len(raw) > 8<<20+4096 || len(raw) < 7<<20 || !b.Truncated || b.TruncatedReason != "events_truncated_to_size_cap" {
		t.Errorf("%d bytes, %d events, truncated %v for %q", len(raw), len(b.Events), b.Truncated, b.TruncatedReason)
	}
	for i, e := range b.Events {
		if e.Sequence != int64(i) {
			t.Fatalf("event %d is %d", i, e.Sequence)
		}
	}
	few, _ := s.bundle(id, "?maxEvents=5")
	for i, e := range few.Events {
		if string(e.Data) != string(b.Events[i].Data) {
			t.Errorf("event %d differs", i)
		}
	}
}

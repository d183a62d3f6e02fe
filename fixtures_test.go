package fermata_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fixtureFolder holds the protocol's own workflow files, where the project has
// them beside it.
var fixtureFolder = filepath.Join("..", "shared", "protocol", "v1", "fixtures")

// outcomes says how each fixture whose node types exist here ends, as its own
// description states, and what to do on the way.
var outcomes = map[string]struct {
	body    map[string]any // beside workflowId
	waits   string         // status to wait for before answering
	node    string         // whom to answer
	answers []any          // with what, in turn
	status  string         // how it ends
	code    string         // error code of a failure
	check   func(t *testing.T, s *server, id string, snap map[string]any)
}{
	"conformance-noop":         {status: "completed"},
	"conformance-identity":     {status: "completed", body: map[string]any{"inputs": map[string]any{"payload": map[string]any{"k": "v"}}}},
	"conformance-multi-node":   {status: "completed"},
	"conformance-idempotent":   {status: "completed", body: map[string]any{"inputs": map[string]any{"nonce": "n-1"}}},
	"conformance-delay":        {status: "completed", body: map[string]any{"inputs": map[string]any{"delayMs": 30}}},
	"conformance-failure":      {status: "failed", code: "internal_error"},
	"conformance-version-fold": {status: "completed"},
	"conformance-capability-missing": {status: "failed", code: "capability_not_provided",
		check: func(t *testing.T, s *server, id string, _ map[string]any) {
			if slices.Contains(s.types(id), "node.started") {
				t.Error("a node that lacks a capability was started")
			}
		}},
	"conformance-cap-breach": {status: "failed", code: "recursion_limit_exceeded",
		body: map[string]any{"configurable": map[string]any{"version": 1, "run": map[string]any{"recursionLimit": 3}}},
		check: func(t *testing.T, s *server, id string, _ map[string]any) {
			if !slices.Contains(s.types(id), "cap.breached") {
				t.Error("no cap.breached")
			}
		}},
	"conformance-run-duration-breach": {status: "failed", code: "run_timeout",
		body: map[string]any{"configurable": map[string]any{"version": 1, "run": map[string]any{"runTimeoutMs": 60}}}},
	"conformance-approval": {waits: "waiting-approval", node: "gate", answers: []any{map[string]any{"action": "accept"}}, status: "completed"},
	"conformance-interrupt-auth-required": {waits: "waiting-approval", node: "gate", answers: []any{map[string]any{"action": "reject"}},
		status: "failed", code: "approval_rejected"},
	"conformance-clarification": {waits: "waiting-input", node: "ask",
		answers: []any{map[string]any{"answers": map[string]any{"q1": "blue"}}}, status: "completed"},
	"conformance-interrupt-external-event": {waits: "waiting-external", node: "wait-for-external",
		answers: []any{map[string]any{"orderId": "fixture-order-1", "status": "completed", "more": 1}}, status: "completed"},
	"conformance-channel-ttl": {status: "completed", check: func(t *testing.T, _ *server, _ string, snap map[string]any) {
		entries, _ := snap["variables"].(map[string]any)["events"].([]any)
		if len(entries) != 1 || entries[0].(map[string]any)["value"] != "d" {
			t.Errorf("channel events: %v", entries)
		}
	}},
	"conformance-message-reducer": {status: "completed", check: func(t *testing.T, _ *server, _ string, snap map[string]any) {
		if m := snap["channels"].(map[string]any)["messages"].([]any); len(m) != 1 {
			t.Errorf("messages: %v", m)
		}
	}},
	"conformance-subworkflow-parent": {status: "completed", check: func(t *testing.T, _ *server, _ string, snap map[string]any) {
		if snap["variables"].(map[string]any)["childOutcome"] == nil {
			t.Errorf("the child's result did not reach the parent: %v", snap["variables"])
		}
	}},
	"conformance-subworkflow-child":                     {status: "completed"},
	"conformance-subworkflow-input-mapping":             {status: "completed"},
	"conformance-subworkflow-input-mapping-child":       {status: "completed"},
	"conformance-subworkflow-input-mapping-no-default":  {status: "completed"},
	"conformance-interrupt-parent-child-cancel-child":   {waits: "waiting-approval", node: "child-gate", status: "waiting-approval"},
	"conformance-dispatch-input-mapping-child":          {status: "completed"},
	"conformance-dispatch-output-mapping-child":         {status: "completed"},
	"conformance-dispatch-cross-worker-handoff-child-a": {status: "completed"},
	"conformance-dispatch-cross-worker-handoff-child-b": {status: "completed"},
	"conformance-dispatch-deterministic-fail-child":     {status: "failed", code: "internal_error"},
	"conformance-multi-agent-handoff-child":             {status: "completed"},
	"conformance-configurable-schema":                   {status: "completed"},
}

// notHere marks fixtures of agents, their packs and their memory: the nodes run,
// but what the descriptions are about is not part of this host yet.
const notHere = "agents, packs and memory are not here yet"

// skipped names fixtures whose types exist but which another test covers or
// which cannot end by themselves.
var skipped = map[string]string{
	"conformance-cancellable":                          "TestFixtureCancel",
	"conformance-dispatch-cancellable-child":           "TestFixtureCancel",
	"conformance-interrupt-parent-child-cancel":        "TestFixtureParentCancel",
	"conformance-subworkflow-mid-run-mutation":         "TestFixtureMidRun",
	"conformance-subworkflow-mid-run-mutation-child":   "TestFixtureMidRun",
	"conformance-agent-pack-provenance":                notHere,
	"conformance-agent-pack-install":                   notHere,
	"conformance-agent-pack-handoff-schema-validation": notHere,
	"conformance-agent-memory-ttl":                     notHere,
	"conformance-agent-channel-dispatch":               notHere,
	"conformance-agent-memory-cross-tenant":            notHere,
	"conformance-agent-pack-export":                    notHere,
	"conformance-agent-memory-redaction":               notHere,
	"conformance-agent-memory-roundtrip":               notHere,
	"conformance-agent-identity":                       notHere,
	"conformance-interrupt-quorum":                     "one credential cannot make a quorum of three; see internal/run's scripts",
}

func fixtureFiles(t *testing.T) map[string][]byte {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(fixtureFolder, "*.json"))
	if len(paths) == 0 {
		t.Skip("the protocol's fixtures are not beside this checkout")
	}
	out := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			ID    string `json:"id"`
			Nodes []any  `json:"nodes"`
		}
		if json.Unmarshal(b, &d) == nil && len(d.Nodes) > 0 {
			out[d.ID] = b
		}
	}
	return out
}

// registerFixtures registers every fixture this host can run and returns their
// ids. One that it refuses must be refused for a node type or a capability.
func registerFixtures(t *testing.T, s *server) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for id, def := range fixtureFiles(t) {
		a := s.do("PUT", "/host/fermata/workflows/"+id, def)
		switch {
		case a.status == 201:
			known[id] = true
		case a.status == 422 && a.json["error"] == "capability_required":
		case a.status == 400 && slices.ContainsFunc(issues(a), func(m string) bool { return m != "" }):
		default:
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
	return known
}

func issues(a answer) []string {
	d, _ := a.json["details"].(map[string]any)
	list, _ := d["issues"].([]any)
	var out []string
	for _, i := range list {
		m := i.(map[string]any)
		msg, _ := m["message"].(string)
		if len(msg) > 17 && msg[:17] == "unknown node type" {
			out = append(out, msg)
		}
	}
	return out
}

func TestFixtures(t *testing.T) {
	s := start(t)
	known := registerFixtures(t, s)
	for id := range known {
		want, listed := outcomes[id]
		if !listed {
			if _, ok := skipped[id]; !ok {
				t.Errorf("fixture %s runs here, but nothing says how it ends", id)
			}
			continue
		}
		t.Run(id, func(t *testing.T) {
			run := s.run(id, want.body)
			if want.waits != "" {
				s.await(run, want.waits)
			}
			for _, a := range want.answers {
				s.answer(run, want.node, a).want(t, 200)
			}
			snap := s.await(run, want.status)
			if want.code != "" {
				if e, _ := snap["error"].(map[string]any); e["code"] != want.code {
					t.Errorf("error %v, want code %s", e, want.code)
				}
			}
			if want.check != nil {
				want.check(t, s, run, snap)
			}
		})
	}
	for id := range outcomes {
		if !known[id] {
			t.Errorf("fixture %s was not accepted", id)
		}
	}
}

func TestFixtureCancel(t *testing.T) {
	s := start(t)
	registerFixtures(t, s)
	for _, id := range []string{"conformance-cancellable", "conformance-dispatch-cancellable-child"} {
		run := s.run(id)
		s.await(run, "running")
		s.do("POST", "/runs/"+seg(run)+"/cancel", map[string]any{"reason": "enough"}).want(t, 200)
		s.await(run, "cancelled")
		s.do("POST", "/runs/"+seg(run)+"/cancel", nil).refused(t, 409, "run_terminal")
		types := s.types(run)
		if types[len(types)-1] != "run.cancelled" || !slices.Contains(types, "node.cancelled") {
			t.Errorf("events %v", types)
		}
	}
}

// childOf reads the first child run of a node from a snapshot.
func childOf(snap map[string]any, node string) string {
	n, _ := snap["nodeStates"].(map[string]any)[node].(map[string]any)
	c, _ := n["children"].([]any)
	if len(c) == 0 {
		return ""
	}
	return c[0].(map[string]any)["runId"].(string)
}

func TestFixtureParentCancel(t *testing.T) {
	s := start(t)
	registerFixtures(t, s)
	run := s.run("conformance-interrupt-parent-child-cancel")
	snap := s.await(run, "waiting-approval") // as its child does
	child := childOf(snap, "spawn-child")
	s.do("POST", "/runs/"+seg(run)+"/cancel", nil).want(t, 200)
	s.await(run, "cancelled")
	s.await(child, "cancelled")
	events := s.events(child)
	p := events[len(events)-1]["payload"].(map[string]any)
	if p["reason"] != "parent-cancelled" || p["parentRunId"] != run {
		t.Errorf("the child's run.cancelled: %v", p)
	}
	s.answer(child, s.nodeOf(child), map[string]any{"action": "accept"}).refused(t, 409, "interrupt_already_resolved")
}

func (s *server) nodeOf(run string) string {
	for id := range s.snapshot(run)["nodeStates"].(map[string]any) {
		return id
	}
	return ""
}

func TestFixtureMidRun(t *testing.T) {
	s := start(t)
	registerFixtures(t, s)
	run := s.run("conformance-subworkflow-mid-run-mutation")
	snap := s.await(run, "waiting-approval")
	child := childOf(snap, "subwf-call")
	cs := s.snapshot(child)
	s.answer(child, cs["currentNodeId"].(string), map[string]any{"action": "accept"}).want(t, 200)
	s.await(run, "completed")
	if v := s.snapshot(child)["variables"].(map[string]any)["receivedPrdId"]; v != "seeded-id" {
		t.Errorf("receivedPrdId %v", v)
	}
}

package fermata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
)

const (
	seedSeam    = "/conformance/seams/sample/event-log/seed"
	receiveSeam = "/conformance/seams/sample/webhooks/receive"
)

func withSeams(c *fermata.Config) { c.ConformanceSeams = true }

// oldRun is a log as a v1 host wrote it.
func oldRun(extra ...any) map[string]any {
	events := []any{
		map[string]any{"type": "run.started", "sequence": 0, "payload": map[string]any{"workflowId": "old"}, "timestamp": "2026-01-15T10:00:00.000Z"},
		map[string]any{"type": "agent.toolCalled", "sequence": 1, "timestamp": "2026-01-15T10:00:01.000Z", "causationId": "somebodys-own-cause",
			"payload": map[string]any{"agentId": "a", "toolName": "echo", "callId": "call-0001"}},
	}
	for _, e := range extra {
		events = append(events, map[string]any{"type": e, "sequence": len(events), "payload": map[string]any{}})
	}
	events = append(events, map[string]any{"type": "run.completed", "sequence": len(events), "payload": map[string]any{"outputs": map[string]any{"n": 1}}})
	return map[string]any{"eventLogSchemaVersion": 2, "status": "completed", "events": events}
}

// A log of v1 is kept as it is and read in the words of v2, by every reader, and
// after a restart.
func TestSeededRunOfV1(t *testing.T) {
	t.Parallel()
	s := start(t, withSeams)
	a := s.do("POST", seedSeam, oldRun("run.resuming"))
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := "/runs/" + strings.ReplaceAll(a.json["runId"].(string), "/", "~2F")
	first := ""
	for range 2 {
		page := s.do("GET", id+"/events/poll", nil)
		var got []string
		for _, e := range page.json["events"].([]any) {
			m := e.(map[string]any)
			got = append(got, fmt.Sprint(m["sequence"], " ", m["type"]))
		}
		want := []string{"0 run.started", "1 agent.tool-called", "2 run.resume-started", "3 run.completed"}
		if !slices.Equal(got, want) || page.json["isTerminal"] != true {
			t.Errorf("poll: %v", got)
		}
		second := page.json["events"].([]any)[1].(map[string]any)
		if second["causationId"] != "somebodys-own-cause" || second["timestamp"] != "2026-01-15T10:00:01.000Z" {
			t.Errorf("what passes through: %v", second)
		}
		snap := s.do("GET", id, nil)
		subject := snap.json["owner"].(map[string]any)["subject"].(map[string]any)
		if snap.json["eventLogSchemaVersion"] != 2.0 || snap.json["status"] != "completed" || subject["issuer"] != "urn:openwop:legacy" {
			t.Errorf("snapshot: %s", snap.body)
		}
		list := s.do("GET", "/runs", nil)
		if row := list.json["runs"].([]any)[0].(map[string]any); row["eventLogSchemaVersion"] != 2.0 {
			t.Errorf("list: %v", row)
		}
		stream := s.do("GET", id+"/events?streamMode=debug", nil)
		if n := strings.Count(string(stream.body), "\nevent: "); n != 4 || strings.Contains(string(stream.body), "toolCalled") {
			t.Errorf("stream of %d frames: %s", n, stream.body)
		}
		if first == "" {
			first = string(page.body)
		} else if first != string(page.body) {
			t.Error("the log reads differently after a restart")
		}
		s.restart()
	}
	if a := s.do("POST", id+"/cancel", nil); a.status != 409 {
		t.Errorf("cancel of a run that has ended: %d", a.status)
	}
}

// A type nobody maps is stored, and reading it fails with the code for that.
func TestUnmappedTypesOfV1AreNotRead(t *testing.T) {
	t.Parallel()
	s := start(t, withSeams)
	a := s.do("POST", seedSeam, oldRun("no.such.type"))
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := "/runs/" + strings.ReplaceAll(a.json["runId"].(string), "/", "~2F")
	for _, path := range []string{id, id + "/events/poll"} {
		if a := s.do("GET", path, nil); a.status != 500 || a.json["error"] != "event_type_unmapped" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestSeedRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, withSeams)
	edit := func(change func(map[string]any)) map[string]any {
		m := oldRun()
		change(m)
		return m
	}
	last := func(m map[string]any) map[string]any {
		list := m["events"].([]any)
		return list[len(list)-1].(map[string]any)
	}
	for name, body := range map[string]any{
		"nothing":             map[string]any{},
		"another era":         edit(func(m map[string]any) { m["eventLogSchemaVersion"] = 3 }),
		"goes on":             edit(func(m map[string]any) { m["status"] = "running" }),
		"another end":         edit(func(m map[string]any) { m["status"] = "failed" }),
		"a gap":               edit(func(m map[string]any) { last(m)["sequence"] = 7 }),
		"no events":           edit(func(m map[string]any) { m["events"] = []any{} }),
		"no start":            edit(func(m map[string]any) { m["events"].([]any)[0].(map[string]any)["type"] = "run.resuming" }),
		"payload no object":   edit(func(m map[string]any) { last(m)["payload"] = 3 }),
		"unknown member":      edit(func(m map[string]any) { m["surprise"] = true }),
		"time of no calendar": edit(func(m map[string]any) { last(m)["timestamp"] = "yesterday" }),
		"causation no id":     edit(func(m map[string]any) { last(m)["causationId"] = "because of that" }),
		"no workflow":         edit(func(m map[string]any) { m["events"].([]any)[0].(map[string]any)["payload"] = map[string]any{} }),
	} {
		if a := s.do("POST", seedSeam, body); a.status != 400 || a.json["error"] != "validation_error" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if list := s.do("GET", "/runs", nil); len(list.json["runs"].([]any)) != 0 {
		t.Errorf("something was stored: %s", list.body)
	}
}

func TestReceiveSeam(t *testing.T) {
	t.Parallel()
	s := start(t, withSeams)
	a := s.do("POST", receiveSeam, map[string]any{"secret": "s", "headers": map[string]any{}, "body": "{}"})
	if a.status != 200 || a.json["accepted"] != false || a.json["reason"] == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, body := range []any{map[string]any{}, map[string]any{"secret": "", "headers": map[string]any{}, "body": ""}, map[string]any{"secret": "s", "headers": map[string]any{"a": 1}, "body": ""}} {
		if a := s.do("POST", receiveSeam, body); a.status != 400 {
			t.Errorf("%v: %d %s", body, a.status, a.body)
		}
	}
}

// Seams are there only where the host was started for them, only with a credential,
// and in no document of the protocol.
func TestSeamsAreApart(t *testing.T) {
	t.Parallel()
	without, with := start(t), start(t, withSeams)
	for _, path := range []string{seedSeam, receiveSeam} {
		if a := without.do("POST", path, oldRun()); a.status != 404 {
			t.Errorf("%s without seams: %d", path, a.status)
		}
		if a := with.do("POST", path, oldRun(), "Authorization", ""); a.status != 401 {
			t.Errorf("%s without a credential: %d", path, a.status)
		}
		if a := with.do("GET", path, nil); a.status != 405 {
			t.Errorf("GET %s: %d", path, a.status)
		}
	}
	if a := without.do("GET", "/.well-known/openwop", nil); a.json["conformance"] != nil {
		t.Errorf("advertised: %v", a.json["conformance"])
	}
	a := with.do("GET", "/.well-known/openwop", nil)
	if c, _ := a.json["conformance"].(map[string]any); c["seamsProfile"] != "openwop-conformance-seams-v2" {
		t.Errorf("not advertised: %s", a.body)
	}
	if a := with.do("GET", "/openapi.json", nil); strings.Contains(string(a.body), "conformance/seams") {
		t.Error("the OpenAPI document has seams")
	}
	about := with.do("GET", "/host/fermata/host", nil)
	var page struct {
		Relaxations []struct{ Obligation, Durability, Setting string }
	}
	if err := json.Unmarshal(about.body, &page); err != nil || len(page.Relaxations) != 1 || page.Relaxations[0].Obligation != "production.conformance-seams" {
		t.Errorf("%s", about.body)
	}
	if build, _ := about.json["build"].(map[string]any); build["kind"] != "artifact-sha256" || len(fmt.Sprint(build["id"])) != 64 {
		t.Errorf("%s", about.body)
	}
	_, err := fermata.Open(context.Background(), fermata.Config{DataDir: t.TempDir(), Mode: "production", ConformanceSeams: true})
	if err == nil || !strings.Contains(err.Error(), "conformance-seams") {
		t.Errorf("in production: %v", err)
	}
}

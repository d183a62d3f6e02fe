package fermata_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"
)

// old starts a host and such a client of it.
func old(t *testing.T) *oldClient {
	s := start(t, withV1)
	s.register(gate("gate"))
	s.register(noop("one"))
	return &oldClient{s: s}
}

// The smallest client there is: discover, start, look until it is over. The first two
// answers to its start are lost, and it is one run all the same.
func TestV1ClientStartsARun(t *testing.T) {
	t.Parallel()
	c := old(t)
	caps := c.call("GET", "/.well-known/openwop", nil).want(t, 200)
	if caps.str("protocolVersion") != "1.0" || caps.json["implementation"] == nil || !slices.Contains(caps.json["supportedEnvelopes"].([]any), any("clarification.request")) {
		t.Errorf("discovery: %s", caps.body)
	}
	c.lose = 2
	id := c.create("one", "a key with blanks, and short")
	again := c.call("POST", "/v1/runs", map[string]any{"workflowId": "one"}, "Idempotency-Key", "a key with blanks, and short").want(t, 201)
	if again.str("runId") != id || again.header.Get("openwop-idempotent-replay") != "true" || c.s.runs("one") != 1 {
		t.Errorf("sent again it is %s, and there are %d runs", again.body, c.s.runs("one"))
	}
	other := c.call("POST", "/v1/runs", map[string]any{"workflowId": "one", "inputs": map[string]any{"x": 1}}, "Idempotency-Key", "a key with blanks, and short")
	if other.status != 409 || c.s.runs("one") != 1 {
		t.Errorf("other words under the same key: %d %s", other.status, other.body)
	}
	snap := c.s.await1(id, "completed")
	if end := snap["completedAt"]; end == nil || end != snap["endedAt"] {
		t.Errorf("it ended at %v, or at %v", end, snap["endedAt"])
	}
	running := c.create("gate", "another")
	if snap := c.s.await1(running, "waiting-approval"); snap["endedAt"] != nil || snap["currentNodeId"] != "ok" {
		t.Errorf("a run that waits: %v", snap)
	}
}

// Some read the log as a document, from the path that is for following it: what they say is
// which part they want, and that they take anything.
func TestV1ClientReadsTheLogInParts(t *testing.T) {
	t.Parallel()
	c := old(t)
	id := c.create("one", "k")
	c.s.await1(id, "completed")
	log := named(c.pages(id, func(oldEvent) {}))
	read := func(query string, header ...string) (part []string, complete any) {
		a := c.call("GET", "/v1/runs/"+id+"/events"+query, nil, header...).want(t, 200)
		if ct := a.header.Get("Content-Type"); ct != "application/json" {
			t.Fatalf("%s is answered as %s", query, ct)
		}
		var page struct{ Events []oldEvent }
		if err := json.Unmarshal(a.body, &page); err != nil {
			t.Fatal(err)
		}
		return named(page.Events), a.json["isComplete"]
	}
	for _, q := range []struct {
		query    string
		from, to int
	}{
		{"?fromSequence=0&limit=1000", 0, len(log)}, {"?fromSequence=0", 0, len(log)}, {"?limit=1", 0, 1}, {"?fromSequence=1&limit=2", 1, 3},
		{"?fromSequence=2", 2, len(log)}, {"?fromSequence=9007199254740991", len(log), len(log)},
	} {
		for _, accept := range []string{"*/*", "application/json", "text/html, */*;q=0.1"} {
			got, complete := read(q.query, "Accept", accept)
			if !slices.Equal(got, log[q.from:q.to]) || complete != (q.to == len(log)) {
				t.Errorf("%s as %s: %v, complete %v; want %v", q.query, accept, got, complete, log[q.from:q.to])
			}
		}
	}
	for query, field := range map[string]string{"?fromSequence=-1": "fromSequence", "?limit=0": "limit", "?limit=x": "limit", "?limit=1&limit=2": "limit"} {
		if _, d := errorOf(c.call("GET", "/v1/runs/"+id+"/events"+query, nil).refused(t, 400, "validation_error")); d["field"] != field {
			t.Errorf("%s: %v", query, d)
		}
	}
	// To who names the stream, these are parameters that nobody knows.
	var seen []oldEvent
	x := watcher{c: c, path: "/v1/runs/" + id + "/events?streamMode=debug&fromSequence=x&limit=0"}
	if ended := x.read(func(e oldEvent) bool { seen = append(seen, e); return false }); !ended || !slices.Equal(named(seen), log) {
		t.Errorf("a stream: %v, want %v", named(seen), log)
	}
}

// A watcher whose connection is cut again and again sees every event once, in order: across
// an answer that comes while nobody listens, and a host that is started anew.
func TestV1ClientReconnects(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"?streamMode=debug", "?streamMode=debug&bufferMs=10", "", "?streamMode=updates,messages"} {
		c := old(t)
		id := c.create("gate", "k"+query)
		x := watcher{c: c, path: "/v1/runs/" + id + "/events" + query}
		var seen []oldEvent
		waits := func(e oldEvent) bool {
			seen = append(seen, e)
			return e.Type == "node.suspended"
		}
		if x.read(waits) {
			t.Fatal("the stream of a run that waits has ended")
		}
		c.s.restart()
		c.s.await1(id, "waiting-approval")
		c.call("POST", "/v1/runs/"+id+"/approvals/ok", map[string]any{"action": "accept"}).want(t, 200)
		for n, over := 0, false; !over && n < 50; n++ {
			over = x.read(func(e oldEvent) bool {
				seen = append(seen, e)
				return query == "" // one at a time
			})
		}
		var all []oldEvent
		fresh := watcher{c: c, path: x.path}
		if !fresh.read(func(e oldEvent) bool { all = append(all, e); return false }) || !slices.Equal(named(seen), named(all)) {
			t.Errorf("%q: with cuts %v\nwithout %v", query, named(seen), named(all))
		}
		if seen[0].Type != "run.started" || seen[len(seen)-1].Type != "run.completed" {
			t.Errorf("%q: %v", query, named(seen))
		}
	}
}

// A client behind a proxy that lets no stream through polls, and answers what it is asked as
// clients did before there were interrupts. The answer to its answer is lost.
func TestV1ClientPollsAndApproves(t *testing.T) {
	t.Parallel()
	c := old(t)
	id := c.create("gate", "k")
	approve := func(header ...string) answer {
		return c.call("POST", "/v1/runs/"+id+"/approvals/ok", map[string]any{"action": "accept"}, header...)
	}
	asked := 0
	all := c.pages(id, func(e oldEvent) {
		if e.Type != "approval.requested" {
			return
		}
		asked++
		c.s.await1(id, "waiting-approval")
		c.lose = 1
		if a := approve("Idempotency-Key", "approve-1").want(t, 200); a.str("nodeId") != "ok" || a.header.Get("openwop-idempotent-replay") != "true" {
			t.Errorf("%s", a.body)
		}
	})
	received := 0
	for i, e := range all {
		if *e.Sequence != i {
			t.Fatalf("out of order: %v", named(all))
		}
		if e.Type == "approval.received" {
			received++
		}
	}
	if asked != 1 || received != 1 || all[len(all)-1].Type != "run.completed" {
		t.Errorf("%d requests, %d answers: %v", asked, received, named(all))
	}
	if a := approve(); a.status != 409 || a.str("error") != "interrupt_already_resolved" {
		t.Errorf("again under no key: %d %s", a.status, a.body)
	}
	if a := approve("Idempotency-Key", "approve-1").want(t, 200); a.header.Get("openwop-idempotent-replay") != "true" {
		t.Errorf("again under its key: %s", a.body)
	}
}

// A client forks a finished run in both ways, sends each fork twice, and follows what comes
// of it.
func TestV1ClientForksAndFollows(t *testing.T) {
	t.Parallel()
	c := old(t)
	id := c.create("gate", "k")
	c.s.await1(id, "waiting-approval")
	c.call("POST", "/v1/runs/"+id+"/approvals/ok", map[string]any{"action": "accept"}).want(t, 200)
	c.s.await1(id, "completed")
	first := c.pages(id, func(oldEvent) {})
	for n, body := range []map[string]any{
		{"mode": "replay", "fromSeq": 0}, {"mode": "branch", "fromSeq": 0}, {"mode": "branch", "fromSeq": len(first) - 1},
		{"mode": "branch", "fromSeq": 0, "runOptionsOverlay": map[string]any{"configurable": map[string]any{"recursionLimit": 50}, "tags": []string{"again"}}},
	} {
		key := fmt.Sprint("fork-", n)
		c.lose = 1
		a := c.call("POST", "/v1/runs/"+id+":fork", body, "Idempotency-Key", key).want(t, 201)
		fork := a.str("runId")
		if fork == id || fork == "" || a.str("sourceRunId") != id || a.str("mode") != body["mode"] || a.header.Get("openwop-idempotent-replay") != "true" {
			t.Fatalf("%v: %s", body, a.body)
		}
		where, err := url.Parse(a.str("eventsUrl"))
		if err != nil {
			t.Fatal(err)
		}
		x := watcher{c: c, path: where.Path + "?streamMode=debug"}
		var seen []oldEvent
		over := x.read(func(e oldEvent) bool {
			seen = append(seen, e)
			return e.Type == "node.suspended" && body["mode"] == "branch" && body["fromSeq"] == 0
		})
		if !over { // it asks anew
			c.s.await1(fork, "waiting-approval")
			c.call("POST", "/v1/runs/"+fork+"/approvals/ok", map[string]any{"action": "accept"}).want(t, 200)
			x.read(func(e oldEvent) bool { seen = append(seen, e); return false })
		}
		for i, e := range seen {
			if *e.Sequence != i {
				t.Fatalf("%v: out of order: %v", body, named(seen))
			}
		}
		same := oldEvent.String
		if body["mode"] == "replay" { // asks nobody: the answers are on record
			same = func(e oldEvent) string {
				if asks := e.Type == "interrupt.requested" || e.Type == "approval.requested" || e.Type == "node.suspended"; asks {
					return ""
				}
				return e.Type + " " + e.NodeID
			}
		}
		if got, want := inWords(seen, same), inWords(first, same); !slices.Equal(got, want) {
			t.Errorf("%v: %v\nof %v", body, got, want)
		}
	}
	if n := c.s.runs("gate"); n != 5 {
		t.Errorf("%d runs, want the source and 4 forks", n)
	}
}

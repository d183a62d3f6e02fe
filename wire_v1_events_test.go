package fermata_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata"
)

// bareID is a run's id as v1 writes it.
func bareID(id string) string { return id[strings.Index(id, "/")+1:] }

// event1 is what tests look at of an event of v1.
type event1 struct {
	event
	RunID         string `json:"runId"`
	EventID       string `json:"eventId"`
	EngineVersion any    `json:"engineVersion"`
	CausationID   string `json:"causationId"`
	Timestamp     string `json:"timestamp"`
}

// validEvent1 holds an event against v1's envelope and the payload schema of its type.
func validEvent1(t testing.TB, doc []byte) event1 {
	t.Helper()
	var e event1
	if err := json.Unmarshal(doc, &e); err != nil {
		t.Fatalf("not an event: %v\n%s", err, doc)
	}
	validV1(t, "run-event", doc)
	validPayload1(t, e.Type, e.Payload)
	if strings.Contains(e.RunID, "/") || bytes.Contains(doc, []byte("x-fermata")) || e.EngineVersion != "1" {
		t.Errorf("an event of v2 on the wire of v1: %s", doc)
	}
	return e
}

// payloads1 are the types that v1's schemas have a payload for; none where the project
// stands alone.
var payloads1 = sync.OnceValue(func() map[string]any {
	var doc struct {
		Defs struct {
			Index struct{ Properties map[string]any } `json:"_typeIndex"`
		} `json:"$defs"`
	}
	b, err := os.ReadFile(filepath.Join(v1Folders[0], "run-event-payloads.schema.json"))
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	return doc.Defs.Index.Properties
})

// validPayload1 holds a payload against the schema that v1's index has for its type.
func validPayload1(t testing.TB, typ string, payload []byte) {
	t.Helper()
	if payloads1()[typ] != nil {
		validV1(t, "run-event-payloads#/$defs/_typeIndex/properties/"+typ, payload)
	}
}

// poll1 reads a run's whole log by way of v1, as exact bytes.
func (s *server) poll1(id string) []json.RawMessage {
	s.t.Helper()
	a := s.do("GET", "/v1/runs/"+bareID(id)+"/events/poll?timeout=1", nil).want(s.t, 200)
	var page struct{ Events []json.RawMessage }
	if err := json.Unmarshal(a.body, &page); err != nil {
		s.t.Fatal(err)
	}
	return page.Events
}

// tier1 is tier for v1: what the updates and the values mode show.
func tier1(typ string) string {
	if typ == "run.paused" || typ == "run.resumed" || typ == "node.dispatched" || typ == "run.failed" || typ == "node.failed" {
		return "updates"
	}
	return tier(typ)
}

// One log, two majors: the same events in the same places with the same ids, times and
// causes.
func TestV1EventsAreThoseOfV2(t *testing.T) {
	t.Parallel()
	s, id := talker(t, withV1)
	old, now := s.poll1(id), s.docs(id)
	if len(old) != len(now) || len(old) < 15 {
		t.Fatalf("%d events on v1, %d on v2", len(old), len(now))
	}
	for i := range old {
		a := validEvent1(t, old[i])
		var b event1
		if err := json.Unmarshal(now[i], &b); err != nil {
			t.Fatal(err)
		}
		if a.Sequence != int64(i) || a.EventID != b.EventID || a.Timestamp != b.Timestamp || a.CausationID != b.CausationID || a.NodeID != b.NodeID ||
			a.Type != b.Type || a.RunID != bareID(id) {
			t.Errorf("event %d: %+v and %+v", i, a, b)
		}
	}
	var first struct {
		EngineVersion string
		Owner         map[string]any
	}
	if err := json.Unmarshal(validEvent1(t, old[0]).Payload, &first); err != nil || first.EngineVersion != "1" {
		t.Errorf("%v: %s", err, old[0])
	}
	if first.Owner["subject"] != nil || first.Owner["principal"] == nil || first.Owner["tenant"] != "default" {
		t.Errorf("owner %v", first.Owner)
	}
}

// Every mode and combination, from every position: the events that follow, each in a
// frame of its own type.
func TestV1StreamModes(t *testing.T) {
	t.Parallel()
	s, id := talker(t, withV1)
	log := s.poll1(id)
	for _, mode := range []string{"", "updates", "messages", "debug", "updates,messages", "messages,updates", "updates,debug", "messages,debug", "debug,updates,messages", "updates,updates"} {
		in := map[string]bool{}
		for m := range strings.SplitSeq(mode, ",") {
			in[m] = true
		}
		query := "?streamMode=" + mode
		if mode == "" {
			in, query = map[string]bool{"updates": true}, ""
		}
		for after := -1; after < len(log); after++ {
			header := []string{}
			if after >= 0 {
				header = []string{"Last-Event-ID", strconv.Itoa(after)}
			}
			var want, got []string
			for _, doc := range log[after+1:] {
				e := validEvent1(t, doc)
				switch {
				case tier1(e.Type) == "messages" && in["messages"]:
					want = append(want, fmt.Sprint(e.Sequence, " ai.message.chunk ", string(e.Payload)))
				case in["debug"], tier1(e.Type) == "updates" && in["updates"]:
					want = append(want, fmt.Sprint(e.Sequence, " ", e.Type, " ", string(doc)))
				}
			}
			for _, f := range s.subscribeAt("/v1/runs/"+bareID(id)+"/events"+query, header...).frames() {
				got = append(got, fmt.Sprint(f.seq(t), " ", f.name, " ", string(f.data)))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("mode %q after %d:\n%s\nwant\n%s", mode, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// The values mode shows a snapshot of v1 after each change and each start of a node,
// and one first for whoever comes back.
func TestV1StreamValues(t *testing.T) {
	t.Parallel()
	s, id := talker(t, withV1)
	var changes []int64
	log := s.poll1(id)
	for _, doc := range log {
		if e := validEvent1(t, doc); tier1(e.Type) == "updates" || e.Type == "node.started" {
			changes = append(changes, e.Sequence)
		}
	}
	for after := -1; after < len(log); after++ {
		header, want := []string{}, []int64{}
		if after >= 0 {
			header, want = []string{"Last-Event-ID", strconv.Itoa(after)}, append(want, -1)
		}
		for _, seq := range changes {
			if seq > int64(after) {
				want = append(want, seq)
			}
		}
		var got []int64
		var last frame
		sub := s.subscribeAt("/v1/runs/"+bareID(id)+"/events?streamMode=values", header...)
		if v := sub.header.Get("OpenWOP-Version"); v != "1.0" {
			t.Errorf("OpenWOP-Version %q", v)
		}
		for _, f := range sub.frames() {
			if f.name != "state.snapshot" {
				t.Fatalf("frame %q", f.name)
			}
			validV1(t, "run-snapshot", f.data)
			got, last = append(got, f.seq(t)), f
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %d: ids %v, want %v", after, got, want)
		}
		if now := s.do("GET", "/v1/runs/"+bareID(id), nil).body; !equalJSON(t, last.data, now) {
			t.Errorf("after %d the last snapshot is\n%s\nwant\n%s", after, last.data, now)
		}
	}
}

// With bufferMs events come in batches, whose id is a cursor; nobody waits for the
// buffer where a run ends or suspends.
func TestV1StreamBatches(t *testing.T) {
	t.Parallel()
	s, id := talker(t, withV1)
	log := s.poll1(id)
	for _, buffer := range []string{"0", "1", "5000"} {
		for _, after := range []int{-1, 0, len(log) - 2, len(log) - 1} {
			header := []string{}
			if after >= 0 {
				header = []string{"Last-Event-ID", strconv.Itoa(after)}
			}
			got, want := []string{}, []string{}
			for _, f := range s.subscribeAt("/v1/runs/"+bareID(id)+"/events?streamMode=debug&bufferMs="+buffer, header...).frames() {
				if buffer == "0" {
					got = append(got, string(f.data))
					continue
				}
				var docs []json.RawMessage
				if err := json.Unmarshal(f.data, &docs); err != nil || f.name != "batch" || len(docs) == 0 {
					t.Fatalf("frame %s %s: %v", f.name, f.data, err)
				}
				for _, d := range docs {
					got = append(got, string(d))
				}
				if e := validEvent1(t, docs[len(docs)-1]); e.Sequence != f.seq(t) {
					t.Errorf("a batch up to %d has id %s", e.Sequence, f.id)
				}
			}
			for _, d := range log[after+1:] {
				want = append(want, string(d))
			}
			if !slices.Equal(got, want) {
				t.Errorf("bufferMs %s after %d:\n%v\nwant\n%v", buffer, after, got, want)
			}
		}
	}
}

// What is asked for is looked at first, then who may see it, then what the answer
// looks like.
func TestV1StreamRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("gate"))
	id := s.run1("gate")
	s.await1(id, "waiting-approval")
	at := "/v1/runs/" + id + "/events"
	for _, accept := range []string{"", "application/json", "text/event-stream"} {
		for _, mode := range []string{"", "all", "Updates", "values,updates", "updates,values", "updates,bogus", "updates,"} {
			a := s.do("GET", at+"?streamMode="+mode, nil, "Accept", accept).refused(t, 400, "unsupported_stream_mode")
			if got := jsonOf(t, a.json["details"].(map[string]any)["supported"]); got != `["values","updates","messages","debug"]` {
				t.Errorf("supported %s", got)
			}
		}
		for _, buffer := range []string{"-1", "5001", "99999", "x", "", "1.5"} {
			s.do("GET", at+"?bufferMs="+buffer, nil, "Accept", accept).refused(t, 400, "validation_error")
		}
		for _, cursor := range []string{"x", "-1", "1,2"} {
			s.do("GET", at, nil, "Last-Event-ID", cursor, "Accept", accept).refused(t, 400, "validation_error")
		}
		s.do("GET", "/v1/runs/no-such-run/events", nil, "Last-Event-ID", "x", "Accept", accept).refused(t, 404, "not_found")
		s.do("GET", "/v1/runs/no-such-run/events?streamMode=bogus", nil, "Accept", accept).refused(t, 400, "unsupported_stream_mode")
		s.do("GET", at, nil, "Authorization", "", "Accept", accept).refused(t, 401, "unauthenticated")
		s.do("GET", at, nil, "OpenWOP-Version", "2.0", "Accept", accept).refused(t, 400, "protocol_version_mismatch")
	}
	narrow := s.key("narrow-key-narrow-key-narrow-key-00", "default", "runs:create")
	s.do("GET", at, nil, "Authorization", narrow).refused(t, 403, "forbidden")
	s.do("GET", at+"/poll", nil, "Authorization", narrow).refused(t, 403, "forbidden")
	s.do("GET", "/v1/runs/"+id+"/debug-bundle", nil, "Authorization", narrow).refused(t, 403, "forbidden")
	other := s.key("other-key-other-key-other-key-other", "other", "runs:read")
	for _, path := range []string{at, at + "/poll", "/v1/runs/" + id + "/debug-bundle"} {
		s.do("GET", path, nil, "Authorization", other).refused(t, 404, "not_found")
	}
}

// Whoever accepts JSON is answered with what there is, at once.
func TestV1EventsAsJSON(t *testing.T) {
	t.Parallel()
	s, id := talker(t, withV1)
	s.register(gate("gate"))
	waits := s.run1("gate")
	s.await1(waits, "waiting-approval")
	at := "/v1/runs/" + bareID(id) + "/events"
	log := s.poll1(id)
	for _, c := range []struct {
		query, cursor string
		show          func(string) bool
	}{
		{"", "", func(string) bool { return true }}, {"?streamMode=debug", "", func(string) bool { return true }},
		{"?streamMode=values", "", func(string) bool { return true }},
		{"?streamMode=updates", "", func(typ string) bool { return tier1(typ) == "updates" }},
		{"?streamMode=messages&bufferMs=100", "", func(typ string) bool { return tier1(typ) == "messages" }},
		{"", "3", func(string) bool { return true }}, {"?a2uiDelta=1", "9999", func(string) bool { return true }},
	} {
		a := s.do("GET", at+c.query, nil, "Accept", "application/json", "Last-Event-ID", c.cursor).want(t, 200)
		var page struct {
			Events     []json.RawMessage
			IsComplete bool
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			t.Fatal(err)
		}
		want := []string{}
		from, _ := strconv.Atoi(c.cursor)
		for i, doc := range log {
			if (c.cursor == "" || i > from) && c.show(validEvent1(t, doc).Type) {
				want = append(want, string(doc))
			}
		}
		got := []string{}
		for _, doc := range page.Events {
			got = append(got, string(doc))
		}
		if !slices.Equal(got, want) || !page.IsComplete {
			t.Errorf("%s %s: complete %v, %d events, want %d", c.query, c.cursor, page.IsComplete, len(got), len(want))
		}
	}
	a := s.do("GET", "/v1/runs/"+waits+"/events", nil, "Accept", "application/json").want(t, 200)
	if a.json["isComplete"] != false || a.json["runStatus"] != "waiting-approval" {
		t.Errorf("%s", a.body)
	}
	for accept, want := range map[string]string{
		"text/event-stream": "text/event-stream", "*/*": "text/event-stream", "text/html": "text/event-stream", "": "text/event-stream",
		"application/json, text/event-stream": "text/event-stream", "application/json;q=0.9, text/event-stream;q=0.1": "application/json",
		"application/json;q=0": "text/event-stream", "text/html, application/json": "application/json", "APPLICATION/JSON": "application/json",
	} {
		if got := s.do("GET", at, nil, "Accept", accept).want(t, 200).header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %q, want %q", accept, got, want)
		}
	}
}

func TestV1Poll(t *testing.T) {
	t.Parallel()
	s, id := talker(t, withV1)
	s.register(gate("gate"))
	waits := s.run1("gate")
	s.await1(waits, "waiting-approval")
	at := "/v1/runs/" + bareID(id) + "/events/poll"
	log := s.poll1(id)
	last := len(log) - 1
	for query, from := range map[string]int{
		"": 0, "?lastSequence=0": 1, "?since=0": 1, "?lastSequence=3": 4, "?since=3": 4, "?since=3&lastSequence=3": 4,
		fmt.Sprint("?lastSequence=", last): len(log), "?lastSequence=99999&timeout=1": len(log), "?timeout=60&unheardOf=1": 0,
		"?afterSequence=5": 0, // v2's name says nothing here
	} {
		a := s.do("GET", at+query, nil).want(t, 200)
		var page struct{ Events []json.RawMessage }
		if err := json.Unmarshal(a.body, &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Events) != len(log)-from {
			t.Errorf("%s: %d events, want %d", query, len(page.Events), len(log)-from)
		} else if len(page.Events) > 0 && !bytes.Equal(page.Events[0], log[from]) {
			t.Errorf("%s begins with %s", query, page.Events[0])
		}
		if a.json["isComplete"] != true || a.json["isTerminal"] != true || a.json["runStatus"] != "completed" || a.json["lastEventSeq"] != float64(last) || a.json["runId"] != bareID(id) {
			t.Errorf("%s: %.300s", query, a.body)
		}
		if a.json["events"] == nil {
			t.Errorf("%s: events is no list", query)
		}
	}
	for _, query := range []string{
		"lastSequence=-1", "lastSequence=x", "lastSequence=", "lastSequence=1.5", "since=-1", "since=x", "lastSequence=1&since=2", "lastSequence=1&lastSequence=1",
		"timeout=0", "timeout=61", "timeout=x", "timeout=",
	} {
		s.do("GET", at+"?"+query, nil).refused(t, 400, "validation_error")
	}
	s.do("GET", "/v1/runs/no-such-run/events/poll", nil).refused(t, 404, "not_found")
	// Nothing comes behind the cursor of a run that waits: the answer is an empty page.
	all := len(s.poll1(waits))
	a := s.do("GET", fmt.Sprint("/v1/runs/", waits, "/events/poll?timeout=1&lastSequence=", all-1), nil).want(t, 200)
	if len(a.json["events"].([]any)) != 0 || a.json["isComplete"] != false || a.json["lastEventSeq"] != float64(all-1) {
		t.Errorf("%s", a.body)
	}
}

// A log that v1 wrote comes out in its own words, and in those of v2 on the other wire.
func TestV1ReadsItsOwnEra(t *testing.T) {
	t.Parallel()
	s := start(t, withSeams, withV1)
	a := s.do("POST", seedSeam, oldRun("run.resuming"))
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	id := a.str("runId")
	want := []string{"run.started", "agent.toolCalled", "run.resuming", "run.completed"}
	var got, framed []string
	for i, doc := range s.poll1(id) {
		var e event1
		if err := json.Unmarshal(doc, &e); err != nil {
			t.Fatal(err)
		}
		validV1(t, "run-event", doc) // its payloads are somebody else's
		got = append(got, e.Type)
		if i == 1 && e.CausationID != "somebodys-own-cause" {
			t.Errorf("the cause of theirs: %s", doc)
		}
	}
	for _, f := range s.subscribeAt("/v1/runs/" + bareID(id) + "/events?streamMode=debug").frames() {
		framed = append(framed, f.name)
	}
	var bundled []string
	b, _ := s.readBundle(s.do("GET", "/v1/runs/"+bareID(id)+"/debug-bundle", nil).want(t, 200))
	for _, e := range b.Events {
		bundled = append(bundled, e.Type)
	}
	for where, types := range map[string][]string{"poll": got, "stream": framed, "bundle": bundled} {
		if !slices.Equal(types, want) {
			t.Errorf("%s: %v", where, types)
		}
	}
	if types := s.types(id); !slices.Contains(types, "agent.tool-called") {
		t.Errorf("v2: %v", types)
	}
}

// Runs that a run starts are named bare, wherever v1 names them.
func TestV1EventsNameRunsBare(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(flow("child", []any{step("c", "core.noop", nil)}, []any{}))
	s.register(flow("parent", []any{step("p", "core.subWorkflow", map[string]any{"workflowId": "child"})}, []any{}))
	id := s.run1("parent")
	s.await1(id, "completed")
	child := ""
	for _, doc := range s.poll1(id) {
		e := validEvent1(t, doc)
		var p struct {
			ChildRunID string
			Outputs    struct{ ChildRunID string }
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "node.dispatched":
			child = p.ChildRunID
		case "node.completed", "run.completed":
			if p.Outputs.ChildRunID != child || child == "" {
				t.Errorf("%s names %q, not %q", e.Type, p.Outputs.ChildRunID, child)
			}
		}
	}
	s.await1(child, "completed") // the name leads there
}

// A bundle of v1 holds the same run and log in v1's words, each event under its older
// names as well.
func TestV1Bundle(t *testing.T) {
	t.Parallel()
	s, id := talker(t, withV1)
	at := "/v1/runs/" + bareID(id) + "/debug-bundle"
	b, raw := s.readBundle(s.do("GET", at, nil).want(t, 200))
	if b.BundleVersion != "1.0" || b.Run.RunID != bareID(id) || b.Run.Status != "completed" || b.Truncated || !b.RedactionApplied || b.RedactionMode != "mask" {
		t.Errorf("%.600s", raw)
	}
	log := s.poll1(id)
	if len(b.Events) != len(log) {
		t.Fatalf("%d events, want %d", len(b.Events), len(log))
	}
	for i, doc := range log {
		e, got := validEvent1(t, doc), b.Events[i]
		if got.Sequence != e.Sequence || got.Seq == nil || *got.Seq != e.Sequence || got.Type != e.Type || string(got.Data) != string(e.Payload) || string(got.Payload) != string(e.Payload) {
			t.Errorf("event %d is %+v, want %s", i, got, doc)
		}
	}
	for n := range len(log) + 1 {
		b, _ := s.readBundle(s.do("GET", fmt.Sprint(at, "?maxEvents=", n), nil).want(t, 200))
		if len(b.Events) != n || b.Truncated != (n < len(log)) {
			t.Errorf("maxEvents=%d: %d events, truncated %v", n, len(b.Events), b.Truncated)
		}
	}
	s.do("GET", at+"?maxEvents=x", nil).refused(t, 400, "validation_error")
	s.do("GET", "/v1/runs/no-such-run/debug-bundle", nil).refused(t, 404, "not_found")

	s.register(flow("plain", []any{step("a", "core.noop", nil)}, []any{}))
	in := s.run1("plain", map[string]any{"inputs": map[string]any{"userField": "input-canary"}})
	s.await1(in, "completed")
	if _, raw := s.readBundle(s.do("GET", "/v1/runs/"+in+"/debug-bundle", nil).want(t, 200)); bytes.Contains(raw, []byte("canary")) {
		t.Errorf("an input that nobody declared: %s", raw)
	}
	s.register(flow("clears", []any{step("c", "core.clarificationGate", map[string]any{"questions": []any{map[string]any{"id": "q", "question": "?"}}})}, []any{}))
	ask := s.run1("clears")
	s.await1(ask, "waiting-input")
	if b, _ := s.readBundle(s.do("GET", "/v1/runs/"+ask+"/debug-bundle", nil).want(t, 200)); b.Run.Status != "waiting-clarification" {
		t.Errorf("status %s", b.Run.Status)
	}
}

// A host that does not serve v1 has none of this.
func TestV1EventsAreOff(t *testing.T) {
	t.Parallel()
	s, id := talker(t, func(*fermata.Config) {})
	for _, path := range []string{"/events", "/events/poll", "/debug-bundle"} {
		s.do("GET", "/v1/runs/"+bareID(id)+path, nil).refused(t, 404, "not_found")
	}
}

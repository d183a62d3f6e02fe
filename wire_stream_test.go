package fermata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
	"github.com/fermata-run/fermata/schema"
)

// talker is a host with a workflow whose run has events of all three tiers and
// is over.
func talker(t *testing.T, change ...func(*fermata.Config)) (*server, string) {
	t.Helper()
	s := start(t, append(change, func(c *fermata.Config) {
		c.Nodes = append(c.Nodes, node.Type{ID: "test.talk", Description: "Streams a few words.", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
			for i, word := range []string{"One ", "two\n", "three"} {
				if err := in.Services.Chunk(word, i == 2); err != nil {
					return node.Result{}, err
				}
			}
			in.Log("info", "said it", nil)
			return node.Done(nil), nil
		}})
	})...)
	s.register(flow("talk", []any{
		step("set", "core.flow.set", map[string]any{"variables": map[string]any{"v": "1 + 1"}}), step("t", "test.talk", nil),
		step("ok", "core.approvalGate", map[string]any{"title": "Well?"}), step("end", "core.noop", nil),
	}, []any{edge("set", "t"), edge("t", "ok"), edge("ok", "end")}, map[string]any{"variables": []any{map[string]any{"name": "v", "type": "number"}}}))
	id := s.run("talk")
	s.await(id, "waiting-approval")
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.await(id, "completed")
	return s, id
}

// tier is the mode beside debug in which the protocol shows a type.
func tier(typ string) string {
	switch {
	case typ == "output.chunk":
		return "messages"
	case slices.Contains([]string{"run.started", "run.completed", "node.completed", "node.suspended", "approval.requested", "approval.received", "approval.granted", "interrupt.requested", "interrupt.resolved"}, typ):
		return "updates"
	}
	return ""
}

// Every mode and combination, resumed from every position: exactly the events
// that follow, in order, under the right name.
func TestWireStreamModes(t *testing.T) {
	t.Parallel()
	s, id := talker(t)
	log := s.docs(id)
	for _, mode := range []string{"", "updates", "messages", "debug", "updates,messages", "messages,updates", "updates,debug", "messages,debug", "debug,updates,messages", "updates,updates"} {
		distinct := map[string]bool{}
		for m := range strings.SplitSeq(mode, ",") {
			distinct[m] = true
		}
		if mode == "" {
			distinct = map[string]bool{"updates": true}
		}
		for after := -1; after < len(log); after++ {
			query := ""
			if mode != "" {
				query = "?streamMode=" + mode
			}
			header := []string{}
			if after >= 0 {
				header = []string{"Last-Event-ID", strconv.Itoa(after)}
			}
			frames := s.subscribe(id, query, header...).frames()
			var want []string
			for _, doc := range log[after+1:] {
				e := validEvent(t, doc)
				in := tier(e.Type)
				switch {
				case in != "" && distinct[in]:
				case distinct["debug"]:
					in = "debug"
				default:
					continue
				}
				name := in
				if len(distinct) == 1 {
					name = e.Type
					if in == "messages" {
						name = "ai.message.chunk"
					}
				}
				data := string(doc)
				if in == "messages" && !distinct["debug"] {
					data = string(e.Payload)
				}
				want = append(want, fmt.Sprint(e.Sequence, " ", name, " ", data))
			}
			var got []string
			for _, f := range frames {
				got = append(got, fmt.Sprint(f.seq(t), " ", f.name, " ", string(f.data)))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("mode %q after %d:\n%s\nwant\n%s", mode, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// The values mode shows a snapshot after each change, and one first on resuming.
func TestWireStreamValues(t *testing.T) {
	t.Parallel()
	s, id := talker(t)
	log := s.docs(id)
	var changes []int64
	for _, doc := range log {
		if e := validEvent(t, doc); tier(e.Type) == "updates" {
			changes = append(changes, e.Sequence)
		}
	}
	for after := -1; after < len(log); after++ {
		header := []string{}
		want := []int64{}
		if after >= 0 {
			header = []string{"Last-Event-ID", strconv.Itoa(after)}
			want = append(want, -1)
		}
		for _, seq := range changes {
			if seq > int64(after) {
				want = append(want, seq)
			}
		}
		var got []int64
		var last frame
		for _, f := range s.subscribe(id, "?streamMode=values", header...).frames() {
			if f.name != "state.snapshot" {
				t.Fatalf("frame %q", f.name)
			}
			if err := schema.Validate("run-snapshot", f.data); err != nil {
				t.Error(err)
			}
			got, last = append(got, f.seq(t)), f
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %d: ids %v, want %v", after, got, want)
		}
		if now := s.do("GET", "/runs/"+seg(id), nil).body; !equalJSON(t, last.data, now) {
			t.Errorf("after %d the last snapshot is\n%s\nwant\n%s", after, last.data, now)
		}
	}
}

// With bufferMs events come in batches; nothing is lost or repeated, and the id
// of a batch is a cursor.
func TestWireStreamBatches(t *testing.T) {
	t.Parallel()
	s, id := talker(t)
	log := s.docs(id)
	for _, buffer := range []string{"0", "1", "5000"} {
		for _, after := range []int{-1, 0, len(log) - 2, len(log) - 1} {
			header := []string{}
			if after >= 0 {
				header = []string{"Last-Event-ID", strconv.Itoa(after)}
			}
			var got []string
			for _, f := range s.subscribe(id, "?streamMode=debug&bufferMs="+buffer, header...).frames() {
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
				if e := validEvent(t, docs[len(docs)-1]); e.Sequence != f.seq(t) {
					t.Errorf("a batch up to %d has id %s", e.Sequence, f.id)
				}
			}
			want := []string{}
			for _, d := range log[after+1:] {
				want = append(want, string(d))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("bufferMs %s after %d:\n%v\nwant\n%v", buffer, after, got, want)
			}
		}
	}
}

func TestWireStreamRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	at := "/runs/" + seg(id) + "/events"
	for _, mode := range []string{"", "all", "Updates", "values,updates", "updates,values", "values,values", "updates,", ",updates", "updates, debug", "updates%00", "updates%0A"} {
		a := s.do("GET", at+"?streamMode="+strings.ReplaceAll(mode, " ", "%20"), nil).refused(t, 400, "unsupported_stream_mode")
		if got := jsonOf(t, a.json["details"].(map[string]any)["supported"]); got != `["values","updates","messages","debug"]` {
			t.Errorf("supported %s", got)
		}
	}
	s.do("GET", at+"?streamMode=debug&streamMode=debug", nil).refused(t, 400, "validation_error")
	for _, buffer := range []string{"-1", "5001", "x", "", "1.5", "1e3", "%2B1", "0x10"} {
		s.do("GET", at+"?bufferMs="+buffer, nil).refused(t, 400, "validation_error")
	}
	for _, cursor := range []string{"x", "-1", "+1", "1.0", "0x1", "1,2", "\xff"} {
		a := s.do("GET", at, nil, "Last-Event-ID", cursor).refused(t, 400, "validation_error")
		if a.json["details"].(map[string]any)["field"] != "Last-Event-ID" {
			t.Errorf("%s", a.body)
		}
	}
	// The cursor changes nothing for whoever may not read the run.
	s.do("GET", "/runs/default~2F0123456789abcdef/events", nil, "Last-Event-ID", "x").refused(t, 404, "not_found")
	s.do("GET", "/runs/other~2F0123456789abcdef/events", nil, "Last-Event-ID", "x").refused(t, 403, "id_tenant_mismatch")
}

// A cursor ahead of the log is an exclusive one like any other: nothing up to it
// is sent, what comes behind it is, and the stream ends with the run.
func TestWireStreamCursorAhead(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"debug", "updates", "values"} {
		s := start(t)
		s.register(gate("gate"))
		id := s.run("gate")
		s.await(id, "waiting-approval")
		last := len(s.docs(id)) - 1
		far := []*subscription{}
		for _, cursor := range []string{"100000", "9007199254740993", "9223372036854775807", "99999999999999999999"} {
			far = append(far, s.subscribe(id, "?streamMode="+mode, "Last-Event-ID", cursor))
		}
		near := s.subscribe(id, "?streamMode="+mode, "Last-Event-ID", strconv.Itoa(last+2))
		s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
		for _, sub := range far {
			for _, f := range sub.frames() {
				if f.seq(t) >= 0 {
					t.Errorf("%s: frame %s %s behind a cursor far ahead", mode, f.id, f.name)
				}
			}
		}
		got := near.frames()
		if len(got) == 0 || got[len(got)-1].seq(t) != int64(len(s.docs(id))-1) {
			t.Errorf("%s: the end did not come: %v", mode, got)
		}
		for _, f := range got {
			if q := f.seq(t); q >= 0 && q <= int64(last+2) {
				t.Errorf("%s: frame %d behind the cursor %d", mode, q, last+2)
			}
		}
		for _, f := range s.subscribe(id, "?streamMode="+mode, "Last-Event-ID", "100000").frames() {
			if f.seq(t) >= 0 {
				t.Errorf("%s: frame %s of a run that is over", mode, f.id)
			}
		}
	}
}

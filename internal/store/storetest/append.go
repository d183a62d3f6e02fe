package storetest

import (
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

func roundTrip(e *env) {
	l := e.create(e.id("acme"))
	l.check()
	l.grow(note("one"))
	l.grow(notes(7)...)
	done := l.next(event.Draft{Type: event.RunCompleted, Causation: 3, Payload: jsontext.Value(`{"outputs":{},"durationMs":5}`)})
	done.Row.Status, done.Row.CompletedAt = "completed", e.tick()
	e.ok(l.write(done))
	l.check()
	e.reopen()
	l.check()
}

// exactBytes: what goes in comes out, byte for byte, also after a restart.
func exactBytes(e *env) {
	l := e.create(e.id("acme"))
	for _, payload := range []string{
		`{}`,
		`{"v":null}`,
		"{\"planes\":\"a\u00e9\u20ac\U0001F600\U0002070E\"}",
		"{\"separators\":\"\u2028\u2029\u0085\"}",
		`{"escaped":"\u0000\u001f\u2028\ud83d\ude00\/\n"}`,
		`{"big":123456789012345678901234567890,"precise":0.1000000000000000055511151231257827,"e":1e400,"zero":-0.0}`,
		`{"b":1,"a":2,"":3,"A":4}`,
		`{ "spaces" : [ 1 , 2 ] }`,
		`{"quote":"it's \"%s\" \\ $1 ? :x @y"}`,
		`{"deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`,
	} {
		l.grow(raw(payload))
	}
	// All of them once more, in one step.
	all := l.next()
	for _, old := range l.events[1:] {
		all.Row.Seq++
		old := event.Event{Run: old.Run, Seq: all.Row.Seq, Type: old.Type, NodeID: "no\u2028de",
			Time: old.Time, Causation: old.Seq, Payload: old.Payload}
		all.Events = append(all.Events, old)
	}
	e.ok(l.write(all))
	l.check()
	e.reopen()
	l.check()
}

func largePayloads(e *env) {
	l := e.create(e.id("acme"))
	big := func(c string) event.Draft { return raw(`{"data":"` + strings.Repeat(c, 4<<20/len(c)) + `"}`) }
	l.grow(big("x"))
	l.grow(note("between"), big("\u20ac"), note("after"))
	a := l.next(note("last"))
	a.Checkpoint = &store.Checkpoint{Seq: 1, State: []byte(strings.Repeat("s", 4<<20))}
	e.ok(l.write(a))
	e.reopen()
	l.check()
	loaded, err := e.s.Runs().Load(e.ctx, l.row.ID)
	e.ok(err)
	if string(loaded.Checkpoint.State) != string(a.Checkpoint.State) {
		e.Fatal("the checkpoint's state differs")
	}
}

// sealedPayloads stay beside the document and never show in it.
func sealedPayloads(e *env) {
	l := e.create(e.id("acme"))
	sealed := func(secret string) event.Draft {
		d := raw(`{"token":"***"}`)
		d.Sealed = jsontext.Value(secret)
		return d
	}
	l.grow(sealed(`{"token":"s3cret","n":12345678901234567890}`))
	l.grow(note("open"), sealed("{\"token\":\"\u2028 \\u0000 s3cret\"}"), note("open"), sealed(`"s3cret"`), note("open"))
	e.reopen()
	l.check()
	for after := int64(-1); after <= l.row.Seq; after++ {
		_, events := e.read(l.row.ID, after, 0, 0)
		e.sameEvents(events, l.events[after+1:])
		for i := range events {
			if strings.Contains(string(events[i].Doc()), "s3cret") {
				e.Fatalf("event %d shows its sealed payload", events[i].Seq)
			}
		}
	}
}

// rowRoundTrip: all of the row is written at creation, its changing part later.
func rowRoundTrip(e *env) {
	id, parent := e.id("acme"), e.id("acme")
	l := e.create(id, func(a *store.Append) {
		a.Row.Parent, a.Row.ParentNode, a.Row.Notify = parent, "spawn", true
		a.Row.Tags, a.Row.Error = []byte(`["a","\u00e9"]`), []byte(`{"code":"x"}`)
		a.Row.Epoch, a.Row.Instance, a.Row.WakeAt = 7, "host-1", e.tick()
	})
	l.check()

	a := l.next(note("changed"))
	a.Row.Status, a.Row.Epoch, a.Row.Instance, a.Row.CurrentNode = "failed", 9, "", ""
	a.Row.StartedAt, a.Row.CompletedAt, a.Row.WakeAt = e.tick(), e.tick(), e.tick()
	a.Row.Notify, a.Row.Error = false, []byte(`{"code":"y","n":1.0}`)
	want := a.Row
	// What does not change is not taken from a later step.
	a.Row.WorkflowID, a.Row.WorkflowVersion, a.Row.CreatedAt = "other", "2", e.tick()
	a.Row.Parent, a.Row.ParentNode, a.Row.Tags, a.Row.Owner = e.id("acme"), "other", nil, nil
	e.ok(l.write(a))
	l.row = want
	l.check()

	a = l.next()
	a.Row.WakeAt, a.Row.Error = epoch0.AddDate(-80, 0, 0), nil // before 1970
	e.ok(l.write(a))
	e.reopen()
	l.check()
}

// malformedSteps would leave a log that cannot be read: they are refused.
func malformedSteps(e *env) {
	l := e.create(e.id("acme"))
	other := e.id("acme")
	for name, spoil := range map[string]func(a *store.Append){
		"a gap":             func(a *store.Append) { a.Events[1].Seq++; a.Row.Seq++ },
		"an overlap":        func(a *store.Append) { a.Events[0].Seq-- },
		"swapped events":    func(a *store.Append) { a.Events[0], a.Events[1] = a.Events[1], a.Events[0] },
		"a hole":            func(a *store.Append) { a.Events[0].Seq += 7 },
		"a wrong end":       func(a *store.Append) { a.Row.Seq++ },
		"no end":            func(a *store.Append) { a.Row.Seq = a.ExpectedSeq },
		"another run":       func(a *store.Append) { a.Events[1].Run = other },
		"another tenant":    func(a *store.Append) { a.Events[1].Run.Tenant = "evil" },
		"broken JSON":       func(a *store.Append) { a.Events[1].Payload = jsontext.Value(`{"a":`) },
		"no payload":        func(a *store.Append) { a.Events[1].Payload = nil },
		"a raw newline":     func(a *store.Append) { a.Events[1].Payload = jsontext.Value("{\n}") },
		"invalid UTF-8":     func(a *store.Append) { a.Events[1].Payload = jsontext.Value("{\"a\":\"\xff\"}") },
		"broken sealed":     func(a *store.Append) { a.Events[1].Sealed = jsontext.Value(`{},"9":{}`) },
		"a late checkpoint": func(a *store.Append) { a.Checkpoint = &store.Checkpoint{Seq: a.Row.Seq + 1} },
	} {
		a := l.next(note("one"), note("two"))
		spoil(a)
		if err := e.s.Runs().Append(e.ctx, a); err == nil {
			e.Fatalf("a step with %s was written", name)
		}
		l.check()
	}
}

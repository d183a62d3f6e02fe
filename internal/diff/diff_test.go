package diff

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

func log(opaque string, at time.Time, payloads ...string) []event.Event {
	id := ids.Run{Tenant: "acme", Opaque: opaque}
	var out []event.Event
	for i, p := range payloads {
		typ := event.LogAppended
		if p[0] == '!' {
			typ, p = event.NodeCompleted, p[1:]
		}
		out = append(out, event.Event{Run: id, Seq: int64(i), Type: typ, NodeID: "n", Time: at, Causation: -1, Payload: jsontext.Value(p)})
	}
	return out
}

func over(events []event.Event) Next {
	return func() (*event.Event, error) {
		if len(events) == 0 {
			return nil, nil
		}
		e := &events[0]
		events = events[1:]
		return e, nil
	}
}

func TestLogs(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := func(p ...string) []event.Event { return log("aaaaaaaaaaaaaaaa", noon, p...) }
	b := func(p ...string) []event.Event { return log("bbbbbbbbbbbbbbbb", noon.Add(time.Hour), p...) }
	for _, c := range []struct {
		name string
		a, b []event.Event
		at   int64 // -1 for none
		ops  string
	}{
		{"empty", nil, nil, -1, "[]"},
		{"the same", a(`{"x":1}`, `{"y":[1,2]}`), b(`{ "x": 1 }`, `{"y":[1, 2]}`), -1, "[]"},
		{"members in another order", a(`{"x":{"a":1,"b":2}}`), b(`{"x":{"b":2,"a":1}}`), -1, "[]"},
		{"numbers no float tells apart", a(`{"x":9007199254740993}`), b(`{"x":9007199254740992}`), 0, "[changed]"},
		{"what belongs to a run", a(`!{"durationMs":3,"interruptId":"acme/q","outputs":{"childRunId":"acme/z","v":1},"x-fermata":{"a":1}}`),
			b(`!{"outputs":{"v":1},"durationMs":4}`), -1, "[]"},
		{"keys made of the run", a(`{"key":"aaaaaaaaaaaaaaaa:n:1:0"}`), b(`{"key":"bbbbbbbbbbbbbbbb:n:1:0"}`), -1, "[]"},
		{"a value", a(`{"x":1}`, `{"x":1}`), b(`{"x":1}`, `{"x":2}`), 1, "[changed]"},
		{"a nested duration is no time of the run", a(`{"f":{"durationMs":1}}`), b(`{"f":{"durationMs":2}}`), 0, "[changed]"},
		{"the type", a(`{"x":1}`), b(`!{"x":1}`), 0, "[changed]"},
		{"shorter", a(`{"x":1}`, `{"x":2}`), b(`{"x":1}`), 1, "[removed]"},
		{"longer", a(), b(`{"x":1}`, `{"x":2}`), 0, "[added added]"},
	} {
		for range 2 { // it changes nothing it reads
			r, err := Logs(over(c.a), over(c.b))
			ops := []string{}
			for _, e := range r.Entries {
				ops = append(ops, e.Op)
				if (e.AEvent == nil) != (e.Op == Added) || (e.BEvent == nil) != (e.Op == Removed) {
					t.Errorf("%s: %+v", c.name, e)
				}
			}
			at := int64(-1)
			if r.DivergedAtSeq != nil {
				at = *r.DivergedAtSeq
			}
			if err != nil || at != c.at || fmt.Sprint(ops) != c.ops || r.Truncated {
				t.Errorf("%s: %v at %d %v", c.name, err, at, ops)
			}
		}
	}
}

func TestLogsAreBounded(t *testing.T) {
	read := 0
	endless := func() (*event.Event, error) {
		read++
		e := log("aaaaaaaaaaaaaaaa", time.Time{}, `{"x":1}`)[0]
		e.Seq = int64(read)
		return &e, nil
	}
	r, err := Logs(endless, over(nil))
	if err != nil || len(r.Entries) != MaxEntries || !r.Truncated || read > MaxEntries+1 {
		t.Errorf("%v: %d entries after %d events, truncated %v", err, len(r.Entries), read, r.Truncated)
	}
	bad := errors.New("disk")
	if _, err := Logs(over(nil), func() (*event.Event, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Errorf("a log that cannot be read: %v", err)
	}
}

func TestMembers(t *testing.T) {
	a := map[string]jsontext.Value{"same": []byte(`{"x": 1}`), "other": []byte(`1`), "gone": []byte(`"a"`)}
	b := map[string]jsontext.Value{"same": []byte(`{"x":1}`), "other": []byte(`2`), "new": []byte(`[]`)}
	got := Members(a, b)
	if len(got) != 3 || string(got["other"].A)+string(got["other"].B) != "12" || string(got["gone"].B) != "null" || string(got["new"].A) != "null" {
		t.Errorf("%+v", got)
	}
}

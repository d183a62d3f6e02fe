package sqlite

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestCut: no segment is larger than a reader of one event should have to read,
// unless that event is.
func TestCut(t *testing.T) {
	a := newStep(1000)
	for i := range a.Events {
		size := 10
		switch {
		case i == 500:
			size = 3 << 20
		case i > 600 && i%2 == 0:
			size = 50 << 10
		case i > 600:
			a.Events[i].Sealed = jsontext.Value(`"` + strings.Repeat("s", 50<<10) + `"`)
		}
		a.Events[i].Payload = jsontext.Value(`"` + strings.Repeat("x", size) + `"`)
	}
	next := int64(0)
	for _, s := range cut(a.Events) {
		if s.seq != next || s.n > maxSegmentEvents || s.n > 1 && len(s.body)+len(s.sealed) > maxSegmentBytes+8<<10 {
			t.Errorf("segment at %d, want %d, with %d events and %d+%d bytes", s.seq, next, s.n, len(s.body), len(s.sealed))
		}
		next += int64(s.n)
	}
	if next != 1000 {
		t.Errorf("%d events", next)
	}
}

// FuzzSegment: a damaged row gives an error or events of the run in order, and
// never ends the process.
func FuzzSegment(f *testing.F) {
	a := newStep(3)
	a.Events[1].Sealed = []byte(`{"secret":1}`)
	good := cut(a.Events)[0]
	f.Add(int64(0), int64(3), good.body, good.sealed, int64(-1), 10, 1<<20)
	f.Add(int64(0), int64(3), good.body, good.sealed, int64(1), 1, 1)
	f.Add(int64(0), int64(4), good.body, []byte(`{"1":`), int64(0), 0, 0)
	f.Add(int64(0), int64(1), bytes.Replace(good.body, []byte("acme"), []byte("evil"), 1), []byte(nil), int64(-1), 0, 0)
	f.Add(int64(-5), int64(-1), []byte("\n\n"), []byte("[]"), int64(9), -1, -1)
	f.Fuzz(func(t *testing.T, seq, n int64, body, sealed []byte, after int64, limit, maxBytes int) {
		p := page{run: a.Row.ID, after: after, limit: limit, maxBytes: maxBytes}
		before := bytes.Clone(body)
		err := p.add(seq, int(n), body, sealed)
		if !bytes.Equal(body, before) {
			t.Fatal("the row was changed")
		}
		if limit > 0 && len(p.events) > limit {
			t.Fatalf("%d events with limit %d", len(p.events), limit)
		}
		for i := range p.events {
			e := &p.events[i]
			if e.Run != a.Row.ID || e.Seq <= after || i > 0 && e.Seq != p.events[i-1].Seq+1 {
				t.Fatalf("event %d of run %s after %d: %v", e.Seq, e.Run, after, err)
			}
		}
	})
}

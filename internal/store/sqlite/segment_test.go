package sqlite

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/store/segment"
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
	for _, s := range segment.Cut(a.Events) {
		if s.Seq != next || s.N > segment.MaxEvents || s.N > 1 && len(s.Body)+len(s.Sealed) > segment.MaxBytes+8<<10 {
			t.Errorf("segment at %d, want %d, with %d events and %d+%d bytes", s.Seq, next, s.N, len(s.Body), len(s.Sealed))
		}
		next += int64(s.N)
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
	good := segment.Cut(a.Events)[0]
	f.Add(int64(0), int64(3), good.Body, good.Sealed, int64(-1), 10, 1<<20)
	f.Add(int64(0), int64(3), good.Body, good.Sealed, int64(1), 1, 1)
	f.Add(int64(0), int64(4), good.Body, []byte(`{"1":`), int64(0), 0, 0)
	f.Add(int64(0), int64(1), bytes.Replace(good.Body, []byte("acme"), []byte("evil"), 1), []byte(nil), int64(-1), 0, 0)
	f.Add(int64(-5), int64(-1), []byte("\n\n"), []byte("[]"), int64(9), -1, -1)
	f.Fuzz(func(t *testing.T, seq, n int64, body, sealed []byte, after int64, limit, maxBytes int) {
		p := segment.Page{Run: a.Row.ID, After: after, Limit: limit, MaxBytes: maxBytes}
		before := bytes.Clone(body)
		err := p.Add(seq, int(n), body, sealed)
		if !bytes.Equal(body, before) {
			t.Fatal("the row was changed")
		}
		if limit > 0 && len(p.Events) > limit {
			t.Fatalf("%d events with limit %d", len(p.Events), limit)
		}
		for i := range p.Events {
			e := &p.Events[i]
			if e.Run != a.Row.ID || e.Seq <= after || i > 0 && e.Seq != p.Events[i-1].Seq+1 {
				t.Fatalf("event %d of run %s after %d: %v", e.Seq, e.Run, after, err)
			}
		}
	})
}

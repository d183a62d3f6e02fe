package diff

import (
	"bytes"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what one diff lists. What lies beyond is cut off, and said to be.
const (
	MaxEntries = 1000
	MaxBytes   = 2 << 20
)

// How two logs differ at a sequence: only b has an event there, only a has one, or
// the two differ.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Next gives a log's next event, nil at its end.
type Next func() (*event.Event, error)

// Doc writes an event as a reader sees it.
type Doc func(*event.Event) []byte

// Entry is one difference. The events are as their readers see them.
type Entry struct {
	Seq    int64          `json:"seq"`
	Op     string         `json:"op"`
	AEvent jsontext.Value `json:"aEvent,omitzero"`
	BEvent jsontext.Value `json:"bEvent,omitzero"`
}

// Result is how two logs differ.
type Result struct {
	DivergedAtSeq *int64 // nil if they do not
	Entries       []Entry
	Truncated     bool // there are more differences than are listed
}

// Logs compares two logs, sequence by sequence.
func Logs(a, b Next) (Result, error) { return LogsIn(a, b, (*event.Event).Doc) }

// LogsIn is Logs for a reader who sees events in another form.
func LogsIn(a, b Next, doc Doc) (Result, error) {
	r := Result{Entries: []Entry{}}
	for size := 0; ; {
		x, err := a()
		if err != nil {
			return r, err
		}
		y, err := b()
		if err != nil {
			return r, err
		}
		if x == nil && y == nil {
			return r, nil
		}
		e, differ := compare(x, y, doc)
		if !differ {
			continue
		}
		if r.DivergedAtSeq == nil {
			seq := e.Seq
			r.DivergedAtSeq = &seq
		}
		size += len(e.AEvent) + len(e.BEvent)
		if len(r.Entries) >= MaxEntries || size > MaxBytes && len(r.Entries) > 0 {
			r.Truncated = true
			return r, nil
		}
		r.Entries = append(r.Entries, e)
	}
}

func compare(x, y *event.Event, doc Doc) (Entry, bool) {
	switch {
	case x == nil:
		return Entry{Seq: y.Seq, Op: Added, BEvent: doc(y)}, true
	case y == nil:
		return Entry{Seq: x.Seq, Op: Removed, AEvent: doc(x)}, true
	case bytes.Equal(x.Essence(), y.Essence()):
		return Entry{}, false
	}
	return Entry{Seq: x.Seq, Op: Changed, AEvent: doc(x), BEvent: doc(y)}, true
}

// Pair is a value on both sides; null where a side has none.
type Pair struct {
	A jsontext.Value `json:"a"`
	B jsontext.Value `json:"b"`
}

// Members compares two JSON objects member by member.
func Members(a, b map[string]jsontext.Value) map[string]Pair {
	out := map[string]Pair{}
	for name, x := range a {
		if y, ok := b[name]; !ok || !same(x, y) {
			out[name] = Pair{x, orNull(y)}
		}
	}
	for name, y := range b {
		if _, ok := a[name]; !ok {
			out[name] = Pair{orNull(nil), y}
		}
	}
	return out
}

func same(a, b jsontext.Value) bool {
	return bytes.Equal(event.Canonical(a), event.Canonical(b))
}

func orNull(v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return jsontext.Value("null")
	}
	return v
}

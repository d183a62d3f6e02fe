package segment

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of one segment: a reader that wants one event reads its whole segment.
const (
	MaxEvents = 256
	MaxBytes  = 1 << 20
)

// Segment is some events of one run that follow each other, as one row.
type Segment struct {
	Seq    int64 // of the first event
	N      int
	Body   []byte
	Sealed []byte // nil or a JSON object by sequence
}

// Cut divides the events of one step into segments.
func Cut(events []event.Event) []Segment {
	var out []Segment
	for len(events) > 0 {
		n, size := 0, 0
		for n < len(events) && n < MaxEvents {
			size += len(events[n].Doc()) + len(events[n].Sealed) + 1
			if n > 0 && size > MaxBytes {
				break
			}
			n++
		}
		out = append(out, newSegment(events[:n]))
		events = events[n:]
	}
	return out
}

func newSegment(events []event.Event) Segment {
	s := Segment{Seq: events[0].Seq, N: len(events), Sealed: seal(events)}
	if len(events) == 1 {
		s.Body = events[0].Doc()
		return s
	}
	size := 0
	for i := range events {
		size += len(events[i].Doc()) + 1
	}
	s.Body = make([]byte, 0, size)
	for i := range events {
		if i > 0 {
			s.Body = append(s.Body, '\n')
		}
		s.Body = append(s.Body, events[i].Doc()...)
	}
	return s
}

// seal collects the payloads that masking has changed, by sequence.
func seal(events []event.Event) []byte {
	var b []byte
	for i := range events {
		if events[i].Sealed == nil {
			continue
		}
		if b == nil {
			b = append(b, '{')
		} else {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = strconv.AppendInt(b, events[i].Seq, 10)
		b = append(b, `":`...)
		b = append(b, events[i].Sealed...)
	}
	if b != nil {
		b = append(b, '}')
	}
	return b
}

// unseal is the reverse of seal. The payloads are parts of b.
func unseal(b []byte) (map[int64][]byte, error) {
	if b == nil {
		return nil, nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, errors.Join(errors.New("sealed payloads are no JSON object"), err)
	}
	out := map[int64][]byte{}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		seq, err := strconv.ParseInt(name.String(), 10, 64)
		if err != nil {
			return nil, err
		}
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		out[seq] = bytes.Clone(v)
	}
	_, err := d.ReadToken()
	return out, err
}

// Page collects events of one run until it is full.
type Page struct {
	Run             ids.Run
	After           int64 // only events above this sequence
	Limit, MaxBytes int   // no bound if not positive

	Events []event.Event
	bytes  int
}

// Full says whether the page takes no more.
func (p *Page) Full() bool { return p.filled(len(p.Events), p.bytes) }

// filled says whether so many events of so many bytes are enough. None are not.
func (p *Page) filled(events, bytes int) bool {
	return p.Limit > 0 && events >= p.Limit || p.MaxBytes > 0 && bytes >= p.MaxBytes
}

// Add decodes what p wants of a segment. body is not kept.
func (p *Page) Add(seq int64, n int, body, sealed []byte) error {
	if seq+int64(n) <= p.After+1 {
		return nil // all of it lies below the cursor
	}
	for ; seq <= p.After; seq, n = seq+1, n-1 {
		_, rest, ok := bytes.Cut(body, []byte{'\n'})
		if !ok {
			return fmt.Errorf("segment ends before event %d", seq+1)
		}
		body = rest
	}
	secrets, err := unseal(sealed)
	if err != nil {
		return fmt.Errorf("segment at %d: %w", seq, err)
	}
	body = p.wanted(body) // one copy, shared by its events
	for ; n > 0 && !p.Full(); seq, n = seq+1, n-1 {
		doc, rest, _ := bytes.Cut(body, []byte{'\n'})
		e, err := event.Decode(doc[:len(doc):len(doc)], secrets[seq])
		if err != nil {
			return fmt.Errorf("event %d: %w", seq, err)
		}
		if e.Seq != seq || e.Run != p.Run {
			return fmt.Errorf("event %d is stored in place of event %d of run %s", e.Seq, seq, p.Run)
		}
		p.Events = append(p.Events, e)
		p.bytes += len(doc)
		body = rest
	}
	return nil
}

// wanted copies the part of a body that fits into the page.
func (p *Page) wanted(body []byte) []byte {
	events, size := len(p.Events), p.bytes
	for end := 0; !p.filled(events, size); events++ {
		n := bytes.IndexByte(body[end:], '\n')
		if n < 0 {
			return bytes.Clone(body)
		}
		size += n
		if end += n + 1; p.filled(events+1, size) {
			return bytes.Clone(body[:end])
		}
	}
	return nil
}

package sqlite

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
	maxSegmentEvents = 256
	maxSegmentBytes  = 1 << 20
)

// segment is one row of the events table.
type segment struct {
	seq    int64
	n      int
	body   []byte
	sealed []byte // nil or a JSON object by sequence
}

// cut divides the events of one step into segments.
func cut(events []event.Event) []segment {
	var out []segment
	for len(events) > 0 {
		n, size := 0, 0
		for n < len(events) && n < maxSegmentEvents {
			size += len(events[n].Doc()) + len(events[n].Sealed) + 1
			if n > 0 && size > maxSegmentBytes {
				break
			}
			n++
		}
		out = append(out, newSegment(events[:n]))
		events = events[n:]
	}
	return out
}

func newSegment(events []event.Event) segment {
	s := segment{seq: events[0].Seq, n: len(events), sealed: seal(events)}
	if len(events) == 1 {
		s.body = events[0].Doc()
		return s
	}
	size := 0
	for i := range events {
		size += len(events[i].Doc()) + 1
	}
	s.body = make([]byte, 0, size)
	for i := range events {
		if i > 0 {
			s.body = append(s.body, '\n')
		}
		s.body = append(s.body, events[i].Doc()...)
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

// page collects events of one run until it is full.
type page struct {
	run             ids.Run
	after           int64
	limit, maxBytes int // no bound if not positive

	events []event.Event
	bytes  int
}

func (p *page) full() bool { return p.filled(len(p.events), p.bytes) }

// filled says whether so many events of so many bytes are enough. None are not.
func (p *page) filled(events, bytes int) bool {
	return p.limit > 0 && events >= p.limit || p.maxBytes > 0 && bytes >= p.maxBytes
}

// add decodes what p wants of a segment. body is not kept.
func (p *page) add(seq int64, n int, body, sealed []byte) error {
	if seq+int64(n) <= p.after+1 {
		return nil // all of it lies below the cursor
	}
	for ; seq <= p.after; seq, n = seq+1, n-1 {
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
	for ; n > 0 && !p.full(); seq, n = seq+1, n-1 {
		doc, rest, _ := bytes.Cut(body, []byte{'\n'})
		e, err := event.Decode(doc[:len(doc):len(doc)], secrets[seq])
		if err != nil {
			return fmt.Errorf("event %d: %w", seq, err)
		}
		if e.Seq != seq || e.Run != p.run {
			return fmt.Errorf("event %d is stored in place of event %d of run %s", e.Seq, seq, p.run)
		}
		p.events = append(p.events, e)
		p.bytes += len(doc)
		body = rest
	}
	return nil
}

// wanted copies the part of a body that fits into the page.
func (p *page) wanted(body []byte) []byte {
	events, size := len(p.events), p.bytes
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

package storetest

import (
	"fmt"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/store"
)

// everyCursor reads from every position of a log of uneven steps.
func everyCursor(e *env) {
	l := e.create(e.id("acme"))
	neighbour := e.create(e.id("acme")) // whose events must not be read along
	for _, n := range []int{1, 3, 1, 7, 2, 64, 5} {
		l.grow(notes(n)...)
		neighbour.grow(notes(2)...)
	}
	for _, limit := range []int{1, 2, 5, 1000} {
		for after := int64(-1); after <= l.row.Seq; after++ {
			run, events := e.read(l.row.ID, after, limit, 0)
			e.sameRun(run, l.row)
			want := l.events[after+1:]
			e.sameEvents(events, want[:min(limit, len(want))])
		}
	}
	for _, past := range []int64{l.row.Seq + 1, l.row.Seq + 1000, 1 << 53} {
		run, events := e.read(l.row.ID, past, 10, 0)
		e.sameRun(run, l.row)
		e.sameEvents(events, nil)
	}
	_, _, err := e.s.Runs().Events(e.ctx, e.id("acme"), -1, 10, 1<<20)
	e.fails(err, store.ErrNotFound)
	_, err = e.s.Runs().Load(e.ctx, e.id("acme"))
	e.fails(err, store.ErrNotFound)
}

func pagesByCount(e *env) {
	l := e.create(e.id("acme"))
	for i := range 10 {
		l.grow(notes(i + 1)...)
	}
	for limit := 1; limit < 15; limit++ {
		var all []event.Event
		for after := int64(-1); ; {
			_, events := e.read(l.row.ID, after, limit, 0)
			if len(events) > limit {
				e.Fatalf("%d events with limit %d", len(events), limit)
			}
			all = append(all, events...)
			if len(events) < limit {
				break
			}
			after = events[len(events)-1].Seq
		}
		e.sameEvents(all, l.events)
	}
}

// pagesBySize: a page stops at about maxBytes, but never holds nothing.
func pagesBySize(e *env) {
	l := e.create(e.id("acme"))
	largest := 0
	for i := range 12 {
		l.grow(raw(fmt.Sprintf(`{"data":%q}`, strings.Repeat("x", 700*i))), note("small"), note("small"))
	}
	for i := range l.events {
		largest = max(largest, len(l.events[i].Doc()))
	}
	for _, maxBytes := range []int{1, 500, 5000, 20000, 1 << 20} {
		var all []event.Event
		for after := int64(-1); after < l.row.Seq; {
			_, events := e.read(l.row.ID, after, 0, maxBytes)
			if len(events) == 0 {
				e.Fatalf("no events after %d with %d bytes", after, maxBytes)
			}
			size := 0
			for i := range events {
				size += len(events[i].Doc())
			}
			if size > maxBytes+largest {
				e.Fatalf("%d bytes in a page of %d", size, maxBytes)
			}
			all = append(all, events...)
			after = events[len(events)-1].Seq
		}
		e.sameEvents(all, l.events)
	}
	_, events := e.read(l.row.ID, -1, 0, 1)
	e.sameEvents(events, l.events[:1])
}

// longSegments: one step may have more events than a backend keeps together.
func longSegments(e *env) {
	l := e.create(e.id("acme"))
	l.grow(notes(2000)...)
	wide := make([]event.Draft, 40)
	for i := range wide {
		wide[i] = raw(fmt.Sprintf(`{"i":%d,"data":%q}`, i, strings.Repeat("y", 100<<10)))
		if i%7 == 0 {
			wide[i].Sealed = []byte(fmt.Sprintf(`{"i":%d}`, i))
		}
	}
	l.grow(wide...)
	l.grow(note("end"))
	l.check()
	for _, after := range []int64{0, 254, 255, 256, 257, 511, 1999, 2000, 2001, 2009, 2039, 2040, 2041} {
		_, events := e.read(l.row.ID, after, 0, 0)
		e.sameEvents(events, l.events[after+1:])
		_, events = e.read(l.row.ID, after, 3, 0)
		e.sameEvents(events, l.events[after+1:min(int(after)+4, len(l.events))])
	}
}

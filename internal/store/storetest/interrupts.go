package storetest

import (
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// interrupt makes the nth interrupt of a run. Its id says nothing about time.
func (l *log) interrupt(n int) store.Interrupt {
	node := fmt.Sprintf("ask-%d", n)
	return store.Interrupt{
		ID: ids.Interrupt(l.row.ID, node, 0, n).Opaque, Run: l.row.ID, NodeID: node, Kind: "approval",
		Key: fmt.Sprintf("key:%d", n), Data: []byte("{\"question\":\"\u2028?\",\"n\":1.0}"), CreatedAt: l.e.tick(),
	}
}

// open is every open interrupt of a tenant.
func (e *env) inbox(tenant string) []store.Interrupt {
	e.Helper()
	all, err := e.s.Runs().OpenInterrupts(e.ctx, tenant, "", 1000)
	e.ok(err)
	return all
}

func (e *env) noInterrupts(tenant string) {
	e.Helper()
	same(e, "open interrupts", len(e.inbox(tenant)), 0)
}

func interrupts(e *env) {
	l := e.create(e.id("acme"))
	one, two, three := l.interrupt(1), l.interrupt(2), l.interrupt(3)
	two.ExpiresAt, two.Data, two.Key = e.now.Add(time.Hour), nil, ""
	a := l.next(note("asks"))
	a.Opened = []store.Interrupt{one, two}
	e.ok(l.write(a))
	same(e, "inbox", e.inbox("acme"), []store.Interrupt{one, two})

	a = l.next(note("answered, asks again"))
	a.Closed, a.Opened = []string{one.ID}, []store.Interrupt{three}
	e.ok(l.write(a))
	e.reopen()
	same(e, "inbox", e.inbox("acme"), []store.Interrupt{two, three})

	// Closing what is not open does nothing; a row-only step may close.
	a = l.next()
	a.Closed = []string{one.ID, e.id("acme").Opaque, two.ID, three.ID}
	e.ok(l.write(a))
	e.noInterrupts("acme")
	l.check()

	// Opening one that is there fails the whole step.
	a = l.next(note("asks"))
	a.Opened = []store.Interrupt{l.interrupt(4)}
	e.ok(l.write(a))
	open := e.inbox("acme")
	b := l.next(note("asks the same"))
	b.Opened = []store.Interrupt{l.interrupt(5), a.Opened[0]}
	e.fails(e.s.Runs().Append(e.ctx, b), store.ErrExists)
	same(e, "inbox", e.inbox("acme"), open)
	l.check()
}

// interruptPages reads the inbox in pages, oldest first, while it changes.
func interruptPages(e *env) {
	var want []store.Interrupt
	var logs []*log
	for range 4 {
		logs = append(logs, e.create(e.id("acme")))
	}
	for n := range 24 {
		l := logs[n%4]
		i := l.interrupt(n)
		a := l.next(note("asks"))
		a.Opened = []store.Interrupt{i}
		e.ok(l.write(a))
		want = append(want, i)
	}
	for _, limit := range []int{1, 5, 24, 25} {
		var got []store.Interrupt
		for after := ""; ; after = got[len(got)-1].ID {
			page, err := e.s.Runs().OpenInterrupts(e.ctx, "acme", after, limit)
			e.ok(err)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
		}
		same(e, "inbox", got, want)
	}
	// The cursor may be closed by the time it is used.
	a := logs[1].next(note("answered"))
	a.Closed = []string{want[9].ID, want[13].ID}
	e.ok(logs[1].write(a))
	page, err := e.s.Runs().OpenInterrupts(e.ctx, "acme", want[9].ID, 5)
	e.ok(err)
	same(e, "page", page, []store.Interrupt{want[10], want[11], want[12], want[14], want[15]})
	_, err = e.s.Runs().OpenInterrupts(e.ctx, "acme", e.id("acme").Opaque, 5)
	e.fails(err, store.ErrNotFound)
}

func interruptsOfTenants(e *env) {
	mine, other := e.create(e.id("acme")), e.create(e.id("other"))
	i := mine.interrupt(1)
	a := mine.next(note("asks"))
	a.Opened = []store.Interrupt{i}
	e.ok(mine.write(a))
	e.noInterrupts("other")
	_, err := e.s.Runs().OpenInterrupts(e.ctx, "other", i.ID, 5)
	e.fails(err, store.ErrNotFound)
	// Neither another tenant's run nor another run of the tenant can close it.
	for _, l := range []*log{other, e.create(e.id("acme"))} {
		b := l.next(note("closes"))
		b.Closed = []string{i.ID}
		e.ok(l.write(b))
		same(e, "inbox", e.inbox("acme"), []store.Interrupt{i})
	}
	// The same id may be open under two tenants.
	b := other.next(note("asks"))
	j := i
	j.Run = other.row.ID
	b.Opened = []store.Interrupt{j}
	e.ok(other.write(b))
	same(e, "inbox", e.inbox("acme"), []store.Interrupt{i})
	same(e, "inbox", e.inbox("other"), []store.Interrupt{j})
}

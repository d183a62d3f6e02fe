package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
	"pgregory.net/rapid"
)

// model plays random steps and reads against a store and against plain logs in
// memory, and compares what both say.
func model(e *env) {
	rapid.Check(e.T, func(t *rapid.T) {
		m := &machine{e: e, tenant: fmt.Sprintf("t%s", e.mint.Next(e.tick()))}
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create,
			"append": m.append,
			"stale":  m.stale,
			"events": m.events,
			"list":   m.list,
			"expire": m.expire,
			"":       m.check,
		})
	})
}

type machine struct {
	e      *env
	tenant string // fresh in every play, so that all can share a store
	logs   []*log // oldest first
	gone   []*log // expired
}

var statuses = []string{"running", "waiting-approval", "completed", "failed"}

func (m *machine) pick(t *rapid.T) *log {
	if len(m.logs) == 0 {
		t.Skip("no run yet")
	}
	return rapid.SampledFrom(m.logs).Draw(t, "run")
}

func drafts(t *rapid.T) []event.Draft {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.Draft {
		d := note(rapid.StringN(0, 40, -1).Draw(t, "text"))
		if rapid.IntRange(0, 9).Draw(t, "sealed") == 0 {
			d.Sealed = d.Payload
		}
		return d
	}), 0, 12).Draw(t, "events")
}

func (m *machine) create(t *rapid.T) {
	l := &log{e: m.e, row: m.e.newRow(m.e.id(m.tenant))}
	l.row.Status = rapid.SampledFrom(statuses).Draw(t, "status")
	a := l.next(drafts(t)...)
	a.Create = true
	if err := l.write(a); err != nil {
		t.Fatalf("create: %v", err)
	}
	m.logs = append(m.logs, l)
}

func (m *machine) append(t *rapid.T) {
	l := m.pick(t)
	a := l.next(drafts(t)...)
	a.Row.Status = rapid.SampledFrom(statuses).Draw(t, "status")
	a.Row.Epoch += int64(rapid.IntRange(0, 1).Draw(t, "epoch"))
	if a.Row.Seq >= 0 && rapid.Bool().Draw(t, "checkpoint") {
		a.Checkpoint = &store.Checkpoint{Seq: rapid.Int64Range(0, a.Row.Seq).Draw(t, "at"), State: []byte("s")}
	}
	if err := l.write(a); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func (m *machine) stale(t *rapid.T) {
	old := *m.pick(t)
	old.row.Epoch += rapid.SampledFrom([]int64{-1, 0, 1}).Draw(t, "epoch")
	old.row.Seq += rapid.SampledFrom([]int64{-2, -1, 1}).Draw(t, "sequence")
	if err := old.write(old.next(drafts(t)...)); err == nil {
		t.Fatal("a stale step was written")
	}
}

func (m *machine) expire(t *rapid.T) {
	l := m.pick(t)
	over := l.row.Status == "completed" || l.row.Status == "failed"
	gone, err := m.e.s.Retention().Expire(m.e.ctx, m.e.now, []store.Run{l.row})
	if err != nil || (len(gone) == 1) != over {
		t.Fatalf("a run that is %s: %d expired: %v", l.row.Status, len(gone), err)
	}
	if !over {
		return
	}
	m.logs = slices.DeleteFunc(m.logs, func(x *log) bool { return x == l })
	m.gone = append(m.gone, l)
	// One transaction at most: the rest stays for a later one, or for ever.
	_, err = m.e.s.Retention().Clear(m.e.ctx, rapid.IntRange(1, 20).Draw(t, "rows"), 1<<20)
	if err != nil {
		t.Fatalf("clear: %v", err)
	}
}

func (m *machine) events(t *rapid.T) {
	l := m.pick(t)
	after := rapid.Int64Range(-1, l.row.Seq+1).Draw(t, "after")
	limit := rapid.IntRange(1, 20).Draw(t, "limit")
	run, got, err := m.e.s.Runs().Events(m.e.ctx, l.row.ID, after, limit, 1<<20)
	if err != nil || run.Seq != l.row.Seq {
		t.Fatalf("row at %d, want %d: %v", run.Seq, l.row.Seq, err)
	}
	want := l.events[min(int(after)+1, len(l.events)):]
	m.compare(t, got, want[:min(limit, len(want))])
}

func (m *machine) list(t *rapid.T) {
	status := rapid.SampledFrom(append(statuses, "")).Draw(t, "status")
	var want []ids.Run
	for _, l := range slices.Backward(m.logs) {
		if status == "" || l.row.Status == status {
			want = append(want, l.row.ID)
		}
	}
	got, err := m.e.s.Runs().List(m.e.ctx, store.ListQuery{Tenant: m.tenant, Limit: 1000, Status: status})
	if err != nil || !slices.Equal(runIDs(got), want) {
		t.Fatalf("list of %q is %v, want %v: %v", status, runIDs(got), want, err)
	}
}

// check runs after every action.
func (m *machine) check(t *rapid.T) {
	for _, l := range m.gone {
		var x store.Expired
		if _, err := m.e.s.Runs().Get(m.e.ctx, l.row.ID); !errors.As(err, &x) {
			t.Fatalf("run %s: %v, want expired", l.row.ID, err)
		}
	}
	if len(m.logs) == 0 {
		return
	}
	l := m.logs[len(m.logs)-1]
	got, err := m.e.s.Runs().Load(m.e.ctx, l.row.ID)
	if err != nil || got.Run.Epoch != l.row.Epoch || got.Run.Status != l.row.Status {
		t.Fatalf("row is %+v, want %+v: %v", got.Run, l.row, err)
	}
	from := int64(0)
	if got.Checkpoint != nil {
		from = got.Checkpoint.Seq + 1
	}
	m.compare(t, got.Tail, l.events[from:])
}

func (m *machine) compare(t *rapid.T, got, want []event.Event) {
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if err := sameEvent(&got[i], &want[i]); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

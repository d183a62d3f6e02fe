package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

func actionOf(body []byte) string {
	var x struct {
		Action string `json:"action"`
	}
	if json.Unmarshal(body, &x) != nil {
		return "?"
	}
	return x.Action
}

func (e *env) draft(chain, action string) *store.Draft {
	return &store.Draft{Chain: chain, Fact: audit.Fact{
		At: e.tick(), Actor: audit.Actor{Kind: "host"}, Action: action, Outcome: audit.Done, Target: audit.Target{Type: "thing", ID: "x"},
	}}
}

// chained walks a chain from its start and holds it against its head. It returns the
// actions in order.
func (e *env) chained(chain string) (actions []string) {
	e.Helper()
	head, err := e.s.Audit().Head(e.ctx, chain)
	e.ok(err)
	w := audit.Walk(chain, audit.Position{}, nil, nil)
	for {
		list, err := e.s.Audit().Entries(e.ctx, chain, w.End().Sequence, 3)
		e.ok(err)
		if len(list) == 0 {
			break
		}
		for _, x := range list {
			w.Add(x.Sequence, x.Body)
			actions = append(actions, actionOf(x.Body))
		}
	}
	w.Close(head.Position, 0)
	if !w.Valid() {
		e.Fatalf("chain %s does not hold: %+v %v", chain, w.Anomalies, w.BadCheckpoints)
	}
	return actions
}

func auditChains(e *env) {
	log := e.s.Audit()
	head, err := log.Head(e.ctx, "acme")
	e.ok(err)
	same(e, "empty head", head, store.Head{Chain: "acme"})
	first := e.draft("acme", "a")
	e.ok(log.Append(e.ctx, first, e.draft("acme", "b"), e.draft(audit.HostChain, "h")))
	same(e, "written", first.Written(), true)
	e.ok(log.Append(e.ctx, e.draft("acme", "c"), e.draft("evil", "e")))
	e.ok(log.Append(e.ctx)) // nothing is no failure
	e.reopen()
	log = e.s.Audit()
	same(e, "acme", e.chained("acme"), []string{"a", "b", "c"})
	same(e, "host", e.chained(audit.HostChain), []string{"h"})
	same(e, "evil", e.chained("evil"), []string{"e"})
	same(e, "nobody", e.chained("nobody"), []string(nil))

	latest := func(below int64, limit int) (out []string) {
		list, err := log.Latest(e.ctx, "acme", below, limit)
		e.ok(err)
		for _, x := range list {
			out = append(out, fmt.Sprint(x.Sequence)+actionOf(x.Body))
		}
		return out
	}
	same(e, "latest", latest(0, 2), []string{"3c", "2b"})
	same(e, "below", latest(2, 10), []string{"1a"})
	heads, err := log.Heads(e.ctx, "", 2)
	e.ok(err)
	same(e, "first heads", []string{heads[0].Chain, heads[1].Chain}, []string{audit.HostChain, "acme"})
	heads, err = log.Heads(e.ctx, "acme", 2)
	e.ok(err)
	same(e, "last head", []string{heads[0].Chain}, []string{"evil"})
	same(e, "waiting", heads[0].Waiting, e.now)

	bad := e.draft("acme", "")
	if err := log.Append(e.ctx, e.draft("evil", "lost"), bad); err == nil || bad.Written() {
		e.Fatal("a fact without an action is written")
	}
	same(e, "evil", e.chained("evil"), []string{"e"})
}

// auditedChanges: an entry is there exactly if its change is.
func auditedChanges(e *env) {
	l := e.create(e.id("acme"))
	var want []string
	n := 0
	each := func(name string, change func(context.Context) error) {
		e.Helper()
		n++
		d := e.draft("acme", name)
		ctx := store.Audited(e.ctx, d)
		e.ok(change(ctx))
		same(e, name+" takes its entry along", d.Written(), true)
		want = append(want, name)
		same(e, "chain after "+name, e.chained("acme"), want)
		same(e, "open drafts", len(store.Drafts(ctx)), 0)
	}
	each("run", func(ctx context.Context) error { return e.s.Runs().Append(ctx, l.next(note("x"))) })
	each("workflow", func(ctx context.Context) error {
		_, err := e.s.Workflows().Put(ctx, e.workflow("acme", "greet", "1"))
		return err
	})
	each("delete", func(ctx context.Context) error { return e.s.Workflows().Delete(ctx, "acme", "greet") })
	key := store.Key{ID: "k", Hash: []byte("h"), Tenant: "acme", CreatedAt: e.now}
	each("key", func(ctx context.Context) error { return e.s.Keys().Add(ctx, key) })
	each("secret", func(ctx context.Context) error {
		return e.s.Secrets().Add(ctx, store.Secret{Purpose: "p", ID: "i", Value: []byte("v"), CreatedAt: e.now})
	})
	hook := store.Subscription{Tenant: "acme", ID: "hook-0000000000001", URL: "https://x", Events: []string{"run.completed"}, Secret: "s", CreatedAt: e.now}
	each("webhook", func(ctx context.Context) error { return e.s.Webhooks().Add(ctx, hook, 10) })
	each("webhook gone", func(ctx context.Context) error { return e.s.Webhooks().Remove(ctx, "acme", hook.ID) })

	// A change that fails takes nothing with it, a read neither; and the entry can
	// still go along with the next change.
	d := e.draft("acme", "later")
	ctx := store.Audited(e.ctx, d)
	stale := l.next(note("x"))
	stale.ExpectedSeq -= 2
	for i := range stale.Events {
		stale.Events[i].Seq -= 2
	}
	stale.Row.Seq -= 2
	e.fails(e.s.Runs().Append(ctx, stale), store.ErrStale)
	e.fails(e.s.Keys().Add(ctx, key), store.ErrExists)
	e.fails(e.s.Workflows().Delete(ctx, "acme", "nothing"), store.ErrNotFound)
	_, err := e.s.Runs().Get(ctx, l.row.ID)
	e.ok(err)
	same(e, "written", d.Written(), false)
	same(e, "chain", e.chained("acme"), want)
	// What is only on the way to the change does not take it.
	e.ok(e.s.Secrets().Drop(store.Unaudited(ctx), "p", "i"))
	same(e, "written", d.Written(), false)
	e.ok(e.s.Audit().Append(ctx, e.draft("evil", "of itself")))
	same(e, "written", d.Written(), false)
	e.ok(e.s.Secrets().Drop(ctx, "p", "i"))
	e.ok(e.s.Secrets().Drop(ctx, "p", "i"))
	same(e, "chain", e.chained("acme"), append(want, "later"))
}

// auditRace: many writers at once make one chain, without a fork or a gap.
func auditRace(e *env) {
	const writers, each = 8, 25
	var wg sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				d := &store.Draft{Chain: "acme", Fact: audit.Fact{
					At: epoch0, Actor: audit.Actor{Kind: "host"}, Action: fmt.Sprint(w, "-", i), Outcome: audit.Done,
				}}
				errs <- e.s.Audit().Append(e.ctx, d)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		e.ok(err)
	}
	got := e.chained("acme")
	same(e, "entries", len(got), writers*each)
	seen := map[string]bool{}
	for _, a := range got {
		seen[a] = true
	}
	same(e, "different entries", len(seen), writers*each)
}

// auditCheckpoints: a checkpoint follows the one before, once, and says since when
// what is behind it waits. A cut stays behind them.
func auditCheckpoints(e *env) {
	log := e.s.Audit()
	var drafts []*store.Draft
	for i := range 6 {
		drafts = append(drafts, e.draft("acme", fmt.Sprint("a", i)))
	}
	e.ok(log.Append(e.ctx, drafts...))
	e.ok(log.Append(e.ctx, e.draft("evil", "x")))
	point := func(from, at int64) audit.Checkpoint {
		return audit.Checkpoint{ID: fmt.Sprint("acme/", at), From: from, AtSequence: at, Root: "r", KeyID: "k", Signature: "s", At: "t"}
	}
	open := func() (out []string) {
		list, err := log.Unanchored(e.ctx, "", 10)
		e.ok(err)
		for _, h := range list {
			out = append(out, fmt.Sprint(h.Chain, " ", h.Anchored, " ", h.Waiting.Sub(epoch0)))
		}
		return out
	}
	same(e, "unanchored", open(), []string{"acme 0 1ms", "evil 0 7ms"})
	e.fails(log.Anchor(e.ctx, "acme", point(1, 3), time.Time{}), store.ErrStale)
	e.fails(log.Anchor(e.ctx, "acme", point(0, 7), time.Time{}), store.ErrStale)
	e.fails(log.Anchor(e.ctx, "nobody", point(0, 1), time.Time{}), store.ErrStale)
	e.ok(log.Anchor(e.ctx, "acme", point(0, 2), drafts[2].At))
	e.fails(log.Anchor(e.ctx, "acme", point(0, 2), drafts[2].At), store.ErrStale)
	same(e, "unanchored", open(), []string{"acme 2 3ms", "evil 0 7ms"})
	e.ok(log.Anchor(e.ctx, "acme", point(2, 4), time.Time{})) // without news of what waits, it is as before
	same(e, "unanchored", open(), []string{"acme 4 3ms", "evil 0 7ms"})
	e.ok(log.Anchor(e.ctx, "acme", point(4, 6), epoch0))
	same(e, "unanchored", open(), []string{"evil 0 7ms"})
	e.ok(log.Append(e.ctx, e.draft("acme", "more")))
	same(e, "unanchored", open(), []string{"acme 6 8ms", "evil 0 7ms"})
	after, err := log.Unanchored(e.ctx, "acme", 10)
	e.ok(err)
	same(e, "after acme", len(after), 1)

	e.reopen()
	log = e.s.Audit()
	list, err := log.Checkpoints(e.ctx, "acme", 2, 10)
	e.ok(err)
	same(e, "checkpoints", list, []audit.Checkpoint{point(2, 4), point(4, 6)})
	list, err = log.Checkpoints(e.ctx, "acme", 0, 1)
	e.ok(err)
	same(e, "first", list, []audit.Checkpoint{point(0, 2)})
	list, err = log.Checkpoints(e.ctx, "evil", 0, 10)
	e.ok(err)
	same(e, "of another chain", len(list), 0)

	_, err = log.LastCut(e.ctx, "acme")
	e.fails(err, store.ErrNotFound)
	mark := audit.Mark{Chain: "acme", Sequence: 4, Hash: "h", At: "t", KeyID: "k", Signature: "s"}
	beyond := mark
	beyond.Sequence = 7
	_, err = log.Cut(e.ctx, "acme", beyond, 10)
	e.fails(err, store.ErrStale)
	for _, want := range []int{3, 1, 0} {
		n, err := log.Cut(e.ctx, "acme", mark, 3)
		e.ok(err)
		same(e, "removed", n, want)
	}
	is, err := log.LastCut(e.ctx, "acme")
	e.ok(err)
	same(e, "cut", is, mark)
	back := mark
	back.Sequence = 2
	_, err = log.Cut(e.ctx, "acme", back, 10)
	e.fails(err, store.ErrStale)
	rest, err := log.Entries(e.ctx, "acme", 0, 10)
	e.ok(err)
	same(e, "rest", []int64{int64(len(rest)), rest[0].Sequence}, []int64{3, 5})
	list, err = log.Checkpoints(e.ctx, "acme", 0, 10)
	e.ok(err)
	same(e, "checkpoints stay", len(list), 3)
	same(e, "another chain", e.chained("evil"), []string{"x"})
}

// everyAudit calls each method once.
func (e *env) everyAudit(ctx context.Context, keep func(string, error)) {
	log := e.s.Audit()
	keep("Audit.Append", log.Append(ctx, &store.Draft{Chain: "late", Fact: audit.Fact{At: epoch0, Actor: audit.Actor{Kind: "host"}, Action: "a", Outcome: audit.Done}}))
	_, err := log.Head(ctx, "late")
	keep("Audit.Head", err)
	_, err = log.Entries(ctx, "late", 0, 1)
	keep("Audit.Entries", err)
	_, err = log.Latest(ctx, "late", 0, 1)
	keep("Audit.Latest", err)
	_, err = log.Checkpoints(ctx, "late", 0, 1)
	keep("Audit.Checkpoints", err)
	_, err = log.Unanchored(ctx, "", 1)
	keep("Audit.Unanchored", err)
	_, err = log.Heads(ctx, "", 1)
	keep("Audit.Heads", err)
	keep("Audit.Anchor", log.Anchor(ctx, "late", audit.Checkpoint{ID: "late/1", AtSequence: 1, Root: "r", KeyID: "k", Signature: "s", At: "t"}, time.Time{}))
	mark := audit.Mark{Chain: "late", Sequence: 1, Hash: "h", At: "t", KeyID: "k", Signature: "s"}
	_, err = log.Cut(ctx, "late", mark, 1)
	keep("Audit.Cut", err)
	_, err = log.LastCut(ctx, "late")
	keep("Audit.LastCut", err)
}

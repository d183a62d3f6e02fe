package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// Populated is a store with rows in every table, as it was when its host died.
type Populated struct {
	e       *env
	acme    *property
	key     store.Key
	secret  store.Secret
	master  store.DataKey
	exact   *log // payloads of every kind
	owned   *log // in the hands of an instance that died
	asleep  *log // parked, due now
	child   *log // with news for its parent
	fork    *log
	gone    *log // expired
	swept   time.Time
	staged  ids.Run
	letter  store.DeadLetter
	held    store.Delivery
	clock   store.Clock
	flow    store.Workflow
	nightly store.Schedule
}

// Populate fills the empty store that belongs to dir, and closes it.
func Populate(t *testing.T, open Open, dir string) *Populated {
	t.Helper()
	e := &env{T: t, ctx: t.Context(), open: open, dir: dir, mint: &ids.Minter{}, now: epoch0}
	e.s = open(t, dir)
	p := &Populated{e: e}
	e.register("i1")
	p.acme = e.property("acme")
	p.runs()
	p.host()
	p.queue()
	p.chain()
	e.ok(e.s.Close())
	return p
}

func (p *Populated) runs() {
	e := p.e
	p.exact = e.create(e.id("acme"))
	for _, payload := range []string{`{"escaped":"\u0000\ud83d\ude00"}`, "{\"raw\":\"\u2028\u00e9\"}", `{ "n" : 1.00, "e":1e400 }`} {
		p.exact.grow(raw(payload))
	}
	p.exact.grow(notes(300)...)
	p.exact.grow(raw(`{"data":"` + strings.Repeat("\u20ac", 200<<10) + `"}`))
	p.owned = e.create(e.id("acme"), owned("i1"), func(a *store.Append) {
		a.Row.Error, a.Row.Tags, a.Row.Workspace, a.Scope = []byte("{\"m\":\"\\u0000\"}"), []byte(`["a"]`), "eu", "sc\x00pe"
	})
	closed := p.owned.next(note("answered"))
	asked := p.acme.log.interrupt(2)
	asked.Run = p.owned.row.ID
	closed.Opened, closed.Checkpoint = []store.Interrupt{asked}, &store.Checkpoint{Seq: 0, State: []byte("s")}
	e.ok(p.owned.write(closed))
	closed = p.owned.next()
	closed.Closed = []string{asked.ID}
	e.ok(p.owned.write(closed))
	p.asleep = e.create(e.id("acme"), asleep(e.now))
	p.child = e.create(e.id("acme"), func(a *store.Append) { a.Row.Parent, a.Row.ParentNode, a.Row.Notify = p.asleep.row.ID, "spawn", true })
	p.fork = e.create(e.id("acme"), func(a *store.Append) {
		a.Row.ForkMode, a.Row.ForkSource, a.Row.ForkSeq, a.Row.ForkOptions = "branch", p.exact.row.ID, 7, []byte(`{"tags":["a"]}`)
		a.Row.Status, a.Row.CompletedAt, a.Row.Compensation = "completed", e.now, "succeeded"
	})
	p.staged = e.id("acme")
	e.stagedLog(p.staged, 40, 30)
	p.gone = e.over("acme")
	p.swept = e.now
	same(e, "expired", e.expire(p.gone), []ids.Run{p.gone.row.ID})
}

func (p *Populated) host() {
	e := p.e
	p.key = e.key("acme", "two", 0, 1, 0xff)
	p.key.OldHash, p.key.OldUntil = []byte{7, 0}, e.now.Add(time.Minute)
	e.ok(e.s.Keys().Add(e.ctx, p.key))
	p.secret = store.Secret{Purpose: "tokens", ID: "b", Value: []byte{0, 1, 0xff, 0}, CreatedAt: e.tick()}
	e.ok(e.s.Secrets().Add(e.ctx, p.secret))
	p.master = store.DataKey{Tenant: "acme", ID: "k1", Master: "m1", Wrapped: []byte{0, 0xff}, CreatedAt: e.tick()}
	e.ok(e.s.Vault().Change(e.ctx, store.VaultChange{Add: []store.DataKey{p.master}}))
	p.flow = e.workflow("acme", "greet", "2")
	p.flow.Definition = append(p.flow.Definition, "\\ud800 \x00\xff\xed\xa0\x80"...) // no text at all
	p.flow = e.put(p.flow)
	e.scheduled("acme", "nightly", "1", e.schedule("at 3 \x00\xff", "{}", e.now.Add(time.Hour)), e.schedule("never", "{ }", time.Time{}))
	p.nightly = e.schedules("acme")[0]
	p.nightly.LastAt, p.nightly.LastRun = e.now, "r1"
	e.ok(e.s.Schedules().Move(e.ctx, p.nightly))
	p.nightly.Revision++
	p.clock = store.Clock{Trusted: e.now}
	e.ok(e.s.Retention().SetClock(e.ctx, store.Clock{}, p.clock))
	e.ok(e.s.Idempotency().Finish(e.ctx, done(e.granted(e.request("acme", "createRun", "finished", "d", "i1"), 1))))
	e.finishes(e.performs(e.wants(p.exact.row.ID, "two", 1, "i1"), 1), store.EffectCompleted, "{\"o\":\"\x00\"}")
	e.performs(e.wants(p.exact.row.ID, "three", 1, "i1"), 1)
}

// queue leaves one delivery in the hands of who died, and one dead letter.
func (p *Populated) queue() {
	e := p.e
	hook := p.acme.hook
	l := e.create(e.id("acme"), func(a *store.Append) { e.matched(a) })
	p.letter = store.DeadLetter{
		Tenant: "acme", Subscription: hook.ID, ID: e.mint.Next(e.now), Run: l.row.ID, EventID: ids.Event(l.row.ID, 0), EventType: "run.started",
		Attempts: 3, Reason: "retries_exhausted", LastStatus: 500, At: e.now, ExpiresAt: e.now.Add(time.Hour),
	}
	x := e.one("i1", hook)
	e.ok(e.s.Deliveries().Settle(e.ctx, store.Settlement{Delivery: x, Next: 1, Letters: []store.DeadLetter{p.letter}, Now: e.now}))
	e.create(e.id("acme"), func(a *store.Append) { e.matched(a) })
	p.held = e.one("i1", hook)
}

// chain leaves a chain whose first entry is cut off, and another one.
func (p *Populated) chain() {
	e := p.e
	for range 4 {
		e.ok(e.s.Audit().Append(e.ctx, e.draft("acme", "a.b"), e.draft(audit.HostChain, "c.d")))
	}
	list, err := e.s.Audit().Entries(e.ctx, "acme", 0, 2)
	e.ok(err)
	hash := audit.Hash(list[1].Body)
	e.ok(e.s.Audit().Anchor(e.ctx, "acme", audit.Checkpoint{ID: "acme/2", AtSequence: 2, Root: "r", KeyID: "k", Signature: "s", At: "t"}, e.now))
	n, err := e.s.Audit().Cut(e.ctx, "acme", audit.Mark{Chain: "acme", Sequence: 2, Hash: hash, At: "t", KeyID: "k", Signature: "s"}, 10)
	e.ok(err)
	same(e, "cut", n, 2)
}

// Check opens the store that belongs to dir, which is to hold what Populate has left,
// and goes on with it as the next host would. raised says that it was moved: fences
// stand higher.
func (p *Populated) Check(t *testing.T, open Open, dir string, raised bool) {
	t.Helper()
	e := &env{T: t, ctx: t.Context(), open: open, dir: dir, mint: p.e.mint, now: p.e.now}
	e.s = open(t, dir)
	defer e.s.Close() //nolint:errcheck // closed below
	for _, l := range []*log{p.acme.log, p.exact, p.owned, p.asleep, p.child, p.fork} {
		l := &log{e: e, row: l.row, events: l.events}
		is := e.get(l.row.ID)
		if higher := is.Epoch > l.row.Epoch+1<<31; higher != raised {
			e.Errorf("epoch %d after %d", is.Epoch, l.row.Epoch)
		}
		if raised {
			e.fails(l.write(l.next(note("of who has known it elsewhere"))), store.ErrStale)
		}
		l.row.Epoch = is.Epoch
		l.check()
	}
	p.same(e)
	e.register("i2")
	e.lose("i1")
	p.goOn(e)
	e.ok(e.s.Close())
}

// same compares what has a reader of its own.
func (p *Populated) same(e *env) {
	same(e, "inbox", e.inbox("acme"), []store.Interrupt{p.acme.interrupt})
	for _, hash := range [][]byte{p.key.Hash, p.key.OldHash} {
		k, err := e.s.Keys().ByHash(e.ctx, hash)
		e.ok(err)
		same(e, "key", k, p.key)
	}
	list, err := e.s.Secrets().List(e.ctx, p.secret.Purpose)
	e.ok(err)
	same(e, "secrets", list, []store.Secret{p.secret})
	masters, err := e.s.Vault().Keys(e.ctx)
	e.ok(err)
	same(e, "data keys", masters, []store.DataKey{p.master})
	e.wantCredential(p.acme.secret)
	e.got(p.acme.hook)
	same(e, "latest", e.getWorkflow("acme", "greet", ""), p.flow)
	if got := e.schedules("acme"); len(got) != 2 {
		e.Errorf("schedules are %+v", got)
	} else {
		same(e, "schedule", got[0], p.nightly)
	}
	clock, err := e.s.Retention().Clock(e.ctx)
	e.ok(err)
	same(e, "clock", clock, p.clock)
	letters, err := e.s.Webhooks().DeadLetters(e.ctx, store.DeadLetterQuery{Tenant: "acme", Subscription: p.acme.hook.ID, Now: e.now})
	e.ok(err)
	same(e, "dead letters", letters, []store.DeadLetter{p.letter})
	e.gone(p.gone, p.swept)
	cut, err := e.s.Audit().LastCut(e.ctx, "acme")
	e.ok(err)
	same(e, "cut", cut.Sequence, int64(2))
	same(e, "the host's chain", len(e.chained(audit.HostChain)), 4)
}

// goOn does what comes next: nobody of before lives, and nothing stands in the way.
func (p *Populated) goOn(e *env) {
	ids := map[string]bool{}
	for _, r := range e.claim("i2", 10) {
		ids[r.ID.Opaque] = true
	}
	if len(ids) != 2 || !ids[p.owned.row.ID.Opaque] || !ids[p.asleep.row.ID.Opaque] {
		e.Errorf("claimed are %v", ids)
	}
	same(e, "news", e.unsettled(5), runIDs([]store.Run{p.child.row}))
	fresh := e.create(e.id("acme"), func(a *store.Append) { e.matched(a) })
	e.put(e.workflow("acme", "greet", "3"))
	e.ok(e.s.Audit().Append(e.ctx, e.draft("acme", "e.f")))
	e.fails(e.s.Keys().Add(e.ctx, e.key("acme", "thief", p.key.OldHash...)), store.ErrExists)

	again := e.wants(p.exact.row.ID, "three", 2, "i2")
	got, mine, err := e.s.Effects().Claim(e.ctx, again)
	e.ok(err)
	same(e, "an effect of who died is in doubt", []any{mine, got.State}, []any{false, store.EffectEscaped})
	e.performs(e.wants(p.exact.row.ID, "four", 1, "i2"), 1)
	tries, err := e.s.Effects().Attempts(e.ctx, p.exact.row.ID, 0, 0)
	e.ok(err)
	for i, a := range tries {
		same(e, "number of an attempt", a.N, int64(i+1))
	}
	same(e, "attempts", len(tries), 3)

	r := e.request("acme", "createRun", "finished", "d", "i2")
	recorded, mine, err := e.s.Idempotency().Claim(e.ctx, r)
	e.ok(err)
	same(e, "a request that was answered", []any{mine, recorded.Outcome.Body}, []any{false, done(r).Outcome.Body})
	_, mine, err = e.s.Idempotency().Claim(e.ctx, e.request("acme", "createRun", "k", "d", "i2"))
	e.ok(err)
	same(e, "a request of who died", mine, true)

	e.now = e.now.Add(time.Hour)
	entries := e.take("i2", "acme", p.acme.hook.ID, 5)
	runs := map[string]bool{}
	for _, x := range entries {
		runs[x.Run.Opaque] = true
	}
	if len(runs) != 2 || !runs[p.held.Run.Opaque] || !runs[fresh.row.ID.Opaque] {
		e.Errorf("deliveries are %+v", entries)
	}
	e.cleared(10, 1<<20)
	n, err := e.s.Runs().Unstage(e.ctx, e.now, 100)
	e.ok(err)
	same(e, "staged logs", n, 1)
}

package storetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

func (e *env) credential(tenant string) store.Credential {
	at := e.tick()
	return store.Credential{
		Tenant: tenant, Ref: "cred_" + e.mint.Next(at), Version: 1, Meta: []byte(`{"name":"\u0000"}`),
		Sealed: []byte{0, 1, 0xff, 0}, CreatedAt: at,
	}
}

func (e *env) wantCredential(want store.Credential) {
	e.Helper()
	got, err := e.s.Credentials().Get(e.ctx, want.Tenant, want.Ref)
	e.ok(err)
	same(e, "credential", got, want)
}

func credentials(e *env) {
	x := e.s.Credentials()
	a, b, other := e.credential("acme"), e.credential("acme"), e.credential("beta")
	b.Run, b.Version, b.Previous, b.PreviousUntil, b.RotatedAt = e.id("acme").Opaque, 7, []byte("old"), e.tick(), e.tick()
	for _, c := range []store.Credential{a, b, other} {
		e.ok(x.Add(e.ctx, c, 2))
	}
	e.fails(x.Add(e.ctx, e.credential("acme"), 2), store.ErrFull)
	again := a
	again.Sealed = []byte("another")
	e.fails(x.Add(e.ctx, again, 0), store.ErrExists)
	twin := a // the tenant is part of the key
	twin.Tenant = "gamma"
	e.ok(x.Add(e.ctx, twin, 1))
	e.reopen()
	x = e.s.Credentials()
	for _, c := range []store.Credential{a, b, other, twin} {
		e.wantCredential(c)
	}
	bare := []store.Credential{a, b}
	for i := range bare {
		bare[i].Sealed, bare[i].Previous = nil, nil
	}
	for after, want := range map[string][]store.Credential{"": bare, a.Ref: bare[1:], b.Ref: nil} {
		got, err := x.List(e.ctx, "acme", after, 10)
		e.ok(err)
		same(e, "list after "+after, got, slices.Clone(want))
	}
	got, err := x.List(e.ctx, "acme", "", 1)
	e.ok(err)
	same(e, "a page", got, bare[:1])

	_, err = x.Get(e.ctx, "acme", other.Ref)
	e.fails(err, store.ErrNotFound)
	e.fails(x.Remove(e.ctx, "acme", other.Ref), store.ErrNotFound)
	e.ok(x.Remove(e.ctx, "acme", a.Ref))
	e.fails(x.Remove(e.ctx, "acme", a.Ref), store.ErrNotFound)
	e.wantCredential(twin)
	for _, bad := range []func(*store.Credential){
		func(c *store.Credential) { c.Tenant = "a/b" }, func(c *store.Credential) { c.Ref = "short" },
		func(c *store.Credential) { c.Run = "/" }, func(c *store.Credential) { c.Version = 0 },
		func(c *store.Credential) { c.Sealed = nil }, func(c *store.Credential) { c.Meta = nil },
	} {
		c := e.credential("acme")
		bad(&c)
		if x.Add(e.ctx, c, 0) == nil {
			e.Errorf("a malformed credential was written: %+v", c)
		}
	}
}

func credentialRotation(e *env) {
	x := e.s.Credentials()
	c := e.credential("acme")
	e.ok(x.Add(e.ctx, c, 0))
	at := e.tick()
	r := store.Rotation{Tenant: "acme", Ref: c.Ref, From: 1, Sealed: []byte("two"), At: at, Until: at.Add(time.Hour)}
	for what, bad := range map[string]store.Rotation{
		"tenant": {Tenant: "beta", Ref: c.Ref, From: 1, Sealed: []byte("x"), At: at, Until: at},
		"ref":    {Tenant: "acme", Ref: e.credential("acme").Ref, From: 1, Sealed: []byte("x"), At: at, Until: at},
	} {
		e.Log(what)
		e.fails(x.Rotate(e.ctx, bad), store.ErrNotFound)
	}
	// Of several rotations of one version, one counts.
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = x.Rotate(e.ctx, r) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			e.fails(err, store.ErrStale)
		}
	}
	same(e, "rotations that count", won, 1)
	c.Version, c.Previous, c.Sealed, c.RotatedAt, c.PreviousUntil = 2, c.Sealed, r.Sealed, r.At, r.Until
	e.wantCredential(c)
	r.From, r.Sealed = 2, []byte("three")
	e.ok(x.Rotate(e.ctx, r))
	e.reopen()
	c.Version, c.Previous, c.Sealed = 3, c.Sealed, r.Sealed
	e.wantCredential(c)
}

// credentialsOfRuns go when their run is over, and not before: what undoes a run
// that has ended may still need them.
func credentialsOfRuns(e *env) {
	x := e.s.Credentials()
	of := func(l *log) store.Credential {
		c := e.credential("acme")
		c.Run = l.row.ID.Opaque
		e.ok(x.Add(e.ctx, c, 0))
		return c
	}
	live, over, undoing := e.create(e.id("acme")), e.create(e.id("acme")), e.create(e.id("acme"))
	kept, gone, used, free := of(live), of(over), of(undoing), e.credential("acme")
	e.ok(x.Add(e.ctx, free, 0))
	orphan := e.credential("acme")
	orphan.Run = e.id("acme").Opaque
	e.ok(x.Add(e.ctx, orphan, 0))
	foreign := e.credential("beta") // the run of this id is another tenant's
	foreign.Run = live.row.ID.Opaque
	e.ok(x.Add(e.ctx, foreign, 0))
	ends := func(l *log, status, undoing string) {
		a := l.next()
		a.Row.Status, a.Row.Compensation = status, undoing
		e.ok(l.write(a))
	}
	ends(over, "completed", "")
	ends(undoing, "failed", "running")

	purge := func(limit, want int) {
		e.Helper()
		n, err := x.PurgeEnded(e.ctx, limit)
		e.ok(err)
		same(e, "purged", n, want)
	}
	purge(1, 1)
	purge(0, 2)
	purge(0, 0)
	for _, c := range []store.Credential{kept, used, free} {
		e.wantCredential(c)
	}
	for _, c := range []store.Credential{gone, orphan, foreign} {
		_, err := x.Get(e.ctx, c.Tenant, c.Ref)
		e.fails(err, store.ErrNotFound)
	}
}

// everyCredential calls what a closed store must refuse.
func (e *env) everyCredential(ctx context.Context, keep func(string, error)) {
	x, v := e.s.Credentials(), e.s.Vault()
	c := e.credential("acme")
	keep("Credentials.Add", x.Add(ctx, c, 0))
	_, err := x.Get(ctx, "acme", c.Ref)
	keep("Credentials.Get", err)
	_, err = x.List(ctx, "acme", "", 1)
	keep("Credentials.List", err)
	keep("Credentials.Rotate", x.Rotate(ctx, store.Rotation{Tenant: "acme", Ref: c.Ref, From: 1, Sealed: []byte("x"), At: e.now, Until: e.now}))
	keep("Credentials.Remove", x.Remove(ctx, "acme", c.Ref))
	_, err = x.PurgeEnded(ctx, 1)
	keep("PurgeEnded", err)
	_, err = v.Keys(ctx)
	keep("Vault.Keys", err)
	_, err = v.Cells(ctx, "none")
	keep("Vault.Cells", err)
	keep("Vault.Change", v.Change(ctx, store.VaultChange{Add: []store.DataKey{{Tenant: "late", ID: "k" + e.mint.Next(e.tick()), Master: "m", Wrapped: []byte("w")}}}))
}

package storetest

import "github.com/fermata-run/fermata/internal/store"

func secrets(e *env) {
	list := func(purpose string, want ...store.Secret) {
		e.Helper()
		got, err := e.s.Secrets().List(e.ctx, purpose)
		e.ok(err)
		same(e, "secrets", got, want)
	}
	list("tokens", []store.Secret(nil)...)
	old := store.Secret{Purpose: "tokens", ID: "b", Value: []byte{0, 1, 0xff, 0}, CreatedAt: e.tick()}
	twin := store.Secret{Purpose: "tokens", ID: "a", Value: []byte("a"), CreatedAt: old.CreatedAt}
	fresh := store.Secret{Purpose: "tokens", ID: "0", Value: []byte("0"), CreatedAt: e.tick()}
	other := store.Secret{Purpose: "hooks", ID: "b", Value: []byte("hook"), CreatedAt: e.tick()}
	for _, s := range []store.Secret{twin, fresh, old, other} {
		e.ok(e.s.Secrets().Add(e.ctx, s))
	}
	again := old
	again.Value = []byte("another")
	e.fails(e.s.Secrets().Add(e.ctx, again), store.ErrExists)
	e.reopen()
	list("tokens", fresh, old, twin)
	list("hooks", other)

	e.ok(e.s.Secrets().Drop(e.ctx, "tokens", "b"))
	e.ok(e.s.Secrets().Drop(e.ctx, "tokens", "b"))
	e.ok(e.s.Secrets().Drop(e.ctx, "nothing", "b"))
	list("tokens", fresh, twin)
	list("hooks", other)
}

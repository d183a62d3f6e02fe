package storetest

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

func vaultKeys(e *env) {
	v := e.s.Vault()
	list := func(want ...store.DataKey) {
		e.Helper()
		got, err := e.s.Vault().Keys(e.ctx)
		e.ok(err)
		same(e, "data keys", got, want)
	}
	list([]store.DataKey(nil)...)
	own := store.DataKey{ID: "k1", Master: "m1", Wrapped: []byte{0, 0xff}, CreatedAt: e.tick()}
	acme := store.DataKey{Tenant: "acme", ID: "k1", Master: "m1", Wrapped: []byte("w"), CreatedAt: own.CreatedAt.Add(-time.Millisecond)}
	fresh := store.DataKey{Tenant: "acme", ID: "k0", Master: "m1", Wrapped: []byte("x"), CreatedAt: e.tick()}
	e.ok(v.Change(e.ctx, store.VaultChange{Add: []store.DataKey{own, acme}}))
	// All or nothing: the second of these is there.
	e.fails(v.Change(e.ctx, store.VaultChange{Add: []store.DataKey{fresh, own}}), store.ErrExists)
	list(acme, own)
	e.ok(v.Change(e.ctx, store.VaultChange{Add: []store.DataKey{fresh}}))
	again := acme
	again.Master, again.Wrapped = "m2", []byte("again")
	e.fails(v.Change(e.ctx, store.VaultChange{Rewrap: []store.DataKey{again, {Tenant: "beta", ID: "k1", Master: "m", Wrapped: []byte("w")}}}), store.ErrNotFound)
	e.ok(v.Change(e.ctx, store.VaultChange{Rewrap: []store.DataKey{again}}))
	e.reopen()
	list(again, own, fresh)
	for _, bad := range []store.DataKey{{Master: "m", Wrapped: []byte("w")}, {ID: "k", Wrapped: []byte("w")}, {ID: "k", Master: "m"}} {
		if e.s.Vault().Change(e.ctx, store.VaultChange{Add: []store.DataKey{bad}}) == nil {
			e.Errorf("a malformed key was written: %+v", bad)
		}
	}
}

// vaultCells: every value there is can be found, and replaced where it is, all at
// once or not at all.
func vaultCells(e *env) {
	e.register("host-1")
	e.ok(e.s.Secrets().Add(e.ctx, store.Secret{Purpose: "p", ID: "i", Value: []byte{0, 0xff}, CreatedAt: e.tick()}))
	sub := e.subscribe("acme")
	e.ok(e.s.Webhooks().Rotate(e.ctx, "acme", sub.ID, "second", e.now, e.now.Add(time.Hour)))
	cred := e.credential("acme")
	cred.Version, cred.Previous, cred.PreviousUntil = 3, []byte("old"), e.now
	e.ok(e.s.Credentials().Add(e.ctx, cred, 0))
	rec := func(endpoint string) store.Record {
		key := sha256.Sum256([]byte(endpoint))
		r := store.Record{Tenant: "acme", Endpoint: endpoint, Key: key[:], Digest: key[:], Instance: "host-1", CreatedAt: e.now, ExpiresAt: e.now.Add(time.Hour)}
		got, _, err := e.s.Idempotency().Claim(e.ctx, r)
		e.ok(err)
		got.Outcome = &store.Outcome{Status: 201, Header: []byte("{}"), Body: []byte("body of " + endpoint)}
		e.ok(e.s.Idempotency().Finish(e.ctx, got))
		return got
	}
	hook := rec("registerWebhook")
	rec("createRun")

	want := []store.Cell{
		{Kind: store.CellSecret, ID: "p", Sub: []byte("i"), Value: []byte{0, 0xff}},
		{Kind: store.CellWebhook, Tenant: "acme", ID: sub.ID, Value: []byte("second")},
		{Kind: store.CellWebhookOld, Tenant: "acme", ID: sub.ID, Value: []byte(sub.Secret)},
		{Kind: store.CellCredential, Tenant: "acme", ID: cred.Ref, At: 3, Value: cred.Sealed},
		{Kind: store.CellCredOld, Tenant: "acme", ID: cred.Ref, At: 2, Value: cred.Previous},
		{Kind: store.CellAnswer, Tenant: "acme", ID: "registerWebhook", Sub: hook.Key, Value: []byte("body of registerWebhook")},
	}
	cells := func() []store.Cell {
		e.Helper()
		got, err := e.s.Vault().Cells(e.ctx, "registerWebhook")
		e.ok(err)
		slices.SortFunc(got, func(a, b store.Cell) int { return strings.Compare(a.Kind, b.Kind) })
		return got
	}
	slices.SortFunc(want, func(a, b store.Cell) int { return strings.Compare(a.Kind, b.Kind) })
	same(e, "cells", cells(), want)

	ch := store.VaultChange{Add: []store.DataKey{{Tenant: "acme", ID: "k", Master: "m", Wrapped: []byte("w"), CreatedAt: e.now}}}
	for i := range want {
		ch.Replace = append(ch.Replace, store.Replaced{Cell: want[i], New: []byte("new " + want[i].Kind)})
	}
	stale := ch
	stale.Replace = slices.Clone(ch.Replace)
	stale.Replace[len(want)-1].Value = []byte("something else")
	e.fails(e.s.Vault().Change(e.ctx, stale), store.ErrStale)
	same(e, "cells after a refusal", cells(), want)
	keys, err := e.s.Vault().Keys(e.ctx)
	e.ok(err)
	same(e, "keys after a refusal", len(keys), 0)

	e.ok(e.s.Vault().Change(e.ctx, ch))
	e.ok(e.s.Vault().Scrub(e.ctx))
	e.reopen()
	for i := range want {
		want[i].Value = []byte("new " + want[i].Kind)
	}
	same(e, "cells replaced", cells(), want)
	got, err := e.s.Webhooks().Get(e.ctx, "acme", sub.ID)
	e.ok(err)
	same(e, "the webhook's secrets", []string{got.Secret, got.Previous}, []string{"new webhook", "new webhook-"})
	empty := store.VaultChange{Replace: []store.Replaced{{Cell: want[0]}}}
	if e.s.Vault().Change(e.ctx, empty) == nil {
		e.Error("a cell was emptied")
	}
}

package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

func (e *env) key(tenant, id string, hash ...byte) store.Key {
	return store.Key{
		ID: id, Tenant: tenant, Hash: hash, Keyed: true, Name: "ci \"\u20ac\"", Kind: "agent", Workspace: "eu",
		Scopes: []string{"runs:read", "runs:*"}, Groups: []string{"ops", "a \"b\""}, Roles: []string{"approver"}, CreatedAt: e.now,
		ExpiresAt: e.now.Add(time.Hour),
	}
}

func keys(e *env) {
	k := e.s.Keys()
	count := func(want int) {
		e.Helper()
		n, err := k.Count(e.ctx)
		e.ok(err)
		same(e, "keys", n, want)
	}
	count(0)
	one, two := e.key("acme", "key_1", 0, 1, 2, 0xff), store.Key{ID: "key_2", Hash: []byte{0, 1, 2}, Tenant: "other",
		Scopes: []string{}, CreatedAt: e.now, RevokedAt: e.tick()}
	one.OldHash, one.OldUntil = []byte{7}, e.now.Add(time.Minute)
	e.ok(k.Add(e.ctx, one))
	e.ok(k.Add(e.ctx, two))
	count(2)
	e.fails(k.Add(e.ctx, one), store.ErrExists)
	for _, change := range []func(*store.Key){
		func(k *store.Key) { k.Hash = []byte("other") },                           // the same id
		func(k *store.Key) { k.ID = "key_3" },                                     // the same hash
		func(k *store.Key) { k.ID, k.Hash = "key_3", []byte{7} },                  // a hash that another has had
		func(k *store.Key) { k.ID, k.Hash, k.OldHash = "3", []byte{8}, one.Hash }, // and the other way round
		func(k *store.Key) { k.Tenant, k.ID = "third", "key_1" },                  // of another tenant
	} {
		again := one
		again.OldHash = nil
		change(&again)
		e.fails(k.Add(e.ctx, again), store.ErrExists)
	}
	count(2)
	e.reopen()
	k = e.s.Keys()
	for _, want := range []store.Key{one, two} {
		for _, h := range [][]byte{want.Hash, want.OldHash} {
			if h == nil {
				continue
			}
			got, err := k.ByHash(e.ctx, h)
			e.ok(err)
			same(e, "key", got, want)
		}
		got, err := k.ByID(e.ctx, want.Tenant, want.ID)
		e.ok(err)
		same(e, "key", got, want)
		list, err := k.List(e.ctx, want.Tenant, "", 0)
		e.ok(err)
		same(e, "keys", list, []store.Key{want})
	}
	// Another tenant's key is not there.
	for _, of := range [][2]string{{"other", "key_1"}, {"acme", "key_2"}, {"", "key_1"}, {"acme", ""}, {"acme", "key_3"}} {
		_, err := k.ByID(e.ctx, of[0], of[1])
		e.fails(err, store.ErrNotFound)
	}
	for _, hash := range [][]byte{nil, {}, {0}, {0, 1, 2, 0xff, 0}} {
		_, err := k.ByHash(e.ctx, hash)
		e.fails(err, store.ErrNotFound)
	}
	list, err := k.Unkeyed(e.ctx, 10)
	e.ok(err)
	same(e, "keys of an older form", list, []store.Key{two})
	count(2)
}

// keyUpdates are seen at once by whoever looks a key up, also by a hash that it has
// been looked up by before.
func keyUpdates(e *env) {
	k := e.s.Keys()
	one, two := e.key("acme", "a", 1), e.key("acme", "b", 2)
	e.ok(k.Add(e.ctx, one))
	e.ok(k.Add(e.ctx, two))
	see := func(hash byte, want store.Key) {
		e.Helper()
		for range 2 { // the second may be answered from memory
			got, err := k.ByHash(e.ctx, []byte{hash})
			e.ok(err)
			same(e, "key", got, want)
		}
	}
	see(1, one)
	one.OldHash, one.OldUntil, one.Hash = []byte{1}, e.tick(), []byte{3}
	one.Name, one.Kind, one.Workspace, one.Scopes, one.Groups, one.Roles = "n", "user", "", []string{"*"}, nil, nil
	one.ExpiresAt = time.Time{}
	e.ok(k.Update(e.ctx, one))
	stale := one
	one.Version++
	see(1, one)
	see(3, one)
	e.fails(k.Update(e.ctx, stale), store.ErrStale)

	one.OldHash, one.OldUntil, one.RevokedAt = nil, time.Time{}, e.tick()
	e.ok(k.Update(e.ctx, one))
	one.Version++
	see(3, one)
	_, err := k.ByHash(e.ctx, []byte{1})
	e.fails(err, store.ErrNotFound)

	two.Hash = []byte{3}
	e.fails(k.Update(e.ctx, two), store.ErrExists)
	two.Hash = []byte{2}
	foreign := two
	foreign.Tenant = "other"
	e.fails(k.Update(e.ctx, foreign), store.ErrNotFound)
	see(2, two)
	var got []store.Key
	for after := ""; ; after = got[len(got)-1].ID {
		page, err := k.List(e.ctx, "acme", after, 1)
		e.ok(err)
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	same(e, "keys", got, []store.Key{one, two})
}

// keyRaces: of many who change a key at once, one does.
func keyRaces(e *env) {
	k := e.s.Keys()
	one := e.key("acme", "a", 1)
	e.ok(k.Add(e.ctx, one))
	won := make(chan byte, 16)
	var wg sync.WaitGroup
	for i := range byte(16) {
		wg.Go(func() {
			mine := one
			mine.Hash = []byte{100 + i}
			switch err := k.Update(e.ctx, mine); {
			case err == nil:
				won <- mine.Hash[0]
			case !errors.Is(err, store.ErrStale):
				e.Errorf("unexpected error: %v", err)
			}
		})
	}
	wg.Wait()
	close(won)
	same(e, "winners", len(won), 1)
	got, err := k.ByID(e.ctx, "acme", "a")
	e.ok(err)
	same(e, "hash", got.Hash, []byte{<-won})
	same(e, "version", got.Version, int64(1))
}

// keyHashRaces: of many who want a hash at once, as the present one or as the former
// one, one has it.
func keyHashRaces(e *env) {
	k := e.s.Keys()
	change := e.key("acme", "z", 200)
	e.ok(k.Add(e.ctx, change))
	shared := []byte{1}
	won := make(chan string, 17)
	took := func(id string, err error) {
		switch {
		case err == nil:
			won <- id
		case !errors.Is(err, store.ErrExists):
			e.Errorf("unexpected error: %v", err)
		}
	}
	var wg sync.WaitGroup
	for i := range byte(16) {
		wg.Go(func() {
			mine := e.key("acme", string('a'+rune(i)), 100+i)
			if i%2 == 0 {
				mine.OldHash, mine.OldUntil = shared, mine.ExpiresAt
			} else {
				mine.Hash, mine.OldHash, mine.OldUntil = shared, mine.Hash, mine.ExpiresAt
			}
			took(mine.ID, k.Add(e.ctx, mine))
		})
	}
	wg.Go(func() {
		change.OldHash, change.OldUntil = shared, change.ExpiresAt
		took(change.ID, k.Update(e.ctx, change))
	})
	wg.Wait()
	close(won)
	same(e, "winners", len(won), 1)
	got, err := k.ByHash(e.ctx, shared)
	e.ok(err)
	same(e, "the key that has the hash", got.ID, <-won)
	n, err := k.Count(e.ctx)
	e.ok(err)
	list, err := k.List(e.ctx, "acme", "", 0)
	e.ok(err)
	same(e, "keys", n, len(list))
}

func keyUses(e *env) {
	k := e.s.Keys()
	e.ok(k.Add(e.ctx, e.key("acme", "a", 1)))
	e.ok(k.Add(e.ctx, e.key("other", "a", 2)))
	used := func(tenant string) time.Time {
		e.Helper()
		got, err := k.ByID(e.ctx, tenant, "a")
		e.ok(err)
		return got.UsedAt
	}
	first, second := e.tick(), e.tick()
	e.ok(k.Touch(e.ctx, nil))
	e.ok(k.Touch(e.ctx, []store.Used{{Tenant: "acme", ID: "a", At: second}, {Tenant: "acme", ID: "none", At: second}, {Tenant: "none", ID: "a", At: second}}))
	same(e, "used", used("acme"), second)
	same(e, "used", used("other"), time.Time{})
	e.ok(k.Touch(e.ctx, []store.Used{{Tenant: "acme", ID: "a", At: first}, {Tenant: "other", ID: "a", At: first}}))
	same(e, "used", used("acme"), second)
	same(e, "used", used("other"), first)
	// A change of the key that was read before keeps the use.
	got, err := k.ByID(e.ctx, "other", "a")
	e.ok(err)
	got.UsedAt = time.Time{}
	e.ok(k.Update(e.ctx, got))
	same(e, "used", used("other"), first)
}

func tenantRecords(e *env) {
	t := e.s.Tenants()
	var want []store.Tenant
	for _, id := range []string{"zeta", "Beta", "alpha", "a.b"} {
		x := store.Tenant{ID: id, Name: "N " + id, State: store.TenantActive, CreatedAt: e.tick()}
		e.ok(t.Add(e.ctx, x))
		e.fails(t.Add(e.ctx, x), store.ErrExists)
		want = append(want, x)
	}
	slices.SortFunc(want, func(a, b store.Tenant) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	_, err := t.Get(e.ctx, "beta")
	e.fails(err, store.ErrNotFound)
	was := want[1]
	want[1].State, want[1].Unsettled, want[1].Name = store.TenantSuspended, true, ""
	e.ok(t.Update(e.ctx, want[1]))
	want[1].Version = 1
	e.fails(t.Update(e.ctx, was), store.ErrStale)
	e.fails(t.Update(e.ctx, store.Tenant{ID: "none"}), store.ErrNotFound)
	e.reopen()
	t = e.s.Tenants()
	for _, x := range want {
		got, err := t.Get(e.ctx, x.ID)
		e.ok(err)
		same(e, "tenant", got, x)
	}
	for _, limit := range []int{1, 3, 9} {
		var got []store.Tenant
		for after := ""; ; after = got[len(got)-1].ID {
			page, err := t.List(e.ctx, after, limit)
			e.ok(err)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
		}
		same(e, "tenants", got, want)
	}
	list, err := t.Unsettled(e.ctx, "", 10)
	e.ok(err)
	same(e, "unsettled", list, want[1:2])
	list, err = t.Unsettled(e.ctx, want[1].ID, 10)
	e.ok(err)
	same(e, "unsettled", len(list), 0)
}

package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

func sum(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

// request is a record as a host claims it.
func (e *env) request(tenant, endpoint, key, digest, instance string) store.Record {
	return store.Record{
		Tenant: tenant, Endpoint: endpoint, Key: sum(key), Digest: sum(digest), Instance: instance,
		Run: "run-of-" + key, CreatedAt: e.now, ExpiresAt: e.now.Add(48 * time.Hour),
	}
}

// asked claims r and wants the record afterwards, and whether it was granted.
func (e *env) asked(r, want store.Record, mine bool) store.Record {
	e.Helper()
	got, ok, err := e.s.Idempotency().Claim(e.ctx, r)
	e.ok(err)
	same(e, "granted", ok, mine)
	same(e, "record", got, want)
	return got
}

// granted claims r and wants it as the given attempt.
func (e *env) granted(r store.Record, attempt int64) store.Record {
	e.Helper()
	want := r
	want.Attempt = attempt
	return e.asked(r, want, true)
}

func done(r store.Record) store.Record {
	r.Outcome = &store.Outcome{Status: 201, Header: []byte(`{"A":["b"]}`), Body: []byte("{\"n\": 1.00}\n\x00\u2028")}
	return r
}

// idempotencyRecords: a request is claimed once, and its outcome stays.
func idempotencyRecords(e *env) {
	e.register("host-1")
	first := e.granted(e.request("acme", "createRun", "k", "d", "host-1"), 1)
	// The tenant, the endpoint and the key are all of its name.
	for _, other := range []store.Record{
		e.request("other", "createRun", "k", "d", "host-1"), e.request("acme", "cancelRun x", "k", "d", "host-1"),
		e.request("acme", "createRun", "k2", "d", "host-1"),
	} {
		e.granted(other, 1)
	}
	// Another digest is nobody's claim, held or not.
	odd := e.request("acme", "createRun", "k", "other", "host-1")
	e.asked(odd, first, false)

	finished := done(first)
	finished.ExpiresAt = e.tick().Add(72 * time.Hour)
	e.ok(e.s.Idempotency().Finish(e.ctx, finished))
	want := finished
	want.Instance = ""
	for range 2 {
		e.asked(e.request("acme", "createRun", "k", "d", "host-1"), want, false)
		e.asked(odd, want, false)
		e.reopen()
		e.register("host-1")
	}
	for _, err := range []error{
		e.s.Idempotency().Finish(e.ctx, finished), e.s.Idempotency().Release(e.ctx, finished),
		e.s.Idempotency().Forget(e.ctx, finished),
	} {
		e.fails(err, store.ErrStale)
	}

	empty := e.granted(e.request("acme", "deleteWorkflow w", "k", "d", "host-1"), 1)
	empty.Outcome = &store.Outcome{Status: 204, Header: []byte(`{}`)}
	e.ok(e.s.Idempotency().Finish(e.ctx, empty))
	got, mine, err := e.s.Idempotency().Claim(e.ctx, e.request("acme", "deleteWorkflow w", "k", "d", "host-1"))
	e.ok(err)
	same(e, "granted", mine, false)
	same(e, "status and body", fmt.Sprint(got.Outcome.Status, len(got.Outcome.Body)), "204 0")
}

// idempotencyRelease: a request without an outcome is claimed again, with the
// run it was given at first; one that is forgotten begins anew.
func idempotencyRelease(e *env) {
	e.register("host-1")
	first := e.granted(e.request("acme", "createRun", "k", "d", "host-1"), 1)
	e.ok(e.s.Idempotency().Release(e.ctx, first))
	e.fails(e.s.Idempotency().Finish(e.ctx, done(first)), store.ErrStale)
	again := e.request("acme", "createRun", "k", "d", "host-1")
	again.Run, again.ExpiresAt = "another", e.tick().Add(50*time.Hour)
	want := first
	want.Attempt, want.ExpiresAt = 2, again.ExpiresAt
	second := e.asked(again, want, true)
	// The digest counts while nobody holds it, too.
	e.ok(e.s.Idempotency().Release(e.ctx, second))
	free := second
	free.Instance = ""
	e.asked(e.request("acme", "createRun", "k", "other", "host-1"), free, false)

	want.Attempt = 3
	third := e.asked(again, want, true)
	e.fails(e.s.Idempotency().Forget(e.ctx, second), store.ErrStale)
	e.ok(e.s.Idempotency().Forget(e.ctx, third))
	e.fails(e.s.Idempotency().Forget(e.ctx, third), store.ErrStale)
	e.granted(e.request("acme", "createRun", "k", "other", "host-1"), 1)
}

// idempotencyTakeover: what a lost instance has claimed is claimed by the next
// one, and the lost one changes nothing any more.
func idempotencyTakeover(e *env) {
	e.register("host-1")
	first := e.granted(e.request("acme", "createRun", "k", "d", "host-1"), 1)
	kept := e.granted(e.request("acme", "createRun", "k2", "d", "host-1"), 1)
	e.ok(e.s.Idempotency().Finish(e.ctx, done(kept)))
	e.reopen()
	_, _, err := e.s.Idempotency().Claim(e.ctx, e.request("acme", "createRun", "k", "d", "host-2"))
	e.fails(err, store.ErrNotFound)
	e.register("host-2")
	e.lose("host-1")
	_, _, err = e.s.Idempotency().Claim(e.ctx, e.request("acme", "createRun", "k", "d", "host-1"))
	e.fails(err, store.ErrNotFound)

	again := e.request("acme", "createRun", "k", "d", "host-2")
	again.Run = "another"
	want := first
	want.Instance, want.Attempt = "host-2", 2
	second := e.asked(again, want, true)
	for _, err := range []error{
		e.s.Idempotency().Finish(e.ctx, done(first)), e.s.Idempotency().Release(e.ctx, first), e.s.Idempotency().Forget(e.ctx, first),
	} {
		e.fails(err, store.ErrStale)
	}
	e.ok(e.s.Idempotency().Finish(e.ctx, done(second)))
	want = done(kept)
	want.Instance = ""
	e.asked(e.request("acme", "createRun", "k2", "d", "host-2"), want, false)
}

// idempotencyRace: of many claims made at once each request is written once.
func idempotencyRace(e *env) {
	e.register("host-1")
	for round := range 8 {
		var mu sync.Mutex
		attempts := map[int64]int{}
		runs := map[string]bool{}
		var wg sync.WaitGroup
		for n := range writers {
			wg.Go(func() {
				r := e.request("acme", "createRun", fmt.Sprint("key ", round), "d", "host-1")
				r.Run = fmt.Sprint("run-", n)
				got, _, err := e.s.Idempotency().Claim(e.ctx, r)
				if err != nil {
					e.Errorf("claim: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				attempts[got.Attempt]++
				runs[got.Run] = true
			})
		}
		wg.Wait()
		// All are one instance's, which keeps its own requests apart.
		same(e, "attempts", len(attempts), writers)
		same(e, "runs", len(runs), 1)
	}
}

// idempotencyRivals: of two instances that claim one request, one is granted it,
// whether or not the backend lets both be alive.
func idempotencyRivals(e *env) {
	hosts := []string{"host-1", "host-2"}
	for _, h := range hosts {
		e.register(h)
	}
	var granted [writers]atomic.Int64
	var wg sync.WaitGroup
	for n := range writers {
		for _, h := range hosts {
			wg.Go(func() {
				_, mine, err := e.s.Idempotency().Claim(e.ctx, e.request("acme", "createRun", fmt.Sprint(n), "d", h))
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					e.Errorf("claim: %v", err)
				}
				if mine {
					granted[n].Add(1)
				}
			})
		}
	}
	wg.Wait()
	for n := range granted {
		same(e, "grants", granted[n].Load(), 1)
	}
}

// idempotencyPurge removes what is past its end, a bounded number at a time.
func idempotencyPurge(e *env) {
	e.register("host-1")
	purge := func(at time.Time, limit, want int) {
		e.Helper()
		n, err := e.s.Idempotency().Purge(e.ctx, at, limit)
		e.ok(err)
		same(e, "purged", n, want)
	}
	for i := range 7 {
		r := e.request("acme", "createRun", fmt.Sprint(i), "d", "host-1")
		r.ExpiresAt = e.now.Add(time.Duration(i) * time.Hour)
		r = e.granted(r, 1)
		if i%2 == 0 {
			e.ok(e.s.Idempotency().Finish(e.ctx, done(r)))
		}
	}
	purge(e.now.Add(-time.Millisecond), 10, 0)
	purge(e.now, 10, 1)
	purge(e.now.Add(4*time.Hour), 3, 3)
	_, mine, err := e.s.Idempotency().Claim(e.ctx, e.request("acme", "createRun", "4", "d", "host-1"))
	e.ok(err)
	same(e, "granted", mine, false) // the earliest have gone first
	purge(e.now.Add(4*time.Hour), 3, 1)
	purge(e.now.Add(4*time.Hour), 3, 0)
	purge(e.now.Add(9*time.Hour), 0, 2)
	e.granted(e.request("acme", "createRun", "6", "d", "host-1"), 1)
}

// idempotencyMalformed: what could not be found again is not written.
func idempotencyMalformed(e *env) {
	e.register("host-1")
	for _, change := range []func(r *store.Record){
		func(r *store.Record) { r.Tenant = "" }, func(r *store.Record) { r.Endpoint = "" },
		func(r *store.Record) { r.Endpoint = string(make([]byte, 2000)) },
		func(r *store.Record) { r.Key = r.Key[:31] }, func(r *store.Record) { r.Digest = nil },
		func(r *store.Record) { r.Instance = "" }, func(r *store.Record) { r.ExpiresAt = time.Time{} },
	} {
		r := e.request("acme", "createRun", "k", "d", "host-1")
		change(&r)
		if _, _, err := e.s.Idempotency().Claim(e.ctx, r); err == nil {
			e.Errorf("claimed: %+v", r)
		}
	}
	r := e.granted(e.request("acme", "createRun", "k", "d", "host-1"), 1)
	if err := e.s.Idempotency().Finish(e.ctx, r); err == nil {
		e.Error("finished without an outcome")
	}
	r = done(r)
	r.Outcome.Body = make([]byte, store.MaxValue+1)
	e.fails(e.s.Idempotency().Finish(e.ctx, r), store.ErrTooLarge)
	e.ok(e.s.Idempotency().Finish(e.ctx, done(r)))
}

// everyRecord calls each method once, as every does.
func (e *env) everyRecord(ctx context.Context, keep func(string, error)) {
	i := e.s.Idempotency()
	claim := func(key string) store.Record {
		r := e.request("acme", "createRun", key, "d", "host-1")
		got, _, err := i.Claim(ctx, r)
		keep("Claim "+key, err)
		if err != nil {
			got = r
		}
		return got
	}
	keep("Finish", i.Finish(ctx, done(claim("finished"))))
	keep("Release", i.Release(ctx, claim("released")))
	keep("Forget", i.Forget(ctx, claim("forgotten")))
	_, err := i.Purge(ctx, e.now, 10)
	keep("Purge", err)
}

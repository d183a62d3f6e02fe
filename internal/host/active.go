package host

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
)

// activeRuns keeps each tenant's runs that are under way at or below a bound. What
// counts is in the store. A look there tells how many more may begin before the
// next look is due, so that an ordinary create asks nobody.
type activeRuns struct {
	most  int // of one tenant; 0: no bound
	count func(ctx context.Context, tenant string, most int) (int, error)

	mu sync.Mutex
	of map[string]*tenantRuns
}

type tenantRuns struct {
	mu       sync.Mutex
	room     int // creates that may begin before the store is asked again
	starting int // creates that have begun and are not known to be in the store
	users    int // of this entry, under activeRuns.mu
}

// maxAhead bounds how many creates rest on one look: other instances on the same
// store create too, and each of them knows only of its own.
const maxAhead = 64

// begin makes room for one more run of a tenant, or refuses it. done must be
// called once the run is in the store or will not be. A run that is over gives its
// room back with the next look.
func (a *activeRuns) begin(ctx context.Context, tenant string) (done func(), err error) {
	if a.most <= 0 {
		return func() {}, nil
	}
	t := a.enter(tenant)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.room <= 0 {
		n, err := a.count(ctx, tenant, a.most)
		if err != nil {
			a.leave(t)
			return nil, err
		}
		// A run that begins at this moment may have been counted, too: then there
		// seems to be less room than there is, and never more.
		t.room = min(a.most-n-t.starting, maxAhead)
	}
	if t.room <= 0 {
		a.leave(t)
		e := problem.New(problem.RateLimited, "the tenant has as many active runs as it may have").
			With("limit", "tenant-max-active-runs").With("bound", a.most)
		e.RetryAfter = time.Second
		return nil, e
	}
	t.room--
	t.starting++
	return func() {
		t.mu.Lock()
		t.starting--
		t.mu.Unlock()
		a.leave(t)
	}, nil
}

// maxIdleTenants is how many tenants are remembered of whom nothing begins.
const maxIdleTenants = 4096

func (a *activeRuns) enter(tenant string) *tenantRuns {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.of[tenant]
	if t == nil {
		if a.of == nil || len(a.of) >= maxIdleTenants {
			a.forget()
		}
		t = &tenantRuns{}
		a.of[tenant] = t
	}
	t.users++
	return t
}

func (a *activeRuns) leave(t *tenantRuns) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.users--
}

// forget drops the tenants of whom nothing begins: the store knows of their runs.
func (a *activeRuns) forget() {
	kept := map[string]*tenantRuns{}
	for name, t := range a.of {
		if t.users > 0 {
			kept[name] = t
		}
	}
	a.of = kept
}

package host

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// Prune is an operator's request to let go of runs now.
type Prune struct {
	Tenant string // empty for all

	// OlderThan and Keep, where they are set, count in place of the bounds of the
	// configuration: runs that ended longer ago, or that are not among so many.
	OlderThan *time.Duration
	Keep      *int

	DryRun bool // only count
}

// Pruned is what came of it: runs by tenant, of tenants that had any.
type Pruned struct {
	At      time.Time
	Tenants map[string]int
	Total   int
}

// Prune lets go of runs at once. What an operator asks for is taken by the word:
// neither the clock is doubted nor a young run spared. Runs that something still
// needs stay, as always. It is no use case of callers, and asks for no scope.
func (h *Host) Prune(ctx context.Context, r Prune) (Pruned, error) {
	switch {
	case r.Tenant != "" && !ids.ValidTenant(r.Tenant):
		return Pruned{}, problem.Invalid("tenant", "%q is no tenant", r.Tenant)
	case r.OlderThan != nil && *r.OlderThan < 0:
		return Pruned{}, problem.Invalid("olderThan", "must not be negative")
	case r.Keep != nil && *r.Keep < 0:
		return Pruned{}, problem.Invalid("keep", "must not be negative")
	}
	now := h.clock.Now()
	p := prune{h: h, now: now, bounds: h.cfg.Retention.of, dry: r.DryRun, by: map[string]int{}}
	p.cut = func(b Bounds, end store.Ending) store.Ending { return b.cut(now, end) }
	if r.OlderThan != nil || r.Keep != nil {
		p.bounds = func(string) Bounds { return r.bounds() }
		p.cut = func(_ Bounds, end store.Ending) store.Ending { return r.cut(now, end) }
	}
	err := p.all(ctx, r.Tenant)
	if p.total > 0 && !r.DryRun {
		d := h.fact(audit.HostChain, "runs.prune", audit.Target{Type: "run"}, map[string]string{"runs": sequenceText(int64(p.total)), "of": cmp.Or(r.Tenant, "all")})
		err = errors.Join(err, h.store.Audit().Append(context.WithoutCancel(ctx), d))
	}
	return Pruned{At: now, Tenants: p.by, Total: p.total}, err
}

func (r Prune) bounds() Bounds {
	if r.Keep == nil {
		return Bounds{}
	}
	return Bounds{MaxRuns: max(*r.Keep, 1)} // none at all: see cut
}

func (r Prune) cut(now time.Time, end store.Ending) store.Ending {
	all := store.Ending{At: now, ID: lastID}
	if r.Keep != nil && *r.Keep == 0 {
		end = all
	}
	if r.OlderThan == nil {
		return end
	}
	old := store.Ending{At: now.Add(-*r.OlderThan), ID: lastID}
	if end.Before(old) {
		return old
	}
	return end
}

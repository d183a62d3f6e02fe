package engine

import (
	"sync"

	"github.com/fermata-run/fermata/internal/ids"
)

// backlog counts, by tenant, what this instance has taken on and not begun: runs it
// has claimed whose first turn is still to come, and calls that wait for a place. Where
// several instances share a store, one whose tenant has a batch of these claims no more
// for that tenant: another one may have room. What is claimed for others goes on.
type backlog struct {
	most int // 0: no bound

	mu      sync.Mutex
	waiting map[string]int
	skipped map[string]bool // tenants passed over since they had too much
}

func newBacklog(most int) *backlog {
	return &backlog{most: most, waiting: map[string]int{}, skipped: map[string]bool{}}
}

// add counts n more for a tenant.
func (b *backlog) add(tenant string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[tenant] += n
}

// done counts one less. It reports whether there is room again where there was none.
func (b *backlog) done(tenant string) (room bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.waiting[tenant] - 1
	if b.waiting[tenant] = n; n <= 0 {
		delete(b.waiting, tenant)
	}
	if b.skipped[tenant] && n <= b.most/2 {
		delete(b.skipped, tenant)
		return true
	}
	return false
}

// full lists the tenants for which nothing more is claimed.
func (b *backlog) full() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for tenant, n := range b.waiting {
		if b.most > 0 && n >= b.most {
			b.skipped[tenant] = true
			out = append(out, tenant)
		}
	}
	return out
}

// begun takes note that something taken on has begun, and looks for more if that
// makes room.
func (e *Engine) begun(tenant string) {
	if e.backlog.done(tenant) {
		e.timers.poke(e.clock.Now())
	}
}

// began takes note of the claims in a batch of messages that has been dealt with.
func (e *Engine) began(id ids.Run, mail []message) {
	for _, m := range mail {
		if m.claimed {
			e.begun(id.Tenant)
		}
	}
}

package webhook

import (
	"sync"

	"github.com/fermata-run/fermata/internal/store"
)

// Bounds of what is under way at one time in one process. A dead endpoint holds
// as much as perTarget for as long as an attempt may take, and a tenant half of
// what the others leave, so that nobody's silence is anybody else's delay (spec v2
// webhooks.md §Delivery isolation).
const (
	capacity   = 256
	perTarget  = 8
	perFailing = 2
	floor      = 8 // what a tenant may always have under way while there is room
)

type targetKey struct{ tenant, id string }

// room counts what is under way.
type room struct {
	mu      *sync.Mutex
	total   int
	tenants map[string]int
	targets map[targetKey]int
}

func newRoom() room {
	return room{mu: &sync.Mutex{}, tenants: map[string]int{}, targets: map[targetKey]int{}}
}

// left is how much more a tenant may have under way.
func (r *room) left(tenant string) int {
	free, has := capacity-r.total, r.tenants[tenant]
	return min(free, max(floor-has, (free-has+1)/2))
}

// reserve makes room for entries of a target and says how many. An endpoint that
// is failing is asked by few at a time, until it takes something.
func (r *room) reserve(t store.Target) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, most := targetKey{t.Tenant, t.ID}, perTarget
	if t.Failures >= failing {
		most = perFailing
	}
	n := max(min(most-r.targets[key], r.left(t.Tenant)), 0)
	r.add(key, n)
	return n
}

func (r *room) add(key targetKey, n int) {
	r.total += n
	if r.tenants[key.tenant] += n; r.tenants[key.tenant] == 0 {
		delete(r.tenants, key.tenant)
	}
	if r.targets[key] += n; r.targets[key] == 0 {
		delete(r.targets, key)
	}
}

// settle gives back what was reserved and not taken.
func (r *room) settle(quotas []store.Quota, taken []store.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range quotas {
		r.add(targetKey{q.Tenant, q.Target}, -q.Limit)
	}
	for _, d := range taken {
		r.add(targetKey{d.Tenant, d.Target}, 1)
	}
}

// leave says that an entry is under way no more.
func (r *room) leave(d store.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(targetKey{d.Tenant, d.Target}, -1)
}

// crowded lists the tenants that may begin nothing more for now.
func (r *room) crowded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for tenant := range r.tenants {
		if r.left(tenant) <= 0 {
			out = append(out, tenant)
		}
	}
	return out
}

// packed reports whether somebody had to be left out.
func (r *room) packed() bool { return len(r.crowded()) > 0 }

package host

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// Denials are counted in memory and written together now and then, so that whoever
// is turned away can neither fill the disk nor cost a write for each try. At most
// what was counted since the last time is lost with the process.
const (
	denialsEvery  = time.Minute
	maxDenials    = 32   // kinds of denial of one tenant, between two writes
	maxDenialsAll = 2048 // of all tenants; beyond it they are counted on the host's chain
)

// denial is one kind of denial: who, at what, why.
type denial struct {
	chain, action, reason string
	actor                 audit.Actor // without Via: kinds of denial must be comparable
}

// denials are what has been denied since the last write.
type denials struct {
	mu    sync.Mutex
	kinds map[denial]*denied
	of    map[string]int // kinds, by chain
}

type denied struct {
	count       int64
	first, last time.Time
}

// note counts a denial.
func (d *denials) note(c identity.Caller, action, reason string, now time.Time) {
	a := actorOf(c)
	a.Via = nil
	d.add(denial{chain: cmp.Or(c.Tenant(), audit.HostChain), action: action, reason: reason, actor: a}, now)
}

func (d *denials) add(k denial, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kinds == nil {
		d.kinds, d.of = map[denial]*denied{}, map[string]int{}
	}
	if d.kinds[k] == nil && len(d.kinds) >= maxDenialsAll {
		k = denial{chain: audit.HostChain, action: "authorization.denied", reason: "more-than-are-listed", actor: audit.Actor{Kind: "any"}}
	} else if d.kinds[k] == nil && d.of[k.chain] >= maxDenials {
		k.actor, k.action, k.reason = audit.Actor{Kind: "any"}, "authorization.denied", "more-than-are-listed"
	}
	x := d.kinds[k]
	if x == nil {
		x = &denied{first: now}
		d.kinds[k] = x
		d.of[k.chain]++
	}
	x.count++
	x.last = now
}

// take empties the counts into drafts, in an order that does not depend on the map.
func (d *denials) take(now time.Time) []*store.Draft {
	d.mu.Lock()
	kinds := d.kinds
	d.kinds, d.of = nil, nil
	d.mu.Unlock()
	list := slices.SortedFunc(maps.Keys(kinds), func(a, b denial) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), kinds[a].first.Compare(kinds[b].first), cmp.Compare(a.action, b.action),
			cmp.Compare(a.reason, b.reason), cmp.Compare(a.actor.SubjectID, b.actor.SubjectID))
	})
	out := make([]*store.Draft, len(list))
	for i, k := range list {
		x := kinds[k]
		detail := map[string]string{
			"count": strconv.FormatInt(x.count, 10), "first": audit.Stamp(x.first), "last": audit.Stamp(x.last),
		}
		if k.reason != "" {
			detail["reason"] = k.reason
		}
		out[i] = &store.Draft{Chain: k.chain, Fact: audit.Fact{
			At: now, Actor: k.actor, Action: k.action, Outcome: audit.Denied, Target: audit.Target{Type: "operation"}, Detail: detail,
		}}
	}
	return out
}

// Unauthenticated counts a request whose credential did not do. Nobody can say who
// it was, so it is the host's matter. Nothing of the credential is kept.
func (h *Host) Unauthenticated(err error) {
	var p *problem.Error
	if !errors.As(err, &p) || p.Status() != 401 && p.Status() != 403 {
		return // the host could not tell
	}
	h.denials.add(denial{
		chain: audit.HostChain, action: "authentication.failed", reason: string(p.Code), actor: audit.Actor{Kind: "anonymous"},
	}, h.clock.Now())
}

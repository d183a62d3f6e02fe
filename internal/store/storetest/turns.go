package storetest

import (
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// floods is how many runs a tenant has that floods the others.
const floods = 400

func byTenant(rows []store.Run) map[string]int {
	out := map[string]int{}
	for _, r := range rows {
		out[r.ID.Tenant]++
	}
	return out
}

// claimTurns: however many runs of one tenant are due or lost, and however long
// before, another one's single run is among the first that are claimed.
func claimTurns(e *env) {
	e.register("host-0")
	for range floods {
		e.create(e.id("flood"), asleep(e.now))
		e.create(e.id("flood"), owned("host-0"))
	}
	e.tick()
	e.create(e.id("a-due"), asleep(e.now))
	e.create(e.id("z-due"), asleep(e.now))
	e.create(e.id("a-lost"), owned("host-0"))
	e.create(e.id("z-lost"), owned("host-0"))
	// Tenants that have nothing to do take nobody's turn.
	for i := range 20 {
		e.create(e.id(fmt.Sprint("later-", i)), asleep(e.now.Add(time.Hour)))
		e.create(e.id(fmt.Sprint("never-", i)))
	}
	e.lose("host-0")
	e.register("host-1")
	first := byTenant(e.claim("host-1", 8))
	same(e, "first claim", first, map[string]int{"flood": 4, "a-due": 1, "z-due": 1, "a-lost": 1, "z-lost": 1})
	seen := map[ids.Run]bool{}
	for len(seen) < 2*floods-4 {
		rows := e.claim("host-1", 100)
		if len(rows) == 0 {
			e.Fatalf("nothing more after %d runs", len(seen))
		}
		for _, r := range rows {
			if seen[r.ID] || r.ID.Tenant != "flood" {
				e.Fatalf("run %s was claimed", r.ID)
			}
			seen[r.ID] = true
		}
	}
	same(e, "what is left", len(e.claim("host-1", 100)), 0)
}

// claimTurnsOfMany: of more tenants than a claim can serve, nobody has a second turn
// before everybody has had one.
func claimTurnsOfMany(e *env) {
	e.register("host-1")
	const tenants, limit = 25, 5
	for i := range tenants {
		for range 12 {
			e.create(e.id(fmt.Sprintf("t-%02d", i)), asleep(e.now))
		}
	}
	e.tick()
	for round := 1; round <= 3; round++ {
		all := map[string]int{}
		for range tenants / limit {
			for tenant, n := range byTenant(e.claim("host-1", limit)) {
				all[tenant] += n
			}
		}
		same(e, "tenants served in a round", len(all), tenants)
	}
}

// claimSkipping: what is skipped stays where it is, and is there the next time.
func claimSkipping(e *env) {
	e.register("host-0")
	for range 30 {
		e.create(e.id("flood"), asleep(e.now))
		e.create(e.id("flood"), owned("host-0"))
	}
	e.tick()
	due := e.create(e.id("other"), asleep(e.now))
	lost := e.create(e.id("other"), owned("host-0"))
	e.lose("host-0")
	e.register("host-1")
	rows, err := e.s.Ownership().Claim(e.ctx, "host-1", e.now, 10, "flood", "nobody")
	e.ok(err)
	e.claimed("host-1", rows, due, lost)
	rows, err = e.s.Ownership().Claim(e.ctx, "host-1", e.now, 100, "flood")
	e.ok(err)
	same(e, "runs of who is skipped", len(rows), 0)
	same(e, "claimed later", len(e.claim("host-1", 100)), 60)
}

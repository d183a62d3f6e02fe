package egress

import (
	"context"

	"github.com/fermata-run/fermata/internal/effect"
)

// beneath names the place of the dialer in a refusal: it lies below every seam.
const beneath = "egress"

// Through returns the guard as one seam of the node runtime: a request is let out
// only if its context permits effects and the seam is listed (effect.Guard). Its
// connections are shared with g. The plain guard is for calls the host makes of
// its own accord; of those it refuses what runs for a replay, as its dialer does.
func (g *Guard) Through(seam string) *Guard {
	s := *g
	s.seam = seam
	s.trip = &transport{guard: &s, base: g.trip.base}
	return &s
}

// pass lets a call out, or says why not.
func (g *Guard) pass(ctx context.Context) error {
	if g.seam == "" {
		return effect.Replayed(ctx, beneath)
	}
	return effect.Guard(ctx, g.seam)
}

package host

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/token"
)

// offerPeriod is for how long a snapshot offers the same token. Whoever reads one at its
// end still has most of a token's life.
const offerPeriod = 5 * time.Minute

// OfferPeriod names the span of time in which the tokens are the same that are offered to
// somebody whose credential lasts until then (zero for ever): a snapshot that holds one is
// another document in the next.
func (h *Host) OfferPeriod(until time.Time) int64 {
	return offerEnd(h.clock.Now(), until).UnixMilli()
}

// OfferToken gives a reader of a run the token that v1 shows in its snapshot, in the form
// of v1. It lets the reader do by token what it may do without: resolve, if it could
// answer this interrupt itself now, else look. So reading does not become answering, and
// as nothing is given away, nothing is audited but what is answered with it. Of an
// interrupt that is open no more there is none.
func (h *Host) OfferToken(ctx context.Context, c identity.Caller, id ids.Run, nodeID string) (IssuedToken, error) {
	if err := h.admit(ctx, c, identity.RunsRead, id); err != nil {
		return IssuedToken{}, err
	}
	s, i, err := h.open(ctx, id, nodeID, ids.Run{})
	if err != nil {
		return IssuedToken{}, err
	}
	now := h.clock.Now()
	end := offerEnd(now, i.ExpiresAt, c.Expires) // the right it is a form of ends with the credential
	if !now.Before(end) {
		return IssuedToken{}, problem.New(problem.InterruptAlreadyResolved, "the interrupt's time is over").With("nodeId", nodeID)
	}
	intent, err := h.mayIntend(ctx, c, s, i)
	if err != nil {
		return IssuedToken{}, err
	}
	return h.sign(ctx, token.SignOlder, token.Claims{
		Run: id, NodeID: i.NodeID, Interrupt: i.ID, Intent: intent, ExpiresAt: end, Subject: c.Subject,
	})
}

// offerEnd is when a token that is offered now ends: the same all through a period, at
// most a token's life from now, and never behind what it is for or what it was had with,
// which end at deadlines (zero for never).
func offerEnd(now time.Time, deadlines ...time.Time) time.Time {
	end := now.Truncate(offerPeriod).Add(tokenLife).UTC()
	for _, d := range deadlines {
		if !d.IsZero() && d.Before(end) {
			end = d
		}
	}
	return end
}

// mayIntend says what a token for a caller may be good for.
func (h *Host) mayIntend(ctx context.Context, c identity.Caller, s *run.State, i *run.Interrupt) (string, error) {
	if !c.Holds(identity.ApprovalsRespond) || s.Attended(i.NodeID) {
		return token.Inspect, nil
	}
	who, err := h.member(ctx, c)
	if err != nil {
		return "", err
	}
	if _, err := who.judge(nil)(i); err != nil {
		return token.Inspect, nil
	}
	return token.Resolve, nil
}

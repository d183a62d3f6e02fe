package host

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/token"
	"github.com/fermata-run/fermata/internal/webhook"
	"github.com/go-json-experiment/json"
)

// checkCallback holds a run's callback URL against what a webhook's URL must be
// (spec v2 runs.md §Create, interrupt.md §Callback delivery). Whoever gets the
// calls gets tokens that answer, so the caller must be able to.
func (h *Host) checkCallback(c identity.Caller, u string) error {
	switch {
	case u == "":
		return nil
	case h.cfg.Webhooks.Worker == nil:
		return problem.Invalid("callbackUrl", "this host does not deliver callbacks")
	case len(u) > maxHookURL:
		return problem.Invalid("callbackUrl", "has at most %d bytes", maxHookURL)
	case h.checkHookURL(u) != nil:
		return problem.Invalid("callbackUrl", "cannot be delivered to: want https and a public host")
	}
	return h.allow(c, identity.ApprovalsRespond)
}

// Callback says what a run's callback URL is told of an interrupt, with a token in the
// form of a major; nil if it waits for an answer no more. The token speaks in the name of
// whoever started the run; where that party may not answer, it shows what is asked and no
// more.
func (h *Host) Callback(ctx context.Context, row store.Run, e *event.Event, major int) (*webhook.Called, error) {
	var owner event.Owner
	if err := json.Unmarshal(row.Owner, &owner); err != nil {
		return nil, err
	}
	s, err := h.state(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	i := asked(s, e)
	if i == nil {
		return nil, nil
	}
	intent := token.Resolve
	if s.Attended(i.NodeID) {
		intent = token.Inspect
	}
	who, err := h.member(ctx, identity.Caller{Subject: owner.Subject})
	if err == nil {
		_, err = who.judge(nil)(i)
	}
	if err != nil {
		var p *problem.Error
		if !errors.As(err, &p) {
			return nil, err
		}
		intent = token.Inspect
	}
	now := h.clock.Now()
	end := now.Add(callbackTokenLife)
	if x := i.ExpiresAt; !x.IsZero() && x.Before(end) {
		if end = x; !now.Before(x) {
			return nil, nil
		}
	}
	form := token.Sign
	if major == 1 {
		form = token.SignOlder
	}
	t, err := h.sign(ctx, form, token.Claims{
		Run: row.ID, NodeID: i.NodeID, Interrupt: i.ID, Intent: intent, ExpiresAt: end, Subject: owner.Subject,
	})
	if err != nil {
		return nil, err
	}
	return &webhook.Called{
		Run: row.ID, Workspace: owner.Workspace, Event: e, NodeID: i.NodeID, Interrupt: i.ID, Intent: intent, Token: t.Token, ExpiresAt: end,
	}, nil
}

// callbackTokenLife is for how long the token of a callback is good. Whoever is
// told so is a person more often than not, and answers in the morning.
const callbackTokenLife = 24 * time.Hour

// asked finds the interrupt that an event has opened, if it is still open.
func asked(s *run.State, e *event.Event) *run.Interrupt {
	for _, i := range s.Interrupts() {
		if i.NodeID == e.NodeID && !i.OpenedAt.After(e.Time) {
			return i
		}
	}
	return nil
}

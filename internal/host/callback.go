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
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// calledBack is the body of a callback: the event, and a token for what it asks.
// The receiver sees by asking the host with the token that the call is genuine.
type calledBack struct {
	DeliveryID  string         `json:"deliveryId"`
	RunID       string         `json:"runId"`
	WorkspaceID string         `json:"workspaceId,omitzero"`
	Event       jsontext.Value `json:"event"`
	NodeID      string         `json:"nodeId"`
	InterruptID string         `json:"interruptId"`
	Intent      string         `json:"intent"`
	Token       string         `json:"token"`
	ExpiresAt   string         `json:"expiresAt"`
}

// CallbackBody makes the body that tells a run's callback URL of an interrupt; nil
// if it waits for an answer no more. The token speaks in the name of whoever started
// the run; where that party may not answer, it shows what is asked and no more.
func (h *Host) CallbackBody(ctx context.Context, row store.Run, e *event.Event, deliveryID string) ([]byte, error) {
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
	t, err := h.sign(ctx, token.Claims{
		Run: row.ID, NodeID: i.NodeID, Interrupt: i.ID, Intent: intent, ExpiresAt: end, Subject: owner.Subject,
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(calledBack{
		DeliveryID: deliveryID, RunID: row.ID.String(), WorkspaceID: owner.Workspace, Event: e.Doc(), NodeID: i.NodeID,
		InterruptID: i.ID.String(), Intent: intent, Token: t.Token, ExpiresAt: t.ExpiresAt,
	}, jsontext.PreserveRawStrings(true))
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

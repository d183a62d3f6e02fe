package host

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

// ResolveInterrupt answers the interrupt a node of a run holds (spec v2
// interrupt.md §Resolve surfaces). It returns the run's status afterwards.
func (h *Host) ResolveInterrupt(ctx context.Context, c identity.Caller, id ids.Run, nodeID string, value jsontext.Value) (string, error) {
	if err := h.admit(c, identity.ApprovalsRespond, id); err != nil {
		return "", err
	}
	return h.answer(ctx, id, run.Resolve{NodeID: nodeID, Value: value, Subject: c.Subject})
}

// answer is the one way in which an interrupt is answered, by whatever route
// the answer comes.
func (h *Host) answer(ctx context.Context, id ids.Run, c run.Resolve) (string, error) {
	if len(c.Value) == 0 {
		return "", problem.Invalid("resumeValue", "is required")
	}
	try := attemptIn(ctx)
	if status, done, err := h.answered(ctx, try, id, c.NodeID); done || err != nil {
		return status, err
	}
	c.Judge, c.Request = Approver(c.Subject), try.mark
	out := h.engine.Do(ctx, id, c)
	return out.Status, out.Err
}

// Approver judges for one party which interrupts it may answer (spec v2
// interrupt.md §Approver enforcement). It is asked for every answer, whatever
// the route, after the right to answer at all. Group and role references are
// ignored, as they must be by a host that advertises neither kind.
func Approver(by event.Subject) run.Judge {
	return func(i *run.Interrupt) (string, error) {
		list := i.Approvers()
		switch {
		case i.Request.Kind != "approval":
			return "", nil
		case len(list) == 0:
			return "open", nil
		case slices.Contains(list, by.SubjectID):
			return "listed", nil
		}
		return "", problem.New(problem.Forbidden, "you are not among the approvers of this gate").With("reason", "not-an-approver")
	}
}

// OpenInterrupt is one entry of the caller's inbox.
type OpenInterrupt struct {
	InterruptID string         `json:"interruptId"`
	RunID       string         `json:"runId"`
	NodeID      string         `json:"nodeId"`
	Kind        string         `json:"kind"`
	Key         string         `json:"key"`
	Request     jsontext.Value `json:"request"`
	CreatedAt   string         `json:"createdAt"`
	ExpiresAt   string         `json:"expiresAt,omitzero"`
}

// InterruptPage is one page of the inbox, oldest first.
type InterruptPage struct {
	Interrupts []OpenInterrupt `json:"interrupts"`
	NextCursor string          `json:"nextCursor,omitzero"`
}

// ListInterrupts reads the open interrupts of the caller's tenant.
func (h *Host) ListInterrupts(ctx context.Context, c identity.Caller, cursor string, limit int) (InterruptPage, error) {
	if err := h.allow(c, identity.RunsRead); err != nil {
		return InterruptPage{}, err
	}
	key, after := "interrupts\x00"+c.Tenant(), ""
	if cursor != "" {
		var ok bool
		if after, ok = readCursor(cursor, key); !ok {
			return InterruptPage{}, problem.Invalid("cursor", "is not a cursor of this list")
		}
	}
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, h.cfg.Limits.MaxPageSize)
	rows, err := h.store.Runs().OpenInterrupts(ctx, c.Tenant(), after, limit+1)
	if errors.Is(err, store.ErrNotFound) { // its run has expired since
		return InterruptPage{}, problem.Invalid("cursor", "is too old to go on from")
	}
	if err != nil {
		return InterruptPage{}, err
	}
	page := InterruptPage{Interrupts: []OpenInterrupt{}}
	if len(rows) > limit {
		rows = rows[:limit]
		page.NextCursor = makeCursor(rows[limit-1].ID, key)
	}
	for _, r := range rows {
		page.Interrupts = append(page.Interrupts, inboxEntry(r))
	}
	return page, nil
}

func inboxEntry(r store.Interrupt) OpenInterrupt {
	return OpenInterrupt{
		InterruptID: r.Run.Tenant + "/" + r.ID, RunID: r.Run.String(), NodeID: r.NodeID, Kind: r.Kind, Key: r.Key,
		Request: r.Data, CreatedAt: run.Stamp(r.CreatedAt), ExpiresAt: run.Stamp(r.ExpiresAt),
	}
}

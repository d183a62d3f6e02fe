package host

import (
	"context"
	"errors"

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
	if err := h.admit(ctx, c, identity.ApprovalsRespond, id); err != nil {
		return "", err
	}
	return h.answer(ctx, c, id, run.Resolve{NodeID: nodeID, Value: value})
}

// ResolveInterruptFor is ResolveInterrupt with the name of whose vote it is, as the wire
// of v1 has it. It counts for that voter if the caller may vouch for others; from anybody
// else it is the caller's own.
func (h *Host) ResolveInterruptFor(ctx context.Context, c identity.Caller, id ids.Run, nodeID string, value jsontext.Value, voter string) (string, error) {
	if err := h.admit(ctx, c, identity.ApprovalsRespond, id); err != nil {
		return "", err
	}
	if !c.Holds(identity.Vouch) {
		voter = ""
	}
	return h.answer(ctx, c, id, run.Resolve{NodeID: nodeID, Value: value, Voter: voter})
}

// InterruptKind is the kind of what a node waits for, for whoever may answer it.
func (h *Host) InterruptKind(ctx context.Context, c identity.Caller, id ids.Run, nodeID string) (string, error) {
	if err := h.admit(ctx, c, identity.ApprovalsRespond, id); err != nil {
		return "", err
	}
	_, i, err := h.open(ctx, id, nodeID, ids.Run{})
	if err != nil {
		return "", err
	}
	return i.Request.Kind, nil
}

// answer is the one way in which an interrupt is answered, by whatever route
// the answer comes.
func (h *Host) answer(ctx context.Context, by identity.Caller, id ids.Run, c run.Resolve) (string, error) {
	if len(c.Value) == 0 {
		return "", problem.Invalid("resumeValue", "is required")
	}
	d := onRun("interrupt.answer", id).with("nodeId", c.NodeID).with("via", c.Via).with("voter", c.Voter)
	return audited(ctx, h, by, d, func(ctx context.Context, draft *store.Draft) (string, error) {
		return h.answerAs(ctx, by, id, c, draft)
	})
}

func (h *Host) answerAs(ctx context.Context, by identity.Caller, id ids.Run, c run.Resolve, draft *store.Draft) (string, error) {
	try := attemptIn(ctx)
	if status, done, err := h.answered(ctx, try, id, c.NodeID); done || err != nil {
		return status, err
	}
	who, err := h.member(ctx, by)
	if err != nil {
		return "", err
	}
	c.Subject, c.Judge, c.Request = by.Subject, witness(who.vouching(c.Voter, who.judge(h.cfg.Override)), draft, c.Value), try.mark
	out := h.engine.Do(ctx, id, c)
	return out.Status, out.Err
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
	// Notify is who should be told, as names: whom the gate's audience names, else
	// who may answer. Absent if that is everybody.
	Notify *Notify `json:"notify,omitzero"`
	// MayAnswer says whether the caller could answer now, as far as approvers go.
	MayAnswer bool `json:"mayAnswer"`
}

// Notify names people, groups and roles.
type Notify struct {
	Subjects []string `json:"subjects,omitzero"`
	Groups   []string `json:"groups,omitzero"`
	Roles    []string `json:"roles,omitzero"`
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
	rows, err := h.openFor(ctx, c, after, limit+1)
	if errors.Is(err, store.ErrNotFound) { // its run has expired since
		return InterruptPage{}, problem.Invalid("cursor", "is too old to go on from")
	}
	if err != nil {
		return InterruptPage{}, err
	}
	who, err := h.member(ctx, c)
	if err != nil {
		return InterruptPage{}, err
	}
	page := InterruptPage{Interrupts: []OpenInterrupt{}}
	if len(rows) > limit {
		rows = rows[:limit]
		page.NextCursor = makeCursor(rows[limit-1].ID, key)
	}
	for _, r := range rows {
		page.Interrupts = append(page.Interrupts, inboxEntry(r, c, who))
	}
	return page, nil
}

// openFor reads open interrupts of the runs within the caller's reach.
func (h *Host) openFor(ctx context.Context, c identity.Caller, after string, limit int) ([]store.Interrupt, error) {
	if c.Workspace == "" {
		return h.store.Runs().OpenInterrupts(ctx, c.Tenant(), after, limit)
	}
	var out []store.Interrupt
	for {
		page, err := h.store.Runs().OpenInterrupts(ctx, c.Tenant(), after, limit)
		if err != nil {
			return nil, err
		}
		for _, i := range page {
			row, err := h.store.Runs().Get(ctx, i.Run)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			if err == nil && row.Workspace == c.Workspace {
				out = append(out, i)
			}
		}
		if len(page) < limit || len(out) >= limit {
			return out[:min(len(out), limit)], nil
		}
		after = page[len(page)-1].ID
	}
}

// inboxEntry shows an open interrupt. Everybody with the right to read runs sees
// every one, as they see it in the run's log; whom it concerns is said beside it.
func inboxEntry(r store.Interrupt, c identity.Caller, who member) OpenInterrupt {
	out := OpenInterrupt{
		InterruptID: r.Run.Tenant + "/" + r.ID, RunID: r.Run.String(), NodeID: r.NodeID, Kind: r.Kind, Key: r.Key,
		Request: r.Data, CreatedAt: run.Stamp(r.CreatedAt), ExpiresAt: run.Stamp(r.ExpiresAt),
	}
	req, err := event.Read[event.Interrupt](r.Data)
	if err != nil {
		return out
	}
	i := &run.Interrupt{Request: req}
	if a := i.Audience(); !a.Open() {
		out.Notify = &Notify{a.Subjects, a.Groups, a.Roles}
	}
	_, err = who.judge(nil)(i)
	out.MayAnswer = err == nil && c.Holds(identity.ApprovalsRespond)
	return out
}

package host

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSeeded bounds the log of a seeded run.
const maxSeeded = 1000

// SeedEra2 is the request of the seam seedEra2EventLog: a run as a v1 host left it.
type SeedEra2 struct {
	Status string // completed, failed or cancelled
	Events []SeedEvent
}

// SeedEvent is one event in the words of v1.
type SeedEvent struct {
	Type        string
	Sequence    int64
	Payload     jsontext.Value
	Timestamp   time.Time // now if zero
	CausationID string
}

// SeedEra2 stores a finished run whose log is in the words of v1, exactly as it is
// given (spec v2 persistence.md §The reader rule). Types no codemap names are
// stored as well: it is reading them that fails. A run that is to go on is refused:
// this host writes no log in those words.
func (h *Host) SeedEra2(ctx context.Context, c identity.Caller, r SeedEra2) (ids.Run, error) {
	if err := h.seam(c); err != nil {
		return ids.Run{}, err
	}
	id := h.engine.NewID(c.Tenant())
	events, err := h.oldLog(id, r)
	if err != nil {
		return ids.Run{}, err
	}
	started, err := event.Decode(events[0].Doc(), nil)
	if err != nil {
		return ids.Run{}, problem.Invalid("events[0].payload", "is no payload of run.started: %v", err)
	}
	var about event.Started
	if err := json.Unmarshal(started.Payload, &about); err != nil || !ids.ValidAuthored(about.WorkflowID) {
		return ids.Run{}, problem.Invalid("events[0].payload.workflowId", "is no workflow id")
	}
	// Where the tenant has no workflow of that id, the run is of one that does nothing.
	err = h.ensureWorkflow(ctx, c.Tenant(), about.WorkflowID, map[string]any{"nodes": []any{map[string]any{
		"id": "noop", "typeId": "core.noop", "name": "noop", "config": map[string]any{},
		"inputs": map[string]any{}, "position": map[string]any{"x": 0, "y": 0}}}})
	if err != nil {
		return ids.Run{}, err
	}
	last := events[len(events)-1]
	return id, h.store.Runs().Append(ctx, &store.Append{Create: true, Events: events, Row: store.Run{
		ID: id, WorkflowID: about.WorkflowID, Status: r.Status, Seq: last.Seq, Owner: event.Encode(about.Owner),
		CreatedAt: started.Time, StartedAt: started.Time, CompletedAt: last.Time,
	}})
}

// oldLog checks that a log is one of a run that has ended as the request says.
func (h *Host) oldLog(id ids.Run, r SeedEra2) ([]event.Event, error) {
	if !run.Terminal(r.Status) {
		return nil, problem.Invalid("status", "%q is not completed, failed or cancelled; a run that goes on cannot be seeded here", r.Status)
	}
	n := len(r.Events)
	switch {
	case n < 2 || n > maxSeeded:
		return nil, problem.Invalid("events", "want 2 to %d events", maxSeeded)
	case r.Events[0].Type != string(event.RunStarted):
		return nil, problem.Invalid("events[0].type", "the first event is not run.started")
	case r.Events[n-1].Type != "run."+r.Status:
		return nil, problem.Invalid("status", "the last event is %s, which does not make a run %s", r.Events[n-1].Type, r.Status)
	}
	out := make([]event.Event, n)
	for i, e := range r.Events {
		if e.Sequence != int64(i) {
			return nil, problem.Invalid("events", "event %d has the sequence %d; a log has no gaps", i, e.Sequence)
		}
		if e.Type == "" || e.Payload.Kind() != '{' {
			return nil, problem.Invalid("events", "event %d needs a type and an object as its payload", i)
		}
		if e.CausationID != "" && !ids.ValidOpaque(e.CausationID) {
			return nil, problem.Invalid("events", "the causationId of event %d is no event id", i)
		}
		at := e.Timestamp
		if at.IsZero() {
			at = h.clock.Now()
		}
		var err error
		if out[i], err = event.Old(id, e.Sequence, e.Type, e.Payload, at, e.CausationID); err != nil {
			return nil, problem.Invalid("events", "event %d: %v", i, err)
		}
	}
	return out, nil
}

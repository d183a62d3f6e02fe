package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// notFound says what a failed read of a run means to a caller. Logs of v1 that
// cannot be read have codes of their own (spec v2 persistence.md §The reader rule).
func notFound(err error) error {
	if errors.Is(err, event.ErrUnmapped) || errors.Is(err, event.ErrUnprojectable) {
		code := problem.PayloadUnprojectable
		if errors.Is(err, event.ErrUnmapped) {
			code = problem.EventTypeUnmapped
		}
		p := problem.New(code, "the run's log is in the words of an older protocol and cannot be read")
		p.Cause = err
		return p
	}
	var x store.Expired
	if errors.As(err, &x) {
		return engine.ErrExpired(x)
	}
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.NotFound, "no such run")
	}
	return err
}

// Head reads a run's row: whether it is there, and how far its log reaches.
func (h *Host) Head(ctx context.Context, c identity.Caller, id ids.Run) (store.Run, error) {
	if err := h.admit(c, identity.RunsRead, id); err != nil {
		return store.Run{}, err
	}
	if ended, ok := h.engine.Ended(id); ok {
		return ended.Row, nil
	}
	row, err := h.store.Runs().Get(ctx, id)
	return row, notFound(err)
}

// log reads a stretch of a run's log that follows a sequence.
func (h *Host) log(ctx context.Context, id ids.Run, after int64, count, bytes int) (store.Run, []event.Event, error) {
	if ended, ok := h.engine.Ended(id); ok && ended.Log != nil && len(ended.Log) <= count {
		from := min(max(after+1, 0), int64(len(ended.Log)))
		return ended.Row, ended.Log[from:], nil
	}
	row, events, err := h.store.Runs().Events(ctx, id, after, count, bytes)
	return row, events, notFound(err)
}

// Snapshot reads a run's snapshot as JSON, and the sequence it is the fold of
// (spec v2 runs.md §Snapshot).
func (h *Host) Snapshot(ctx context.Context, c identity.Caller, id ids.Run) (jsontext.Value, int64, error) {
	if err := h.admit(c, identity.RunsRead, id); err != nil {
		return nil, 0, err
	}
	if h.cache.has(id) {
		row, err := h.Head(ctx, c, id)
		if err != nil {
			return nil, 0, err
		}
		if v := h.cache.get(id, row.Seq); v != nil {
			return v, row.Seq, nil
		}
	}
	s, err := h.state(ctx, id)
	if err != nil {
		return nil, 0, notFound(err)
	}
	v, err := json.Marshal(s.Snapshot(), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, 0, problem.Internal(err)
	}
	h.cache.put(id, s.Seq, v)
	return v, s.Seq, nil
}

func (h *Host) state(ctx context.Context, id ids.Run) (*run.State, error) {
	if ended, ok := h.engine.Ended(id); ok {
		return ended.State, nil
	}
	return h.engine.Read(ctx, id)
}

// ListRuns is the request of listRuns.
type ListRuns struct {
	Limit      int // 0 for the default
	Cursor     string
	WorkflowID string
	Status     string
}

// RunPage is one page of runs, without payloads.
type RunPage struct {
	Runs       []run.Snapshot `json:"runs"`
	NextCursor string         `json:"nextCursor,omitzero"`
}

// defaultPage is the page size of a caller who names none.
const defaultPage = 50

// ListRuns reads a page of the caller's runs, newest first (spec v2 runs.md §List).
func (h *Host) ListRuns(ctx context.Context, c identity.Caller, r ListRuns) (RunPage, error) {
	if err := h.allow(c, identity.RunsRead); err != nil {
		return RunPage{}, err
	}
	if r.Status != "" && !knownStatus(r.Status) {
		return RunPage{}, problem.Invalid("status", "%q is no run status", r.Status)
	}
	if r.WorkflowID != "" && !ids.ValidAuthored(r.WorkflowID) {
		return RunPage{}, problem.Invalid("workflowId", "is no workflow id")
	}
	limit := r.Limit
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, h.cfg.Limits.MaxPageSize)
	before := ""
	if r.Cursor != "" {
		var ok bool
		if before, ok = readCursor(r.Cursor, cursorKey(c, r)); !ok {
			return RunPage{}, problem.Invalid("cursor", "is not a cursor of this list")
		}
	}
	rows, err := h.store.Runs().List(ctx, store.ListQuery{
		Tenant: c.Tenant(), Before: before, Limit: limit + 1, WorkflowID: r.WorkflowID, Status: r.Status,
	})
	if err != nil {
		return RunPage{}, err
	}
	page := RunPage{Runs: make([]run.Snapshot, 0, len(rows))}
	if len(rows) > limit {
		rows = rows[:limit]
		page.NextCursor = makeCursor(rows[limit-1].ID.Opaque, cursorKey(c, r))
	}
	for i := range rows {
		page.Runs = append(page.Runs, summary(&rows[i]))
	}
	return page, nil
}

// summary is the part of a snapshot that a row holds.
func summary(r *store.Run) run.Snapshot {
	return run.Snapshot{
		RunID: r.ID.String(), WorkflowID: r.WorkflowID, Status: r.Status, Owner: r.Owner,
		EventLogSchemaVersion: eraOf(r), EngineVersion: event.EngineVersion, CurrentNodeID: r.CurrentNode,
		StartedAt: run.Stamp(r.StartedAt), CompletedAt: run.Stamp(r.CompletedAt), Tags: r.Tags,
		Error: publicError(r.Error), CompensationStatus: cmp.Or(r.Compensation, run.UndoNone),
	}
}

// eraOf is the era of a run's log (spec v2 persistence.md §The era key).
func eraOf(r *store.Run) int {
	if r.WorkflowVersion == "" {
		return event.OldEra
	}
	return event.LogEra
}

// publicError is a stored error without what the snapshot's closed shape lacks.
func publicError(v []byte) jsontext.Value {
	if len(v) == 0 {
		return nil
	}
	e, err := event.Read[event.Error](v)
	if err != nil {
		return nil
	}
	e.Retryable = nil
	return event.Encode(e)
}

func knownStatus(s string) bool {
	switch s {
	case run.Pending, run.Running, run.Paused, run.WaitingApproval, run.WaitingInput, run.WaitingExternal,
		run.Completed, run.Failed, run.Cancelling, run.Cancelled:
		return true
	}
	return false
}

// cursorKey is what a cursor belongs to: the tenant and the filters of its list.
func cursorKey(c identity.Caller, r ListRuns) string {
	return strings.Join([]string{c.Tenant(), strconv.Quote(r.WorkflowID), r.Status}, "\x00")
}

func makeCursor(at, key string) string {
	sum := sha256.Sum256([]byte("fermata cursor 1\x00" + key + "\x00" + at))
	return base64.RawURLEncoding.EncodeToString(append(sum[:9:9], at...))
}

func readCursor(cursor, key string) (string, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 10 {
		return "", false
	}
	at := string(b[9:])
	return at, makeCursor(at, key) == cursor
}

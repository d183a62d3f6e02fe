package host

import (
	"context"

	"github.com/fermata-run/fermata/internal/diff"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// RunDiff is how two runs differ: their logs sequence by sequence, and the states
// they come to, as the outside may see them.
type RunDiff struct {
	A             string         `json:"a"`
	B             string         `json:"b"`
	DivergedAtSeq *int64         `json:"divergedAtSeq"`
	EventDiffs    []diff.Entry   `json:"eventDiffs"`
	StateDiff     map[string]any `json:"stateDiff"`
	Truncated     bool           `json:"truncated,omitzero"`
}

// DiffRun compares two runs (spec v2 runs.md §Diff and ancestry). It reads both
// logs in parts and holds no more than what it lists.
func (h *Host) DiffRun(ctx context.Context, c identity.Caller, a, b ids.Run) (RunDiff, error) {
	return h.DiffRunIn(ctx, c, a, b, (*event.Event).Doc)
}

// DiffRunIn is DiffRun for a reader who sees events in another form.
func (h *Host) DiffRunIn(ctx context.Context, c identity.Caller, a, b ids.Run, doc diff.Doc) (RunDiff, error) {
	for _, id := range []ids.Run{a, b} {
		if err := h.admit(ctx, c, identity.RunsRead, id); err != nil {
			return RunDiff{}, err
		}
	}
	out := RunDiff{A: a.String(), B: b.String(), StateDiff: map[string]any{}}
	x, err := h.side(ctx, a)
	if err != nil {
		return RunDiff{}, err
	}
	y, err := h.side(ctx, b)
	if err != nil {
		return RunDiff{}, err
	}
	r, err := diff.LogsIn(x.next, y.next, doc)
	if err != nil {
		return RunDiff{}, notFound(err)
	}
	out.DivergedAtSeq, out.EventDiffs = r.DivergedAtSeq, r.Entries
	out.Truncated = r.Truncated || !run.Terminal(x.row.Status) || !run.Terminal(y.row.Status)
	if a != b && r.DivergedAtSeq != nil {
		err = x.states(y, out.StateDiff)
	}
	return out, err
}

// side reads one of two logs, up to where it ended when the reading began.
type side struct {
	h    *Host
	ctx  context.Context
	row  store.Run
	page []event.Event
	seq  int64
}

func (h *Host) side(ctx context.Context, id ids.Run) (*side, error) {
	row, err := h.store.Runs().Get(ctx, id)
	return &side{h: h, ctx: ctx, row: row, seq: -1}, notFound(err)
}

func (s *side) next() (*event.Event, error) {
	if s.seq >= s.row.Seq {
		return nil, nil
	}
	if len(s.page) == 0 {
		var err error
		if _, s.page, err = s.h.store.Runs().Events(s.ctx, s.row.ID, s.seq, streamEvents, streamBytes); err != nil || len(s.page) == 0 {
			return nil, err
		}
	}
	e := &s.page[0]
	s.page, s.seq = s.page[1:], e.Seq
	return e, nil
}

// states compares what the two logs fold to.
func (s *side) states(other *side, out map[string]any) error {
	x, err := s.h.FoldUpTo(s.ctx, s.row.ID, s.row.Seq)
	if err != nil {
		return err
	}
	y, err := s.h.FoldUpTo(s.ctx, other.row.ID, other.row.Seq)
	if err != nil {
		return err
	}
	a, b := x.Snapshot(), y.Snapshot()
	if a.Status != b.Status {
		out["status"] = map[string]string{"a": a.Status, "b": b.Status}
	}
	for name, v := range map[string][2]jsontext.Value{"variables": {a.Variables, b.Variables}, "channels": {a.Channels, b.Channels}} {
		m, err := members(v)
		if err != nil {
			return problem.Internal(err)
		}
		if d := diff.Members(m[0], m[1]); len(d) > 0 {
			out[name] = d
		}
	}
	return nil
}

func members(v [2]jsontext.Value) (out [2]map[string]jsontext.Value, err error) {
	for i := range v {
		if len(v[i]) > 0 && err == nil {
			err = json.Unmarshal(v[i], &out[i])
		}
	}
	return out, err
}

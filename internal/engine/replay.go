package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// How much of a source's log one read takes.
const (
	sourceEvents = 512
	sourceBytes  = 1 << 20
)

// replay is what a turn of a replay takes from its source: the record of it, and
// the stretch of its log that is being read. Nothing of it needs to be kept: what
// has been said follows from the replay's own log.
type replay struct {
	e      *Engine
	source ids.Run
	rec    *run.Record
	page   []event.Event
	held   map[string]run.NodeResult // results of calls that wait for the record, by node
}

// openReplay reads a source's log through, in parts.
func (e *Engine) openReplay(ctx context.Context, source ids.Run) (*replay, error) {
	r := &replay{e: e, source: source, rec: run.NewRecord(source), held: map[string]run.NodeResult{}}
	err := e.each(ctx, source, func(ev *event.Event) (bool, error) {
		r.rec.Add(ev)
		return true, nil
	})
	if errors.Is(err, store.ErrNotFound) {
		// Deleted, or expired, which is the same here: it has no outcome for anything.
		r.rec = run.NewRecord(source)
		return r, nil
	}
	return r, err
}

// each calls fn for the events of a log, in order, until it returns false. It
// holds one part of the log at a time.
func (e *Engine) each(ctx context.Context, id ids.Run, fn func(*event.Event) (bool, error)) error {
	for after := int64(-1); ; {
		_, events, err := e.store.Runs().Events(ctx, id, after, sourceEvents, sourceBytes)
		if err != nil || len(events) == 0 {
			return err
		}
		for i := range events {
			if more, err := fn(&events[i]); err != nil || !more {
				return err
			}
		}
		after = events[len(events)-1].Seq
	}
}

// event reads one event of the source.
func (r *replay) event(seq int64) (event.Event, error) {
	if n := len(r.page); n == 0 || seq < r.page[0].Seq || seq > r.page[n-1].Seq {
		_, events, err := r.e.store.Runs().Events(context.Background(), r.source, seq-1, sourceEvents, sourceBytes)
		if err != nil {
			return event.Event{}, err
		}
		r.page = events
	}
	if len(r.page) == 0 || r.page[0].Seq > seq {
		return event.Event{}, store.ErrNotFound
	}
	return r.page[seq-r.page[0].Seq], nil
}

// hold keeps the result of a pure call that wants something the record must give:
// an answer, or child runs.
func (r *replay) hold(s *run.State, res run.NodeResult) bool {
	if res.Err != nil {
		return false
	}
	switch res.Result.Kind() {
	case node.Suspended:
		if s.Answered(res.NodeID, res.Result.Interrupt().Key) {
			return false
		}
	case node.Awaiting:
	default:
		return false
	}
	r.held[res.NodeID] = res
	return true
}

// holds says how far the calls of a replay are.
func (t *turn) holds() func(string) run.Held {
	r, calls := t.replay, map[string]run.Execute{}
	for _, x := range t.s.Executing() {
		calls[x.NodeID] = x
	}
	return func(nodeID string) run.Held {
		h, ok := r.held[nodeID]
		x, executing := calls[nodeID]
		switch {
		case executing && t.pending(nodeID, x) >= 0:
			return run.HeldCall
		case !ok:
			return run.HeldNothing
		case !executing || x.Visit != h.Visit || x.Attempt != h.Attempt:
			delete(r.held, nodeID) // its node has moved on
			return run.HeldNothing
		case h.Result.Kind() == node.Awaiting:
			return run.HeldChildren
		}
		return run.HeldAnswer
	}
}

// pending finds the call of a node among those to make, or gives -1.
func (t *turn) pending(nodeID string, x run.Execute) int {
	return slices.IndexFunc(t.todo, func(y run.Execute) bool {
		return y.NodeID == nodeID && y.Visit == x.Visit && y.Attempt == x.Attempt
	})
}

// next does what comes next in a replay, and reports whether something did.
func (t *turn) next() bool {
	r := t.replay
	cue := r.rec.Next(t.s, t.holds())
	switch cue.Kind {
	case run.NoCue:
		return false
	case run.CueCall:
		for i, x := range t.todo {
			if x.NodeID == cue.NodeID {
				t.todo = slices.Delete(t.todo, i, i+1)
				t.make(effect.Forbid(t.e.life.Load().ctx), x) // it passes no seam
				break
			}
		}
		return t.broken == nil
	}
	c, err := r.command(t.s, cue)
	if errors.Is(err, store.ErrNotFound) {
		r.rec = run.NewRecord(r.source) // the source has gone meanwhile: it has nothing to give
		return true
	}
	if err == nil {
		err = t.decide(c)
	}
	if err != nil && t.broken == nil {
		t.broken = err
	}
	return t.broken == nil
}

func (r *replay) command(s *run.State, cue run.Cue) (run.Command, error) {
	switch cue.Kind {
	case run.CueEcho:
		e, err := r.event(cue.Seq)
		return run.Echo{Event: e, Hold: cue.Hold}, err
	case run.CueElapse:
		return run.Elapse{NodeID: cue.NodeID, Hold: cue.Hold}, nil
	case run.CueMissing:
		return run.Missing{NodeID: cue.NodeID}, nil
	case run.CueLate:
		return run.Late{}, nil
	case run.CueAnswer:
		res := r.held[cue.NodeID]
		for _, seq := range r.rec.Answers(s, cue.NodeID) {
			e, err := r.event(seq)
			if err != nil {
				return nil, err
			}
			res.Recorded = append(res.Recorded, e)
		}
		delete(r.held, cue.NodeID)
		return res, nil
	case run.CueCancel:
		e, err := r.event(cue.Seq)
		if err != nil {
			return nil, err
		}
		p, err := event.Read[event.Cancelled](e.Payload)
		return run.Cancel{Reason: p.Reason, By: p.CancelledBy, ParentRunID: p.ParentRunID}, err
	}
	return nil, problem.Internal(errors.New("engine: an unknown cue"))
}

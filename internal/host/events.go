package host

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// How much of a log one read takes.
const (
	streamEvents = 512
	streamBytes  = 1 << 20
	pollEvents   = 10_000
	pollBytes    = 16 << 20
)

// Log follows one run's log, in order, without gap or repetition: from the
// store as far as it reaches, then live.
type Log struct {
	h     *Host
	id    ids.Run
	watch *engine.Watch
	after int64
	live  bool
	past  bool // the run has ended, and its effects are being undone
}

// OpenLog begins to follow a run behind a sequence (-1 for all of it). Close
// must be called.
func (h *Host) OpenLog(ctx context.Context, c identity.Caller, id ids.Run, after int64) (*Log, error) {
	if _, err := h.Head(ctx, c, id); err != nil {
		return nil, err
	}
	return &Log{h: h, id: id, watch: h.engine.Feed().Watch(id), after: after}, nil
}

// Close stops following.
func (l *Log) Close() { l.watch.Close() }

// Cause is what lies behind a failure to read: ErrShutdown once the host stops,
// for the store closes then, else the failure itself.
func (l *Log) Cause(err error) error {
	select {
	case <-l.watch.Closed():
		return ErrShutdown
	default:
		return err
	}
}

// Next returns the events that follow, waiting for the first of them until wait
// is over (then it returns none). It fails with ErrShutdown when the host ends,
// and with the context's error when that does.
func (l *Log) Next(ctx context.Context, wait <-chan time.Time) ([]event.Event, error) {
	for {
		events, more, ok := l.watch.After(l.after)
		if !ok || l.past {
			l.live = false // whether more is to come, the row says
		}
		if !l.live {
			// Whatever is published from here on closes more.
			row, read, err := l.h.log(ctx, l.id, l.after, streamEvents, streamBytes)
			if err != nil {
				return nil, l.Cause(err)
			}
			if len(read) > 0 {
				l.after = read[len(read)-1].Seq
			}
			// A cursor ahead of the log is never live: the run may end before it
			// is reached, and then the store is what says so.
			l.live, l.past = l.after == row.Seq, run.Terminal(row.Status)
			if len(read) > 0 {
				return read, nil
			}
			if rest(&row) {
				return nil, ErrEnded
			}
		} else if len(events) > 0 {
			l.after = events[len(events)-1].Seq
			return events, nil
		}
		select {
		case <-more:
		case <-wait:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.watch.Closed():
			return nil, ErrShutdown
		}
	}
}

// sentinel is an end of a log that is no failure.
type sentinel string

func (s sentinel) Error() string { return string(s) }

// ErrShutdown ends a log because the host stops; ErrEnded because the run is over,
// nothing of it is being undone and nothing lies behind the cursor.
const (
	ErrShutdown = sentinel("the host is shutting down")
	ErrEnded    = sentinel("the run has ended")
)

// Page is the answer of a poll.
type Page struct {
	Events       []event.Event
	LastSequence int64
	Status       string
	IsTerminal   bool
}

// Poll reads what follows a sequence (-1 for all), waiting for something up to
// timeout (spec v2 events.md §Poll). A run is called terminal only with its last
// event in the page or behind the cursor. While a terminal run is undone, a poll
// behind that event waits for the next one like any other.
func (h *Host) Poll(ctx context.Context, c identity.Caller, id ids.Run, after int64, timeout time.Duration) (Page, error) {
	if err := h.admit(c, identity.RunsRead, id); err != nil { // whether it is there, the log says
		return Page{}, err
	}
	watch := h.engine.Feed().Watch(id)
	defer watch.Close()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		_, more, _ := watch.After(after)
		row, events, err := h.log(ctx, id, after, pollEvents, pollBytes)
		if err != nil {
			return Page{}, err
		}
		page := pageOf(row, events, after)
		if len(events) > 0 || rest(&row) {
			return page, nil
		}
		select {
		case <-more:
		case <-deadline.C:
			return page, nil
		case <-watch.Closed():
			return page, nil
		case <-ctx.Done():
			return Page{}, ctx.Err()
		}
	}
}

func pageOf(row store.Run, events []event.Event, after int64) Page {
	end := after
	if len(events) > 0 {
		end = events[len(events)-1].Seq
	}
	return Page{
		Events: events, LastSequence: row.Seq, Status: row.Status,
		IsTerminal: run.Terminal(row.Status) && end >= row.Seq,
	}
}

// FoldUpTo folds a run's log up to and including a sequence.
func (h *Host) FoldUpTo(ctx context.Context, id ids.Run, seq int64) (*run.State, error) {
	row, err := h.store.Runs().Get(ctx, id)
	if err != nil {
		return nil, notFound(err)
	}
	wf, err := h.engine.Definitions().Get(ctx, id.Tenant, row.WorkflowID, row.WorkflowVersion)
	if err != nil {
		return nil, err
	}
	s, err := h.engine.Blank(&row, wf)
	if err != nil {
		return nil, problem.Internal(err)
	}
	for s.Seq < seq {
		_, events, err := h.store.Runs().Events(ctx, id, s.Seq, streamEvents, streamBytes)
		if err != nil {
			return nil, notFound(err) // it may have expired between two reads
		}
		if len(events) == 0 {
			break
		}
		for i := range events {
			if events[i].Seq > seq {
				return s, nil
			}
			if err := s.Fold(&events[i]); err != nil {
				return nil, problem.Internal(err)
			}
		}
	}
	return s, nil
}

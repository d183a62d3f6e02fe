package stream

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/problem"
)

// stream sends one run's log to one subscriber.
type stream struct {
	log    *host.Log
	out    *sse.Writer
	buffer time.Duration
	fold   func(*event.Event) error // values mode
	held   []event.Event            // waiting to be sent as a batch
	size   int                      // of what is held, in bytes
	due    <-chan time.Time         // when they must be

	allowed func(context.Context) bool // whether the subscriber may still read; may be nil
	recheck time.Duration              // how often that is asked
}

// run sends until the run's last event is written, the client goes, or the host
// stops. It returns an error only for what the connection must be cut for.
func (s *stream) run(ctx context.Context) error {
	asked := time.Now()
	for {
		if s.allowed != nil && time.Since(asked) >= s.recheck {
			if !s.allowed(ctx) {
				if err := s.release(); err != nil {
					return err
				}
				return quiet(s.out.Comment("the credential no longer allows this"))
			}
			asked = time.Now()
		}
		alive := time.NewTimer(s.silence())
		wait := alive.C
		if s.due != nil {
			wait = s.due
		}
		events, err := s.log.Next(ctx, wait)
		alive.Stop()
		switch {
		case errors.Is(err, host.ErrEnded), errors.Is(err, host.ErrShutdown):
			return s.release()
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		over, err := s.send(events)
		if err != nil || over {
			return quiet(err)
		}
	}
}

// silence is how long a stream says nothing, and looks at nothing.
func (s *stream) silence() time.Duration {
	if s.allowed != nil && s.recheck < sse.Keepalive {
		return s.recheck
	}
	return sse.Keepalive
}

// quiet drops a write error: it means that the client has gone.
func quiet(err error) error {
	var p *problem.Error
	if errors.As(err, &p) {
		return err
	}
	return nil
}

func (s *stream) send(events []event.Event) (over bool, err error) {
	if len(events) == 0 {
		if s.due != nil {
			return false, s.release()
		}
		return false, s.out.Comment("alive")
	}
	for i := range events {
		if events[i].Type.Terminal() {
			// The stream ends here (spec v2 events.md §SSE frames). Who wants to see
			// the run undone resumes behind this event.
			events, over = events[:i+1], true
			break
		}
	}
	if s.buffer > 0 && s.fold == nil {
		return over, s.hold(events, over)
	}
	for i := range events {
		if s.fold != nil {
			if err := s.fold(&events[i]); err != nil {
				return false, err
			}
			continue
		}
		s.out.Add(&events[i])
	}
	return over, s.out.Flush()
}

// A batch is sent before its time once it holds this much.
const (
	maxHeld      = 1000
	maxHeldBytes = 1 << 20
)

// hold keeps events for a batch; an event that somebody waits for flushes it.
func (s *stream) hold(events []event.Event, over bool) error {
	flush := over
	for i := range events {
		if !s.out.Admits(&events[i]) {
			continue
		}
		s.held = append(s.held, events[i])
		s.size += len(events[i].Doc())
		flush = flush || events[i].Type == event.NodeSuspended
	}
	if flush || len(s.held) >= maxHeld || s.size >= maxHeldBytes {
		return s.release()
	}
	if s.due == nil && len(s.held) > 0 {
		s.due = time.After(s.buffer)
	}
	return nil
}

func (s *stream) release() error {
	if len(s.held) > 0 {
		s.out.Batch(s.held)
	}
	s.held, s.size, s.due = nil, 0, nil
	return quiet(s.out.Flush())
}

package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"
)

// StreamOptions says which of a run's events to follow.
type StreamOptions struct {
	// Mode is values, updates, messages, debug, or several of the last three
	// joined by commas. Empty means updates.
	Mode string

	// After resumes behind this sequence; nil begins with the first event.
	After *int64

	// Buffer lets the host gather events for up to 5 s and send them together.
	// They are still delivered one by one.
	Buffer time.Duration
}

func (o StreamOptions) query() url.Values {
	q := url.Values{}
	setText(q, "streamMode", o.Mode)
	setInt(q, "bufferMs", o.Buffer.Milliseconds())
	return q
}

// Stream follows a run's events until the run is over. A lost connection is made
// anew, with the same filters, behind the last event delivered: each event comes
// exactly once and in order. Leaving the loop closes the connection. If the
// stream cannot go on, its last pair carries the error.
func (c *Client) Stream(ctx context.Context, runID string, o StreamOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{c: c, run: runID, query: o.query(), last: -1, yield: yield}
		if o.After != nil {
			f.last = *o.After
		}
		if err := f.follow(ctx); err != nil && !f.left {
			yield(Event{}, err)
		}
	}
}

// follower is one Stream under way.
type follower struct {
	c     *Client
	run   string
	query url.Values
	yield func(Event, error) bool

	last      int64 // highest sequence delivered or passed over; -1 for none
	delivered bool  // something was
	left      bool  // the caller left the loop
	over      bool  // the run was known to be over before the connection at hand
	fresh     bool  // the connection at hand brought something

	fruitless int           // connections in a row that brought nothing
	wait      time.Duration // the least to wait before the next one
}

// follow makes connections until one of them ends the stream.
func (f *follower) follow(ctx context.Context) error {
	for {
		how, err := f.connection(ctx)
		switch {
		case f.left, how == finished && err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case how == finished:
			return err
		case how == closed:
			done, again, serr := f.settled(ctx)
			if done || serr != nil {
				return serr
			}
			if again {
				continue
			}
		}
		if max := f.c.lost; max >= 0 && f.fruitless >= max {
			if err == nil {
				err = errors.New("the host keeps ending the stream")
			}
			return fmt.Errorf("the stream is lost after %d attempts: %w", f.fruitless, err)
		}
		if err := f.c.sleep(ctx, max(f.c.backoff(f.fruitless), f.wait)); err != nil {
			return context.Cause(ctx)
		}
		f.fruitless++
	}
}

// settled decides what a stream that ended in order means. The terminal event
// ends it at once; without one, the run may still be over, in a mode that does
// not show its end or with a cursor behind it. Only a connection made after the
// end was known, which then brought nothing, has certainly shown everything.
func (f *follower) settled(ctx context.Context) (done, again bool, err error) {
	if f.over {
		return !f.fresh, f.fresh, nil
	}
	r, err := f.c.GetRun(ctx, f.run)
	var e *Error
	switch {
	case err == nil && r.Status.Terminal():
		f.over = true
		return false, true, nil
	case errors.As(err, &e) && !transient(e.Status) && e.Status < 500:
		return false, false, err
	}
	return false, false, nil // the host stops, or something between cut the line
}

// deliver hands a frame's events to the caller, without what he has had.
func (f *follower) deliver(fr frame, first bool) (done bool, err error) {
	events, err := eventsOf(fr, f.run)
	if err != nil {
		return false, err
	}
	for _, e := range events {
		if e.Sequence < 0 && (!first || f.delivered) {
			continue // a state that was delivered under its own sequence
		}
		if e.Sequence >= 0 && e.Sequence <= f.last {
			continue
		}
		f.last = max(f.last, e.Sequence)
		f.fruitless, f.delivered, f.fresh = 0, true, true
		if !f.yield(e, nil) {
			f.left = true
			return true, nil
		}
		if e.Terminal() {
			return true, nil
		}
	}
	if fr.name == "batch" {
		// It stands for events that the mode does not show as well.
		if n, err := strconv.ParseInt(fr.id, 10, 64); err == nil {
			f.last = max(f.last, n)
		}
	}
	return false, nil
}

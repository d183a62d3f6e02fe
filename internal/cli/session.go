package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/client"
)

// session watches one run and its child runs to the end, shows them, and has
// their questions answered.
type session struct {
	c     *client.Client
	root  string
	board *board
	view  view
	desk  *desk

	// keep leaves the run alone when somebody stops watching; else it is
	// cancelled.
	keep bool
	// namesOf gives the names of a workflow's nodes, for child runs; nil for none.
	namesOf func(workflowID string) map[string]string

	logs <-chan string // log lines of a host in this process; nil for none

	in   chan arrival
	kids children
	end  *client.Event
}

// arrival is one event of one run, or the end of its stream.
type arrival struct {
	run  string
	ev   client.Event
	err  error
	done bool
}

// frameTime is the time between two pictures of a board, and quietTicks how many
// of them without news make a silence.
const (
	frameTime  = 100 * time.Millisecond
	quietTicks = 5
)

var errTimeout = errors.New("the time given by --timeout is over")

// watch follows the run until it is over. When ctx ends first, the run is
// cancelled, or left to go on.
func (s *session) watch(ctx context.Context) (outcome, error) {
	defer s.view.close()
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s.in = make(chan arrival)
	s.kids.init(s, live)
	go s.follow(live, s.root)
	ticker := time.NewTicker(frameTime)
	defer ticker.Stop()
	ended, quiet := ctx.Done(), 0
	var patience <-chan time.Time
	for {
		s.desk.next(ctx)
		select {
		case x := <-s.in:
			quiet = 0
			if over, err := s.take(live, x); over || err != nil {
				return s.finish(), err
			}
		case r := <-s.desk.answered:
			quiet = 0
			s.desk.settle(r)
		case line := <-s.logs:
			s.view.note(line)
		case now := <-ticker.C:
			s.view.tick(now)
			// Only after a while of silence: news may be on its way.
			if quiet++; quiet == quietTicks && ended != nil && s.desk.stuck(live) {
				s.desk.explain()
				ended = nil
				patience = s.cancel(live, "nobody could answer")
			}
		case <-ended:
			ended = nil
			cause := context.Cause(ctx)
			if s.keep && errors.Is(cause, errInterrupted) {
				return outcome{}, cause
			}
			s.view.note(cause.Error() + "; cancelling the run")
			patience = s.cancel(live, cause.Error())
		case <-patience:
			return outcome{}, errors.New("the run did not end in time")
		}
	}
}

// cancel asks the run to end, and says how long to wait for that.
func (s *session) cancel(ctx context.Context, reason string) <-chan time.Time {
	s.desk.close()
	go func() {
		ctx, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		// A run that is over already says so, and its last event is on its way.
		_, _ = s.c.CancelRun(ctx, s.root, reason)
	}()
	return time.After(15 * time.Second)
}

// follow sends a run's events to the session.
func (s *session) follow(ctx context.Context, run string) {
	send := func(x arrival) bool {
		select {
		case s.in <- x:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for ev, err := range s.c.Stream(ctx, run, client.StreamOptions{Mode: "debug"}) {
		if !send(arrival{run: run, ev: ev, err: err}) || err != nil {
			return
		}
	}
	send(arrival{run: run, done: true})
}

// take deals with one arrival. It reports whether there is nothing more to see.
func (s *session) take(ctx context.Context, x arrival) (over bool, err error) {
	if x.err != nil {
		if x.run == s.root {
			return false, x.err
		}
		s.view.note("lost sight of the child run " + plain(x.run) + ": " + plain(x.err.Error()))
		x.done = true
	}
	if x.done {
		if x.run != s.root {
			s.kids.ended(x.run)
		} else if s.end == nil {
			return false, fmt.Errorf("the events of run %s ended before the run did", x.run)
		}
		return s.end != nil && s.kids.settled(ctx), nil
	}
	ev := &x.ev
	changed := s.board.apply(x.run, ev)
	if ev.Type == "node.dispatched" {
		s.adopt(ev)
	}
	s.view.event(x.run, ev, changed)
	s.desk.event(x.run, ev)
	if x.run == s.root && ev.Terminal() {
		s.end = ev
		s.desk.close()
	}
	return false, nil
}

// adopt begins to follow a child run.
func (s *session) adopt(ev *client.Event) {
	var d details
	if ev.Decode(&d) != nil || d.ChildRunID == "" {
		return
	}
	if br := s.board.runs[d.ChildRunID]; br != nil && br.names == nil && s.namesOf != nil {
		br.names = s.namesOf(d.ChildWorkflowID)
	}
	s.kids.begin(d.ChildRunID)
}

func (s *session) finish() outcome {
	if s.end == nil {
		return outcome{}
	}
	return outcome{event: *s.end}
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// errForeign says that another instance owns the run.
var errForeign = errors.New("engine: the run belongs to another instance")

// defect is a failure that trying again cannot mend: a log that does not fold,
// a definition that does not compile, a decision that broke down.
type defect struct{ err error }

func (d defect) Error() string { return d.err.Error() }
func (d defect) Unwrap() error { return d.err }

func isDefect(err error) bool {
	var d defect
	return errors.As(err, &d)
}

// How often a step is made anew at once when somebody else was quicker, and how
// long to wait between tries when the store does not take it. The waits are of
// the machine's time: they have nothing to do with the time of runs.
const (
	quickTries = 10
	firstWait  = 5 * time.Millisecond
	longestGap = time.Second
	lastTries  = 5 // of an engine that stops, a moment apart
	moment     = 20 * time.Millisecond
)

// handle lets a batch of messages happen in one transaction. On failure the run
// is read again and the batch decided anew: at once if another writer was
// quicker, after a while if the store failed. A caller who waits is told of the
// failure; what nobody waits for (the outcome of a call, a due timer, a child's
// news) is kept until it is durable, for nobody would bring it a second time.
func (a *actor) handle(mail []message) {
	wait, salvaged, last := firstWait, false, 0
	for try := 0; ; try++ {
		outs, err := a.turn(mail)
		if err == nil {
			answer(mail, outs)
			return
		}
		a.forget()
		mail = withoutPending(mail)
		switch {
		case errors.Is(err, errForeign) && try < quickTries:
			// The run belongs to an owner that may be gone. The store knows.
			a.e.claim()
			time.Sleep(time.Duration(try) * 10 * time.Millisecond)
		case errors.Is(err, store.ErrStale) && try < quickTries:
		case isDefect(err) && !salvaged && salvage(mail):
			salvaged = true
		case errors.Is(err, errForeign), errors.Is(err, store.ErrNotFound), errors.Is(err, errCut), isDefect(err):
			if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, errCut) {
				a.e.log.Error("a step of a run could not be made", "run", a.id.String(), "err", err)
			}
			a.drop(mail)
			answer(mail, failAll(len(mail), refusal(err)))
			return
		default:
			if wait == firstWait {
				a.e.log.Warn("a step of a run could not be written and will be tried again", "run", a.id.String(), "err", err)
			}
			answer(mail, failAll(len(mail), refusal(err)))
			if !a.e.rest(wait) {
				if last++; last > lastTries {
					a.drop(mail)
					return // the next owner goes on from the log
				}
				time.Sleep(moment)
			}
			wait = min(2*wait, longestGap)
			more := a.e.actors.more(a)
			a.e.began(a.id, more)
			mail = append(kept(mail), more...)
		}
	}
}

// rest waits, and reports whether there is a point in going on afterwards.
func (e *Engine) rest(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-e.stop:
		return false
	case <-t.C:
		return true
	}
}

// kept is what of a batch must still happen when those who waited have been
// answered. Even of an empty batch comes something: the failed write may have
// reached the store all the same, and then the run is found waiting for calls
// that nobody makes.
func kept(mail []message) []message {
	var out []message
	for _, m := range mail {
		if m.reply == nil {
			out = append(out, m)
		}
	}
	return out
}

// withoutPending drops calls left over from a turn: the run is read again, and
// what it waits for is found in it.
func withoutPending(mail []message) []message {
	out := mail[:0]
	for _, m := range mail {
		if m.cmd != nil {
			out = append(out, m)
		}
	}
	return out
}

// salvage turns outcomes that may have caused a defect into failures of their
// calls, so that one bad result does not leave its run standing.
func salvage(mail []message) bool {
	any := false
	for i, m := range mail {
		if r, ok := m.cmd.(run.NodeResult); ok && m.done != nil {
			mail[i].cmd = run.NodeResult{
				NodeID: r.NodeID, Visit: r.Visit, Attempt: r.Attempt, Inverse: r.Inverse,
				Err: node.Fail(node.CodeInternal, "the result of node %s could not be recorded", r.NodeID),
			}
			any = true
		}
	}
	return any
}

// drop forgets the calls whose outcomes are given up.
func (a *actor) drop(mail []message) {
	for _, m := range mail {
		if m.done != nil {
			a.over(*m.done)
		}
	}
}

// ErrExpired tells a caller that a run has been let go of (spec v2 replay.md
// §Retention).
func ErrExpired(x store.Expired) error {
	return problem.New(problem.RunExpired, "the run has expired: it is over, and its time to be kept, too").
		With("runId", x.Run.String()).With("expiredAt", run.Stamp(x.At))
}

func refusal(err error) error {
	var x store.Expired
	switch {
	case problem.Is(err, problem.NodeConfigInvalid):
		return err // a definition that is not usable any more
	case errors.As(err, &x):
		return ErrExpired(x)
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.NotFound, "no such run")
	case errors.Is(err, store.ErrClosed), errors.Is(err, errCut):
		return errDraining()
	case errors.Is(err, errForeign), errors.Is(err, store.ErrStale):
		p := problem.New(problem.ServiceUnavailable, "the run is busy elsewhere")
		p.RetryAfter = time.Second
		return p
	case errors.Is(err, store.ErrUnavailable):
		p := problem.New(problem.ServiceUnavailable, "the database is not available")
		p.RetryAfter, p.Cause = 2*time.Second, err
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return problem.Internal(err)
}

func failAll(n int, err error) []Outcome {
	outs := make([]Outcome, n)
	for i := range outs {
		outs[i].Err = err
	}
	return outs
}

// answer tells those who wait, once.
func answer(mail []message, outs []Outcome) {
	for i := range mail {
		if m := &mail[i]; m.reply != nil && !m.told {
			m.told = true
			m.reply <- outs[i]
		}
	}
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// message is one thing that happens to a run.
type message struct {
	cmd     run.Command
	pending []run.Execute  // calls left over from a turn that was cut short
	settles *store.Settled // the child's news that cmd takes into account
	done    *callKey       // the call whose result cmd is
	reply   chan<- Outcome // nil if nobody waits
}

// Outcome is what became of a command.
type Outcome struct {
	Status string // of the run afterwards
	Seq    int64
	At     time.Time
	Err    error
}

// actor works on one run. Its state is touched only by its own goroutine, of
// which there is at most one.
type actor struct {
	e       *Engine
	id      ids.Run
	inbox   []message // guarded by the registry
	running bool      // guarded by the registry

	s          *run.State // nil until loaded
	fresh      bool       // s has been looked over since it was loaded
	row        store.Run
	sinceCheck int // bytes of log since the last checkpoint
	checkSize  int
	calls      map[callKey]context.CancelFunc
	wakeAt     time.Time // registered with the timers of active runs
}

type callKey struct {
	node           string
	visit, attempt int
}

// holding reports whether the actor has something the store does not: calls in
// flight. Called by the actor's own goroutine, or before it has one.
func (a *actor) holding() bool { return len(a.calls) > 0 }

func (a *actor) loop() {
	for {
		mail := a.e.actors.take(a)
		if mail == nil {
			return
		}
		a.handle(mail)
	}
}

// handle lets a batch of messages happen in one transaction. If another owner
// or writer was quicker, the run is read again and the batch decided anew.
func (a *actor) handle(mail []message) {
	for try := 0; ; try++ {
		outs, err := a.turn(mail)
		if err == nil {
			answer(mail, outs)
			return
		}
		a.forget()
		if !errors.Is(err, store.ErrStale) && !errors.Is(err, errForeign) || try >= 10 {
			if !errors.Is(err, store.ErrNotFound) {
				a.e.log.Error("a step of a run could not be made", "run", a.id.String(), "err", err)
			}
			answer(mail, failAll(len(mail), refusal(err)))
			return
		}
		if errors.Is(err, errForeign) {
			// The run belongs to an owner that may be gone. The reconciler knows.
			a.e.claim()
			time.Sleep(time.Duration(try) * 10 * time.Millisecond)
		}
	}
}

// errForeign says that another instance owns the run.
var errForeign = errors.New("engine: the run belongs to another instance")

func refusal(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.NotFound, "no such run")
	case errors.Is(err, errForeign), errors.Is(err, store.ErrStale):
		p := problem.New(problem.ServiceUnavailable, "the run is busy elsewhere")
		p.RetryAfter = time.Second
		return p
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

func answer(mail []message, outs []Outcome) {
	for i, m := range mail {
		if m.reply != nil {
			m.reply <- outs[i]
		}
	}
}

// forget drops the state; what is durable counts. Calls in flight go on: if the
// run turns out to be this instance's still, their results are welcome.
func (a *actor) forget() {
	a.s = nil
	a.e.timers.drop(a.id)
}

// abandon cuts off every call of a run that belongs to somebody else now.
func (a *actor) abandon() {
	for k, cancel := range a.calls {
		cancel()
		delete(a.calls, k)
	}
}

// turn decides a batch and makes it durable.
func (a *actor) turn(mail []message) ([]Outcome, error) {
	if a.s == nil {
		if err := a.load(); err != nil {
			return nil, err
		}
	}
	t := newTurn(a.e, a.s, a.row)
	t.cancelCall = a.cut
	outs := make([]Outcome, len(mail))
	var settled []store.Settled
	if a.orphaned() {
		t.decide(run.Recover{})
	}
	for i, m := range mail {
		if m.settles != nil {
			settled = append(settled, *m.settles)
		}
		if m.cmd == nil {
			t.todo = append(t.todo, m.pending...)
			continue
		}
		if m.done != nil {
			if cancel := a.calls[*m.done]; cancel != nil {
				cancel()
				delete(a.calls, *m.done)
			}
		}
		outs[i].Err = t.decide(m.cmd)
		if t.broken != nil {
			return nil, t.broken
		}
	}
	t.inline()
	if t.broken != nil {
		return nil, t.broken
	}
	if err := a.commit(t, settled); err != nil {
		return nil, err
	}
	for i := range outs {
		outs[i].Status, outs[i].Seq, outs[i].At = a.s.Status(), a.s.Seq, a.s.Last
	}
	a.after(t)
	return outs, nil
}

// load folds the run from the store.
func (a *actor) load() error {
	ctx := context.Background()
	l, err := a.e.store.Runs().Load(ctx, a.id)
	if err != nil {
		return err
	}
	if l.Run.Instance != "" && l.Run.Instance != a.e.Instance() {
		a.abandon()
		return errForeign
	}
	s, tail, err := a.e.fold(ctx, l)
	if err != nil {
		return err
	}
	a.s, a.row, a.sinceCheck, a.fresh = s, l.Run, tail, false
	if l.Checkpoint != nil {
		a.checkSize = len(l.Checkpoint.State)
	}
	return nil
}

// orphaned reports whether the run executes something of which nobody here
// makes the call: its owner was lost, or its step could not be written.
func (a *actor) orphaned() bool {
	if a.row.Instance != a.e.Instance() || a.fresh {
		return false
	}
	a.fresh = true
	if a.s.Closing != nil {
		return true
	}
	for _, x := range a.s.Executing() {
		if _, ours := a.calls[callKey{x.NodeID, x.Visit, x.Attempt}]; !ours {
			return true
		}
	}
	return false
}

// fold makes a state from what was loaded; tail is the size of the folded log.
func (e *Engine) fold(ctx context.Context, l store.Loaded) (*run.State, int, error) {
	wf, err := e.defs.Get(ctx, l.Run.ID.Tenant, l.Run.WorkflowID, l.Run.WorkflowVersion)
	if err != nil {
		return nil, 0, err
	}
	s := run.New(l.Run.ID, wf)
	if l.Checkpoint != nil {
		if s, err = run.Decode(l.Run.ID, wf, l.Checkpoint.State); err != nil {
			return nil, 0, err
		}
	}
	size := 0
	for i := range l.Tail {
		if err := s.Fold(&l.Tail[i]); err != nil {
			return nil, 0, err
		}
		size += len(l.Tail[i].Doc())
	}
	s.TakeInbox() // old news
	return s, size, nil
}

// cut interrupts a call whose result is not wanted any more.
func (a *actor) cut(x run.Abort) {
	k := callKey{x.NodeID, x.Visit, x.Attempt}
	if cancel := a.calls[k]; cancel != nil {
		cancel()
		delete(a.calls, k)
	}
}

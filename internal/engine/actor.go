package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
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
	moved   bool           // somebody else has made a step of the run
	claimed bool           // the run has been claimed, and waits for its first turn
	told    bool           // whoever waits has been answered
	drafts  []*store.Draft // audit entries that become durable with what cmd does
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
	guest      bool       // another instance owns the run
	life       *life      // of the calls
	row        store.Run
	sinceCheck int // bytes of log since the last checkpoint
	checkSize  int
	calls      map[callKey]context.CancelFunc
	replay     *replay // of a run that is one
}

type callKey struct {
	node           string
	visit, attempt int
	inverse        int // the action of a plan; 0 for the node's own call
}

func keyOf(x run.Execute) callKey {
	k := callKey{node: x.NodeID, visit: x.Visit, attempt: x.Attempt}
	if x.Inverse != nil {
		k.inverse = x.Inverse.Order
	}
	return k
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
		a.e.began(a.id, mail)
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
	for k := range a.calls {
		a.over(k)
	}
}

// over forgets a call that has come to its end.
func (a *actor) over(k callKey) {
	if cancel := a.calls[k]; cancel != nil {
		cancel()
		delete(a.calls, k)
	}
}

// turn decides a batch and makes it durable. Whatever goes wrong in it concerns
// this run alone.
func (a *actor) turn(mail []message) (outs []Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.e.log.Error("a step of a run panicked", "run", a.id.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = defect{fmt.Errorf("panic: %v", p)}
		}
	}()
	moved := a.refresh(mail)
	if a.s == nil {
		if err := a.load(); err != nil {
			return nil, err
		}
	}
	if moved && !a.guest {
		a.alive(mail) // cuts off what is not wanted any more
	}
	t := newTurn(a.e, a.s, a.row)
	t.guest = a.guest
	t.replay = a.replay
	outs = make([]Outcome, len(mail))
	if a.guest {
		refuseGuest(mail, outs)
		err = t.take(mail, outs, guestworthy)
	} else if a.orphaned() {
		err = a.recover(t, mail, outs)
	} else {
		err = t.take(mail, outs, func(message) bool { return true })
	}
	if err != nil {
		return nil, err
	}
	if t.inline(); t.broken != nil {
		return nil, t.broken
	}
	if err := a.commit(t, settledBy(mail)); err != nil {
		return nil, err
	}
	for i := range outs {
		if a.guest && !guestworthy(mail[i]) {
			continue
		}
		outs[i].Status, outs[i].Seq, outs[i].At = a.s.Status(), a.s.Seq, a.s.Last
	}
	a.drop(mail) // what the calls came to is durable
	// Whoever asked goes first: to wake thousands of watchers takes a while.
	answer(mail, outs)
	a.after(t)
	return outs, nil
}

// refresh drops a state that does not count any more: others have made a step, or
// this instance has been lost since. It reports whether others have.
func (a *actor) refresh(mail []message) (moved bool) {
	for _, m := range mail {
		moved = moved || m.moved
	}
	if now := a.e.life.Load(); a.life != now {
		a.abandon()
		a.forget()
		a.life = now
	}
	if moved {
		a.forget()
	}
	return moved
}

// take decides the messages of a batch that want says.
func (t *turn) take(mail []message, outs []Outcome, want func(message) bool) error {
	for i, m := range mail {
		if !want(m) {
			continue
		}
		if m.cmd == nil {
			t.todo = append(t.todo, m.pending...)
			continue
		}
		if _, tick := m.cmd.(run.Tick); tick {
			t.ticked = true
		}
		outs[i].Err = t.decide(m.cmd)
		if t.broken != nil {
			return t.broken
		}
		if outs[i].Err == nil {
			t.drafts = append(t.drafts, m.drafts...)
		}
	}
	return nil
}

func settledBy(mail []message) []store.Settled {
	var out []store.Settled
	for _, m := range mail {
		if m.settles != nil {
			out = append(out, *m.settles)
		}
	}
	return out
}

// load folds the run from the store.
func (a *actor) load() error {
	ctx := context.Background()
	if ok, err := a.reload(ctx); ok || err != nil {
		return err
	}
	l, err := a.e.store.Runs().Load(ctx, a.id)
	if err != nil {
		return err
	}
	if err := a.owned(l.Run); err != nil {
		return err
	}
	s, tail, err := a.e.fold(ctx, l)
	if err != nil {
		return err
	}
	if s.Replaying() && s.Ended == "" && a.replay == nil {
		if a.replay, err = a.e.openReplay(ctx, l.Run.ForkSource); err != nil {
			return err
		}
	}
	a.s, a.row, a.sinceCheck, a.fresh = s, l.Run, tail, false
	a.e.feed.reached(a.id, s.Seq)
	if l.Checkpoint != nil {
		a.checkSize = len(l.Checkpoint.State)
	}
	return nil
}

// reload takes up the state in which the run came to rest here, if that is still
// how it stands in the store.
func (a *actor) reload(ctx context.Context) (bool, error) {
	r := a.e.warm.take(a.id)
	if r == nil {
		return false, nil
	}
	row, err := a.e.store.Runs().Get(ctx, a.id)
	if err != nil {
		return false, err
	}
	if row.Seq != r.s.Seq || row.Epoch != r.row.Epoch {
		return false, nil
	}
	if err := a.owned(row); err != nil {
		return false, err
	}
	a.s, a.row, a.fresh = r.s, row, false
	a.sinceCheck, a.checkSize = r.sinceCheck, r.checkSize
	return true, nil
}

// owned fails if the run is another instance's.
func (a *actor) owned(row store.Run) error {
	a.guest = false
	if row.Instance != "" && row.Instance != a.e.Instance() {
		a.abandon()
		if a.e.others == nil {
			return errForeign
		}
		a.guest = true
	}
	return nil
}

// fold makes a state from what was loaded; tail is the size of the folded log.
func (e *Engine) fold(ctx context.Context, l store.Loaded) (*run.State, int, error) {
	wf, err := e.defs.Get(ctx, l.Run.ID.Tenant, l.Run.WorkflowID, l.Run.WorkflowVersion)
	if err != nil {
		return nil, 0, err
	}
	s, err := e.Blank(&l.Run, wf)
	if err != nil {
		return nil, 0, defect{err}
	}
	if l.Checkpoint != nil {
		if s, err = run.Decode(l.Run.ID, wf, l.Checkpoint.State); err != nil {
			return nil, 0, defect{err}
		}
	}
	s.MaskWith(e.cfg.MaskSecret)
	size := 0
	for i := range l.Tail {
		if err := s.Fold(&l.Tail[i]); err != nil {
			return nil, 0, defect{err}
		}
		size += len(l.Tail[i].Doc())
	}
	s.TakeInbox() // old news
	return s, size, nil
}

// cut interrupts a call whose result is not wanted any more.
func (a *actor) cut(x run.Abort) { a.over(callKey{x.NodeID, x.Visit, x.Attempt, x.Inverse}) }

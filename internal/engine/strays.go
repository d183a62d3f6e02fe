package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
)

// strayGrace is how long a call may go on after it is over before the operator
// hears of it: most notice within moments.
const strayGrace = 5 * time.Second

// quickLimit is how long the call of a pure node may keep its run's turn. Nothing
// else can happen to the run meanwhile.
const quickLimit = 10 * time.Second

// strayShare is how many strays there may be for each call that may be at work.
const strayShare = 16

// errCut says that the engine ended before a call within a turn did.
var errCut = errors.New("engine: stopped within a step of a run")

// strays counts calls that are over (timed out, cancelled, cut off by the engine's
// end) while their node's code goes on, as code in Go can. Nothing ends such a
// goroutine from outside; what comes of it is ignored. There are at most most.
type strays struct {
	mu   sync.Mutex
	n    int
	most int
}

func (s *strays) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n >= s.most {
		return false
	}
	s.n++
	return true
}

func (s *strays) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
}

func (s *strays) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Strays is how many calls are over and yet go on.
func (e *Engine) Strays() int { return e.strays.count() }

// tracked makes one call beside a turn. When ctx ends, the call is over: nobody
// waits for it any more, and it gives its room up to another one, as long as there
// are not too many of its kind. Then it keeps its room until it returns, so that
// the number of goroutines in nodes' code stays bounded whatever that code does.
func (e *Engine) tracked(ctx context.Context, typ *node.Type, in *node.Input, leave, over func()) run.NodeResult {
	var mu sync.Mutex
	var warn *time.Timer
	returned, counted, warned := false, false, false
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if returned {
			return
		}
		over()
		if counted = e.strays.enter(); counted {
			leave()
		}
		warn = time.AfterFunc(strayGrace, func() {
			mu.Lock()
			defer mu.Unlock()
			if warned = !returned; warned {
				e.log.Warn("a node goes on although its call is over; it should heed its context", "run", in.RunID,
					"node", in.NodeID, "type", in.TypeID, "attempt", in.Attempt, "strays", e.strays.count())
			}
		})
	})
	r := e.invoke(ctx, typ, in)
	stop()
	mu.Lock()
	defer mu.Unlock()
	returned = true
	if warn != nil {
		warn.Stop()
	}
	if counted {
		e.strays.leave()
	}
	if warned {
		e.log.Info("a node whose call was over has returned; its result is ignored", "run", in.RunID, "node", in.NodeID, "attempt", in.Attempt)
	}
	return r
}

// guarded makes the call of a pure node whose type the host does not vouch for. It
// promised to be quick: if it is not, its attempt has failed, and the run goes on
// without it. An error means that the engine ended first.
func (e *Engine) guarded(ctx context.Context, step *flow.Step, typ *node.Type, in *node.Input, scope *locked) (run.NodeResult, error) {
	if ctx.Err() != nil {
		return run.NodeResult{}, errCut
	}
	out := run.NodeResult{NodeID: in.NodeID, Visit: in.Visit, Attempt: in.Attempt}
	limit := e.quickLimit
	if ms := step.Settings.TimeoutMs; ms > 0 {
		limit = min(limit, time.Duration(ms)*time.Millisecond)
	}
	if !e.strays.enter() {
		out.Err = node.Retry(node.CodeInternal, "too many nodes have not returned from their calls")
		return out, nil
	}
	if w := in.Wake; w != nil && w.Load != nil {
		load := w.Load
		w.Load = func(i int) (c node.ChildResult, err error) {
			if !scope.with(func() { c, err = load(i) }) {
				err = errCut
			}
			return c, err
		}
	}
	done := make(chan run.NodeResult, 1)
	go func() {
		defer e.strays.leave()
		done <- e.invoke(ctx, typ, in)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-done:
		return r, nil
	case <-timer.C:
	case <-ctx.Done():
		scope.close()
		return out, errCut
	}
	scope.close()
	e.log.Error("a node type that calls itself pure does not return; its call is given up", "run", in.RunID,
		"node", in.NodeID, "type", in.TypeID, "limit", limit, "strays", e.strays.count())
	out.Err = node.Fail(string(problem.RunTimeout), "node %s kept its run standing for more than %d ms", in.NodeID, limit.Milliseconds())
	out.Err.Details = map[string]any{"scope": "node", "nodeId": in.NodeID, "timeoutMs": limit.Milliseconds()}
	return out, nil
}

// close ends what a call may see of the turn's state, which moves on without it.
func (l *locked) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// with looks at the turn's state if that is still allowed.
func (l *locked) with(look func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		look()
	}
	return !l.closed
}

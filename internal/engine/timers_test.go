package engine

import (
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
)

// byHand gives a lab a clock that stands still until it is moved.
func byHand(l *lab) *clock.Manual {
	m := clock.NewManual(noon)
	l.clock = m
	return m
}

// pass moves the clock on until a run is in a status. What was waiting for a
// moment may have begun to wait after the clock was moved, so it is moved on by
// a little until everything has been noticed.
func (l *lab) pass(m *clock.Manual, id ids.Run, d time.Duration, status string) {
	l.t.Helper()
	m.Advance(d)
	eventually(l.t, "run is "+status, func() bool {
		m.Advance(20 * time.Millisecond)
		return l.row(id).Status == status
	})
}

const day = 24 * time.Hour

func TestDelayOfSixtyDaysSurvivesRestarts(t *testing.T) {
	l := newLab(t)
	m := byHand(l)
	l.engine()
	w := l.register("later", []any{step("d", "core.delay", map[string]any{"delayMs": (60 * day).Milliseconds()}), step("e", "core.noop", nil)},
		[]any{edge("d", "e")})
	id := l.create(w)
	for range 10 {
		m.Advance(5 * day)
		l.restart()
		l.must(id, run.Tick{})
		if r := l.row(id); r.Status != run.Running || r.Instance != "" {
			t.Fatalf("after less than sixty days the run is %s, executed by %q", r.Status, r.Instance)
		}
	}
	m.Advance(10*day - time.Millisecond)
	l.must(id, run.Tick{})
	if r := l.row(id); r.Status != run.Running {
		t.Fatalf("a millisecond early the run is %s", r.Status)
	}
	l.pass(m, id, time.Millisecond, run.Completed)
	l.sound(id)
	if n := countOf(l.kinds(id), event.NodeStarted); n != 2 {
		t.Errorf("%d nodes started, want each once", n)
	}
}

func TestTimerAfterTheAnswerDoesNothing(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	m := byHand(l)
	l.engine()
	w := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?", "timeoutMs": 60_000}), step("b", p.id, nil)},
		[]any{edge("ok", "b")})
	id := l.create(w)
	if l.row(id).WakeAt.IsZero() {
		t.Fatal("the gate has no deadline")
	}
	l.must(id, accept("ok"))
	await(t, "the node behind", p.entered)
	seq := l.row(id).Seq
	m.Advance(time.Hour)
	l.must(id, run.Tick{})
	if r := l.row(id); r.Seq != seq {
		t.Fatalf("the deadline of an answered gate made events: %v", l.kinds(id))
	}
	p.free()
	l.until(id, run.Completed)
	l.sound(id)
}

func TestAnswerAtTheDeadlineHappensOnce(t *testing.T) {
	l := newLab(t)
	m := byHand(l)
	l.engine()
	w := l.register("gate", []any{step("ok", "core.approvalGate", map[string]any{"title": "?", "timeoutMs": 1000})}, nil)
	for range size(20, 300) {
		id := l.create(w)
		done := make(chan error, 1)
		go func() { done <- l.do(id, accept("ok")).Err }()
		m.Advance(time.Second)
		l.do(id, run.Tick{})
		err := await(t, "the answer", done)
		r := l.until(id, run.Completed, run.Failed)
		if err != nil {
			refused(t, err, problem.InterruptAlreadyResolved)
		}
		if (err == nil) != (r.Status == run.Completed) {
			t.Errorf("answered with %v, yet the run is %s", err, r.Status)
		}
		if n := countOf(l.kinds(id), event.InterruptResolved); n != 1 {
			t.Errorf("resolved %d times", n)
		}
		l.sound(id)
	}
}

func TestTimeoutsFireAfterARestart(t *testing.T) {
	p := newProbe(t, "test.work")
	limit := map[string]any{"settings": map[string]any{"timeoutMs": 60_000}}
	for name, c := range map[string]struct {
		node  map[string]any
		extra map[string]any
		code  problem.Code
	}{
		"of a node that is called": {node: step("a", p.id, nil, limit), code: problem.RunTimeout},
		"of a node with children":  {node: step("a", "core.subWorkflow", map[string]any{"workflowId": "child"}, limit), code: problem.RunTimeout},
		"of a gate":                {node: step("a", "core.approvalGate", map[string]any{"title": "?", "timeoutMs": 60_000}), code: problem.ApprovalRejected},
		"of the run, parked": {node: step("a", "core.approvalGate", map[string]any{"title": "?"}),
			extra: map[string]any{"settings": map[string]any{"timeout": 60_000}}, code: problem.RunTimeout},
		"of the run, executing": {node: step("a", p.id, nil),
			extra: map[string]any{"settings": map[string]any{"timeout": 60_000}}, code: problem.RunTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, p.typ())
			m := byHand(l)
			l.engine()
			l.register("child", []any{step("c", "core.approvalGate", map[string]any{"title": "?"})}, nil)
			id := l.create(l.register("limited", []any{c.node}, nil, c.extra))
			l.restart()
			eventually(t, "the run is taken up", func() bool {
				m.Advance(time.Millisecond)
				r := l.row(id)
				return r.Instance == "" || r.Instance == l.e.Instance()
			})
			l.must(id, run.Tick{})
			m.Advance(30 * time.Second)
			l.must(id, run.Tick{})
			if r := l.row(id); run.Terminal(r.Status) {
				t.Fatalf("half-way the run is %s", r.Status)
			}
			l.pass(m, id, 31*time.Second, run.Failed)
			s := l.sound(id)
			if s.Error == nil || s.Error.Code != string(c.code) {
				t.Errorf("failed with %+v, want %s", s.Error, c.code)
			}
			for _, child := range s.OpenChildren() {
				t.Errorf("child %s is %s", child.RunID, child.Status)
			}
		})
	}
}

func TestAnEarlierTimerIsNotOverlooked(t *testing.T) {
	tm := newTimers(clock.NewManual(noon))
	tm.poke(noon.Add(time.Hour))
	tm.poke(noon.Add(time.Minute))
	tm.poke(noon.Add(2 * time.Hour))
	if d := tm.nextParked(); d != time.Minute {
		t.Errorf("next parked run in %v, want a minute", d)
	}
	tm.forgetParked()
	tm.poke(noon.Add(time.Second)) // a run that parks while the store is asked
	tm.poke(noon.Add(time.Hour))   // what the store said
	if d := tm.nextParked(); d != time.Second {
		t.Errorf("next parked run in %v, want a second", d)
	}
}

func TestTimersOfActiveRuns(t *testing.T) {
	m := clock.NewManual(noon)
	tm := newTimers(m)
	id := func(n string) ids.Run { return ids.Run{Tenant: "acme", Opaque: n} }
	tm.set(id("a"), noon.Add(3*time.Second))
	tm.set(id("b"), noon.Add(time.Second))
	tm.set(id("c"), noon.Add(2*time.Second))
	tm.set(id("a"), noon.Add(time.Second/2)) // moved
	tm.drop(id("c"))
	if ready, wait := tm.popDue(); len(ready) != 0 || wait != time.Second/2 {
		t.Fatalf("due at once: %v, then in %v", ready, wait)
	}
	m.Advance(time.Second)
	ready, wait := tm.popDue()
	if len(ready) != 2 || ready[0] != id("a") || ready[1] != id("b") || wait >= 0 {
		t.Fatalf("due: %v, then in %v", ready, wait)
	}
	if len(tm.byRun) != 0 {
		t.Errorf("%d timers left", len(tm.byRun))
	}
}

// TestTimerThatCannotFireDoesNotSpin has a timer come due in a run that lets
// nothing new begin until a call has come to its end.
func TestTimerThatCannotFireDoesNotSpin(t *testing.T) {
	p := newProbe(t, "test.work")
	l := newLab(t, p.typ())
	m := byHand(l)
	e := l.engine()
	id := l.create(l.register("both", []any{step("a", p.id, nil), step("d", "core.delay", map[string]any{"delayMs": 1000})}, nil))
	await(t, "the call", p.entered)
	l.must(id, run.Pause{DrainPolicy: "drain-current-node"})
	m.Advance(2 * time.Second)
	l.must(id, run.Tick{})
	e.timers.mu.Lock()
	d := e.timers.byRun[id]
	if d != nil && !d.at.After(m.Now()) {
		t.Errorf("a timer that cannot fire is due again at once")
	}
	e.timers.mu.Unlock()
	p.free()
	l.until(id, run.Paused)
	l.must(id, run.Resume{})
	l.until(id, run.Completed)
	l.sound(id)
}

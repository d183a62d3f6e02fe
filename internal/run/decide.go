package run

import (
	"fmt"

	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
)

// Decide lets a command happen to a run: it returns the events to append and
// the effects that follow from them, and leaves s as folding those events makes
// it. An error refuses the command: then nothing has happened and s is as it
// was. If the events cannot be made durable, s must be thrown away.
func Decide(s *State, c Command, env Env) (Decision, error) {
	now := env.Now
	if now.Before(s.Last) {
		now = s.Last // a log's time never runs backwards
	}
	t := &turn{s: s, now: now, lim: env.Limits, source: env.Source}
	var err error
	switch c := c.(type) {
	case Start:
		err = t.start(c)
	case NodeResult:
		if c.Inverse > 0 {
			t.undone(c)
		} else {
			t.result(c)
		}
	case NodeChunk:
		t.chunk(c)
	case NodeEgress:
		err = t.egress(c)
	case Resolve:
		err = t.resolve(c)
	case ChildNews:
		t.childNews(c)
	case Tick:
		t.tick()
	case Recover:
		t.recover(c)
	case Cancel:
		err = t.cancel(c)
	case Pause:
		err = t.pause(c)
	case Resume:
		err = t.resume(c)
	case Operate:
		err = t.operate(c)
	case Begin:
		err = t.begun(c)
	case Echo, Elapse, Missing, Late:
		err = t.replay(c)
	default:
		err = errors.New("run: unknown command")
	}
	if err == nil {
		err = t.err
	}
	return t.out, err
}

// turn is one decision in the making.
type turn struct {
	s   *State
	now time.Time
	lim Limits
	out Decision
	err error // a fold that failed: a defect, never bad input

	source *Record // of a replay
}

// emit gives a draft its place in the log and folds it.
func (t *turn) emit(d event.Draft) {
	if t.err != nil {
		return
	}
	if d.Type != event.ReplayDiverged {
		t.compare(&d)
	}
	e := event.Event{
		Run: t.s.ID, Seq: t.s.Seq + 1, Type: d.Type, NodeID: d.NodeID, Time: t.now,
		Causation: d.Causation, Payload: d.Payload, Sealed: d.Sealed,
	}
	if err := t.s.Fold(&e); err != nil {
		t.err = err
		return
	}
	t.out.Events = append(t.out.Events, e)
}

// say emits an event caused by nothing in particular.
func (t *turn) say(typ event.Type, nodeID string, payload any) {
	t.emit(event.Draft{Type: typ, NodeID: nodeID, Causation: -1, Payload: event.Encode(payload)})
}

// because emits an event caused by the one emitted last.
func (t *turn) because(typ event.Type, nodeID string, payload any) {
	t.emit(event.Draft{Type: typ, NodeID: nodeID, Causation: t.s.Seq, Payload: event.Encode(payload)})
}

// effect asks for something. A replay asks for nothing but calls of pure nodes.
func (t *turn) effect(e Effect) {
	if _, call := e.(Execute); t.s.Replaying() && !call {
		return
	}
	t.out.Effects = append(t.out.Effects, e)
}

func (t *turn) note(level, nodeID, message string, m *event.Mark) {
	t.say(event.LogAppended, nodeID, event.Log{Level: level, Message: message, NodeID: nodeID, X: m})
}

// private notes something of which a part is kept from everybody outside: what
// a node saves for itself.
func (t *turn) private(nodeID, message string, shown, whole event.Mark, differ bool) {
	l := event.Log{Level: "debug", Message: message, NodeID: nodeID, X: &shown}
	d := event.Draft{Type: event.LogAppended, NodeID: nodeID, Causation: -1, Payload: event.Encode(l)}
	if differ {
		l.X = &whole
		d.Sealed = event.Encode(l)
	}
	t.emit(d)
}

func (t *turn) elapsed() int64 { return t.now.Sub(t.s.StartedAt.Add(t.s.lag())).Milliseconds() }

func (t *turn) start(c Start) error {
	s := t.s
	if s.Seq >= 0 {
		return problem.Internal(errors.New("run: started twice"))
	}
	p := event.Started{
		WorkflowID: s.WorkflowID, Inputs: c.Inputs, Transport: c.Transport, EngineVersion: event.EngineVersion,
		Owner: c.Owner, Tags: c.Tags, Metadata: c.Metadata,
		X: event.StartedX{
			WorkflowVersion: s.wf.Def.Version, WorkflowDigest: s.wf.Digest,
			Configurable: c.Configurable, ScopeID: c.ScopeID, CallbackURL: c.CallbackURL, CallbackMajor: c.CallbackMajor, Parent: c.Parent,
			Trigger: c.Trigger,
		},
	}
	d := event.Draft{Type: event.RunStarted, Causation: -1, Payload: event.Encode(p)}
	if masked, changed := s.maskInputs(c.Inputs); changed {
		d.Sealed = d.Payload
		p.Inputs = masked
		d.Payload = event.Encode(p)
	}
	t.emit(d)
	t.advance()
	return nil
}

// advance starts and skips whatever is ready, then sees whether the run is over.
func (t *turn) advance() {
	for t.err == nil && !t.held() {
		step, do := t.ready()
		if step == nil {
			if t.active() || !t.giveUp() {
				break
			}
			continue
		}
		switch do {
		case begin:
			t.begin(step)
		default:
			t.say(event.NodeSkipped, step.Node.ID, event.NodeSkip{NodeID: step.Node.ID, Reason: do.reason()})
		}
	}
	t.conclude()
}

// held reports whether no new step may begin.
func (t *turn) held() bool {
	s := t.s
	return s.Ended != "" || s.Closing != nil || s.Paused || s.Draining != nil
}

func (t *turn) active() bool {
	for _, n := range t.s.Nodes {
		if n.Phase.active() {
			return true
		}
	}
	return false
}

func (t *turn) executing() bool {
	for _, n := range t.s.Nodes {
		if n.Phase == Executing {
			return true
		}
	}
	return false
}

// giveUp skips one idle step that can no longer be reached, and reports whether
// there was one. It matters only for what waits on a loop that ended oddly.
func (t *turn) giveUp() bool {
	for _, i := range t.s.wf.Order {
		if t.s.Nodes[i].Phase == Idle {
			id := t.s.wf.Steps[i].Node.ID
			t.say(event.NodeSkipped, id, event.NodeSkip{NodeID: id, Reason: "unreachable"})
			return true
		}
	}
	return false
}

// conclude ends the run, or its pause or closing, once nothing stands against it.
func (t *turn) conclude() {
	s := t.s
	switch {
	case t.err != nil || s.Ended != "":
	case s.Closing != nil:
		if len(s.OpenChildren()) == 0 {
			t.close()
		}
	case s.Draining != nil:
		if !t.executing() {
			t.say(event.RunPaused, "", event.Paused{Reason: s.Draining.Reason, DrainPolicy: "drain-current-node"})
		}
	case s.Paused || t.active():
	default:
		t.complete()
	}
}

// complete ends a run in which nothing is left to do: with its outputs, or with
// the failure no later step took over.
func (t *turn) complete() {
	s := t.s
	for i, n := range s.Nodes {
		if n.Phase == Broken && !s.absorbed(&s.wf.Steps[i]) {
			t.fail(*n.Error, s.wf.Steps[i].Node.ID)
			return
		}
	}
	outputs, masked, sensitive := s.collect()
	if max := t.lim.MaxPayloadBytes; max > 0 && len(outputs) > max {
		t.fail(event.Error{
			Code: string(problem.PayloadTooLarge), Message: fmt.Sprintf("the run's outputs are larger than %d bytes", max),
		}, "")
		return
	}
	p := event.Completed{Outputs: outputs, DurationMs: t.elapsed()}
	d := event.Draft{Type: event.RunCompleted, Causation: s.Seq, Payload: event.Encode(p)}
	if sensitive {
		d.Sealed = d.Payload
		p.Outputs = masked
		d.Payload = event.Encode(p)
	}
	t.emit(d)
}

// absorbed reports whether a step that takes over from failed sources has
// completed behind a failed one.
func (s *State) absorbed(step *flow.Step) bool {
	for _, i := range step.Out {
		l := &s.wf.Links[i]
		if !l.Back && flow.Absorbs(s.wf.Steps[l.To].Rule) && s.Nodes[l.To].Phase == Done {
			return true
		}
	}
	return false
}

package run

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// live finds the node a result belongs to, if the run still waits for it.
func (t *turn) live(nodeID string, visit, attempt int) (*flow.Step, *Node, bool) {
	step, n, ok := t.s.node(nodeID)
	if !ok || t.s.Ended != "" || n.Phase != Executing || n.Visit != visit || n.Attempt != attempt {
		return nil, nil, false
	}
	return step, n, true
}

func (t *turn) result(c NodeResult) {
	step, _, ok := t.live(c.NodeID, c.Visit, c.Attempt)
	if !ok {
		return
	}
	for _, l := range c.Logs {
		t.say(event.LogAppended, c.NodeID, event.Log{Level: level(l.Level), Message: l.Message, NodeID: c.NodeID, Fields: l.Fields})
	}
	failed := c.Err
	var writes []event.Draft
	if failed == nil {
		writes, failed = t.writes(step, c.Writes)
	}
	if failed == nil {
		failed = t.settle(step, c, writes)
	}
	if failed != nil {
		t.failed(step, faultOf(failed))
	}
	t.advance()
}

func level(l string) string {
	switch l {
	case "debug", "info", "warn", "error":
		return l
	}
	return "info"
}

// settle records what a successful call decided, and what it has written. A
// result that cannot be accepted leaves no write behind: the attempt has failed,
// and the next one writes again.
func (t *turn) settle(step *flow.Step, c NodeResult, writes []event.Draft) *node.Error {
	r := c.Result
	if err := r.Err(); err != nil {
		return node.Fail(node.CodeConfig, "%v", err)
	}
	if max := t.lim.MaxPayloadBytes; max > 0 && size(r) > max {
		return node.Fail(string(problem.PayloadTooLarge), "the result of node %s is larger than %d bytes", step.Node.ID, max)
	}
	switch r.Kind() {
	case node.Suspended:
		return t.suspend(step, r, c.Recorded, writes)
	case node.Sleeping:
		t.emitAll(writes)
		until := r.Until().UTC().Truncate(time.Millisecond)
		t.private(step.Node.ID, "waiting", event.Mark{Wait: &event.WaitMark{Until: until}},
			event.Mark{Wait: &event.WaitMark{Until: until, State: jsontext.Value(r.State())}}, len(r.State()) > 0)
		return nil
	case node.Awaiting:
		return t.await(step, r, writes)
	}
	t.emitAll(writes) // conditions look at them
	return t.completed(step, r)
}

func size(r node.Result) int {
	n := len(r.State())
	for k, v := range r.Outputs() {
		n += len(k) + len(v)
	}
	if i := r.Interrupt(); i != nil {
		n += len(i.Data) + len(i.ResumeSchema)
	}
	return n
}

func (t *turn) completed(step *flow.Step, r node.Result) *node.Error {
	n := t.s.Nodes[step.Index]
	before := n.Outputs
	n.Outputs = values(r.Outputs()) // conditions look at the outputs
	taken, err := t.routing(step, Success, nil, r.Ports())
	if err != nil {
		n.Outputs = before
		return err
	}
	over := t.overrun(step, taken)
	var left []int
	if over != nil {
		taken = over.kept
	} else {
		left = t.leaveBody(step, taken)
	}
	p := event.NodeDone{NodeID: step.Node.ID, DurationMs: t.now.Sub(n.StartedAt).Milliseconds()}
	if step.Routed || r.Ports() != nil {
		p.X = &event.Routing{Edges: taken}
	}
	d := event.Draft{Type: event.NodeCompleted, NodeID: step.Node.ID, Causation: -1}
	p.Outputs = encodeObject(r.Outputs())
	d.Payload = event.Encode(p)
	if hides(t.s.wf, step, r.Outputs()) {
		d.Sealed = d.Payload
		p.Outputs = t.s.maskOutputs(step, r.Outputs())
		d.Payload = event.Encode(p)
	}
	t.emit(d)
	t.left(left)
	if over != nil {
		t.loopLimit(over)
	}
	return nil
}

// failed records a failed attempt: another try if one is left, else the end of
// the step.
func (t *turn) failed(step *flow.Step, e *event.Error) {
	n := t.s.Nodes[step.Index]
	again := e.Retryable != nil && *e.Retryable && n.Failures < t.s.wf.Retries(step)
	if !again || t.s.Closing != nil {
		t.broken(step, e)
		return
	}
	delay := backoff(step.Settings, n.Failures)
	t.say(event.NodeRetried, step.Node.ID, event.NodeRetry{
		NodeID: step.Node.ID, Attempt: n.Attempt + 1, DelayMs: delay.Milliseconds(), LastError: e,
	})
	if delay == 0 && !t.held() && t.admit(step) {
		t.attempt(step, n.Attempt+1)
	}
}

// backoff is the wait before the repeat that follows a number of failures.
func backoff(s flow.NodeSettings, failures int) time.Duration {
	delay, factor, longest := s.RetryDelayMs, s.RetryBackoff, s.RetryMaxDelayMs
	if delay == 0 {
		delay = 1000
	}
	if factor == 0 {
		factor = 2
	}
	if longest == 0 {
		longest = 300_000
	}
	d := float64(delay)
	for range failures {
		if d *= factor; d >= float64(longest) {
			break
		}
	}
	return time.Duration(min(d, float64(longest))) * time.Millisecond
}

// broken ends a step in failure, and the run with it if nothing takes over.
func (t *turn) broken(step *flow.Step, e *event.Error) {
	n := t.s.Nodes[step.Index]
	t.dropChildren(n)
	taken, _ := t.routing(step, Failure, e, nil)
	over := t.overrun(step, taken)
	var left []int
	if over != nil {
		taken = over.kept
	} else {
		left = t.leaveBody(step, taken)
	}
	p := event.NodeFail{NodeID: step.Node.ID, Error: *e, Attempts: n.Failures + 1}
	if step.Routed {
		p.X = &event.Routing{Edges: taken}
	}
	t.say(event.NodeFailed, step.Node.ID, p)
	t.left(left)
	switch {
	case over != nil:
		t.loopLimit(over)
	case !t.takenOver(step, taken):
		t.fail(*e, step.Node.ID)
	}
}

// takenOver reports whether a later step may absorb a failure.
func (t *turn) takenOver(step *flow.Step, taken []string) bool {
	for _, i := range step.Out {
		l := &t.s.wf.Links[i]
		if step.Routed && !contains(taken, l.ID) {
			continue
		}
		if l.Back || flow.Absorbs(t.s.wf.Steps[l.To].Rule) {
			return true
		}
	}
	return false
}

// writes drafts changes of variables and channels, all of them or none.
func (t *turn) writes(step *flow.Step, writes []node.Write) ([]event.Draft, *node.Error) {
	var out []event.Draft
	for _, w := range writes {
		var d event.Draft
		var err *node.Error
		if w.Channel != "" {
			d, err = t.writeChannel(step, w)
		} else {
			d, err = t.setVariable(step, w.Variable, jsontext.Value(w.Value))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func (t *turn) emitAll(drafts []event.Draft) {
	for _, d := range drafts {
		t.emit(d)
	}
}

func (t *turn) setVariable(step *flow.Step, name string, v jsontext.Value) (event.Draft, *node.Error) {
	if _, channel := t.s.wf.Def.Channels[name]; channel {
		return event.Draft{}, node.Fail(node.CodeConfig, "%q is a channel and cannot be set as a variable", name)
	}
	decl, declared := t.s.wf.Variable(name)
	if declared && !decl.Accepts(v) {
		return event.Draft{}, node.Fail(node.CodeConfig, "variable %q must be of type %s", name, decl.Type)
	}
	p := event.Variable{Name: name, Next: v, NodeID: step.Node.ID}
	d := event.Draft{Type: event.VariableChanged, NodeID: step.Node.ID, Causation: -1, Payload: event.Encode(p)}
	if declared && decl.Sensitive {
		if masked, changed := t.s.maskValue(v); changed {
			d.Sealed = d.Payload
			p.Next = masked
			d.Payload = event.Encode(p)
		}
	}
	return d, nil
}

func (t *turn) chunk(c NodeChunk) {
	if _, _, ok := t.live(c.NodeID, c.Visit, c.Attempt); !ok {
		return
	}
	t.say(event.OutputChunk, c.NodeID, event.Chunk{NodeID: c.NodeID, RunID: t.s.ID.String(), Chunk: c.Text, IsLast: c.Last})
}

package node

import (
	"encoding/json"
	"time"
)

// Result is what one call decides. Make it with Done, Suspend, Sleep or Await.
type Result struct {
	kind      Kind
	outputs   map[string]json.RawMessage
	ports     []string
	interrupt *Interrupt
	until     time.Time
	children  []Child
	state     json.RawMessage
	err       error
}

// Kind tells the results apart.
type Kind uint8

// The kinds of Result. The zero Result is Completed without outputs.
const (
	Completed Kind = iota
	Suspended
	Sleeping
	Awaiting
)

// Outputs maps output ports to values.
type Outputs map[string]any

// Done completes the node. Each value must be writable as JSON; a
// json.RawMessage is taken as it is.
func Done(outputs Outputs) Result {
	r := Result{kind: Completed}
	if len(outputs) == 0 {
		return r
	}
	r.outputs = make(map[string]json.RawMessage, len(outputs))
	for k, v := range outputs {
		b, err := encode(v)
		if err != nil {
			r.err = err
			return r
		}
		r.outputs[k] = b
	}
	return r
}

// DoneRaw completes the node with values that are JSON already.
func DoneRaw(outputs map[string]json.RawMessage) Result {
	return Result{kind: Completed, outputs: outputs}
}

// Take restricts which edges a completed node follows to those whose
// sourceOutput is one of ports (and those that name none). This is how a
// branching node chooses.
func (r Result) Take(ports ...string) Result {
	r.ports = ports
	if r.ports == nil {
		r.ports = []string{}
	}
	return r
}

// Interrupt asks something of the world outside the run (spec v2 interrupt.md).
type Interrupt struct {
	Kind         string          // approval, clarification, external-event, custom, …
	Key          string          // optional; tells several of one visit apart. The host puts run, node and visit before it
	Data         json.RawMessage // by kind; see the suspend-request schema
	ResumeSchema json.RawMessage // optional JSON Schema of the resume value
	Timeout      time.Duration   // 0 for none
}

// Suspend parks the node until the interrupt is resolved. state comes back in
// Wake.State.
func Suspend(i Interrupt, state any) Result {
	r := Result{kind: Suspended, interrupt: &i}
	return r.keep(state)
}

// Sleep parks the node until t. A sleeping run uses no memory, whatever the wait.
func Sleep(t time.Time, state any) Result {
	r := Result{kind: Sleeping, until: t}
	return r.keep(state)
}

// Child asks for a child run.
type Child struct {
	WorkflowID string
	Inputs     map[string]json.RawMessage
	Key        string // free for the node's own use; returned in ChildResult
	Detached   bool   // do not cancel the child with its parent
}

// Await starts child runs and parks the node. It is called again whenever a
// child of this visit ends; answer with Await once more (with or without more
// children) to go on waiting.
func Await(state any, children ...Child) Result {
	r := Result{kind: Awaiting, children: children}
	return r.keep(state)
}

func (r Result) keep(state any) Result {
	if state == nil {
		return r
	}
	r.state, r.err = encode(state)
	return r
}

// The accessors below are for the host.

// Rewritten is r with every text of it passed through text, and every JSON value
// through value: for the host, which keeps secrets out of what it records.
func (r Result) Rewritten(text func(string) string, value func(json.RawMessage) json.RawMessage) Result {
	values := func(m map[string]json.RawMessage) map[string]json.RawMessage {
		if m == nil {
			return nil
		}
		out := make(map[string]json.RawMessage, len(m))
		for k, v := range m {
			out[text(k)] = value(v)
		}
		return out
	}
	r.outputs, r.state = values(r.outputs), value(r.state)
	if r.interrupt != nil {
		i := *r.interrupt
		i.Key, i.Data, i.ResumeSchema = text(i.Key), value(i.Data), value(i.ResumeSchema)
		r.interrupt = &i
	}
	if r.children != nil {
		list := make([]Child, len(r.children))
		for i, c := range r.children {
			c.Key, c.Inputs = text(c.Key), values(c.Inputs)
			list[i] = c
		}
		r.children = list
	}
	return r
}

// Kind says which result r is.
func (r Result) Kind() Kind { return r.kind }

// Err is set when a value given to a constructor could not be encoded.
func (r Result) Err() error { return r.err }

// Outputs is the outputs of a completed node.
func (r Result) Outputs() map[string]json.RawMessage { return r.outputs }

// Ports is the restriction made with Take; nil for none.
func (r Result) Ports() []string { return r.ports }

// Interrupt is the interrupt of a suspended node.
func (r Result) Interrupt() *Interrupt { return r.interrupt }

// Until is when a sleeping node wants to wake.
func (r Result) Until() time.Time { return r.until }

// Children is what an awaiting node asked for in this call.
func (r Result) Children() []Child { return r.children }

// State is what a waiting node wants to be given back.
func (r Result) State() json.RawMessage { return r.state }

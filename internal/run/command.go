package run

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// Command is something that happens to a run.
type Command interface{ command() }

// Start begins a new run.
type Start struct {
	Owner        event.Owner
	Transport    string // rest, mcp, a2a or ui
	Inputs       jsontext.Value
	Tags         []string
	Metadata     jsontext.Value
	Configurable jsontext.Value
	ScopeID      string
	CallbackURL  string
	Parent       *event.Parent

	// CallbackMajor is the protocol's major whose form CallbackURL is told in; 0 is this
	// one.
	CallbackMajor int

	Trigger *event.Trigger // which tick of a schedule it came of; nil for none
}

// NodeResult is what an executed call decided, or how it failed. A result whose
// node has moved on in the meantime changes nothing.
type NodeResult struct {
	NodeID  string
	Visit   int
	Attempt int
	Result  node.Result
	Err     *node.Error // nil for success
	Writes  []node.Write
	Logs    []node.LogLine
	Inverse int // the action of the plan whose call it was; 0 for the node's own

	// Recorded is, in a replay, what resolved the interrupt that the call asks for.
	Recorded []event.Event
}

// NodeChunk is a piece of output streamed by an executing call.
type NodeChunk struct {
	NodeID  string
	Visit   int
	Attempt int
	Text    string
	Last    bool
}

// Resolve answers the open interrupt of a node.
type Resolve struct {
	NodeID      string
	InterruptID ids.Run // zero: the one the node holds
	Value       jsontext.Value
	Subject     event.Subject
	Via         string // token, or empty
	Judge       Judge  // nil: a gate that lists its approvers stays shut
	Request     string // hash that names the request, for its repetition; may be empty

	// Voter is whose vote it is, if Subject may vouch for others; a subjectId of the same
	// issuer.
	Voter string
}

// Judge says whether somebody may answer an interrupt, and on what ground. It is
// given from outside, where authorization lives, and asked within the turn, where
// the interrupt cannot change. It is a pure function: whatever it must look up has
// been looked up before. What it says is recorded and never asked again.
type Judge func(*Interrupt) (Ground, error)

// Ground is by what right an answer counts. The zero value is that of an
// interrupt which asks for nothing but the right to answer.
type Ground struct {
	Eligibility string // open, listed, group or role; empty for what is no approval
	Ref         string // the group or role, as the gate names it
	Source      string // where the membership was looked up
	Override    bool   // the party is an override principal
}

// ChildNews tells a parent its child's status.
type ChildNews struct {
	RunID  ids.Run
	Status string
}

// Tick lets everything that is due happen.
type Tick struct{}

// Recover makes the calls that the run waits for and nobody makes: its owner is
// gone, or a step of it could not be written. Alive are the calls that the new
// owner is making already.
type Recover struct{ Alive []Call }

// Call names one attempt of a node.
type Call struct {
	NodeID         string
	Visit, Attempt int
	Inverse        int // as NodeResult
}

// Cancel asks the run to end.
type Cancel struct {
	Reason      string
	By          string
	ParentRunID string // set when a parent takes its children along
}

// Pause asks the run to stand still.
type Pause struct {
	Reason      string
	DrainPolicy string // immediate or drain-current-node
}

// Resume lets a paused run go on.
type Resume struct{ Reason string }

func (Start) command()      {}
func (NodeResult) command() {}
func (NodeChunk) command()  {}
func (Resolve) command()    {}
func (ChildNews) command()  {}
func (Tick) command()       {}
func (Recover) command()    {}
func (Cancel) command()     {}
func (Pause) command()      {}
func (Operate) command()    {}
func (Resume) command()     {}

// Effect is something the shell must do once the events are durable (pure
// executions may be done before: see Execute).
type Effect interface{ effect() }

// Execute asks for a call of a node. A call of a pure type may be made at once
// and its result decided in the same turn.
type Execute struct {
	NodeID  string
	Visit   int
	Attempt int
	Inputs  map[string]jsontext.Value
	Wake    *Wake
	Saved   jsontext.Value
	Inverse *Inverse // set for a call that undoes the effect of the node's visit
}

// Inverse is what sets a call that undoes something apart: another type's code is
// called, under a name of its own.
type Inverse struct {
	Order     int
	TypeID    string
	EffectKey string
}

// StartChild asks for a child run. It is created in the same transaction as
// the events it follows from.
type StartChild struct {
	ID         ids.Run
	NodeID     string
	WorkflowID string
	Inputs     map[string]jsontext.Value
}

// CancelChild asks for the end of a child run.
type CancelChild struct{ RunID ids.Run }

// Abort asks that an executing call be interrupted; its result is not wanted.
type Abort struct {
	NodeID  string
	Visit   int
	Attempt int
	Inverse int // as NodeResult
}

func (Execute) effect()     {}
func (StartChild) effect()  {}
func (CancelChild) effect() {}
func (Abort) effect()       {}

// Decision is what follows from a command.
type Decision struct {
	Events  []event.Event
	Effects []Effect
}

// Env is what a decision needs from outside: the time and the host's limits.
type Env struct {
	Now    time.Time
	Limits Limits
	Source *Record // of a replay: what its source recorded; it must not change
}

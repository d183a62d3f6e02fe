package run

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// Run statuses (spec v2 runs.md §Snapshot).
const (
	Pending         = "pending"
	Running         = "running"
	Paused          = "paused"
	WaitingApproval = "waiting-approval"
	WaitingInput    = "waiting-input"
	WaitingExternal = "waiting-external"
	Completed       = "completed"
	Failed          = "failed"
	Cancelling      = "cancelling"
	Cancelled       = "cancelled"
)

// Terminal reports whether a run status is final.
func Terminal(status string) bool {
	return status == Completed || status == Failed || status == Cancelled
}

// State is the fold of a run's log. It belongs to one goroutine. Its exported
// members are what a checkpoint keeps.
type State struct {
	ID              ids.Run                   `json:"-"`
	WorkflowID      string                    `json:"workflowId"`
	WorkflowVersion string                    `json:"workflowVersion"`
	Owner           event.Owner               `json:"owner"`
	Transport       string                    `json:"transport,omitzero"`
	Tags            []string                  `json:"tags,omitzero"`
	Era             int                       `json:"era,omitzero"` // event.OldEra for a log in the words of v1
	Metadata        jsontext.Value            `json:"metadata,omitzero"`
	Configurable    jsontext.Value            `json:"configurable,omitzero"`
	CallbackURL     string                    `json:"callbackUrl,omitzero"`
	CallbackMajor   int                       `json:"callbackMajor,omitzero"` // of the protocol; 0 is this one
	Parent          *event.Parent             `json:"parent,omitzero"`
	Ended           string                    `json:"ended,omitzero"` // the terminal status, once there is one
	Seq             int64                     `json:"seq"`
	Last            time.Time                 `json:"last"`
	StartedAt       time.Time                 `json:"startedAt,omitzero"`
	CompletedAt     time.Time                 `json:"completedAt,omitzero"`
	Inputs          jsontext.Value            `json:"inputs,omitzero"`
	Variables       map[string]jsontext.Value `json:"variables,omitzero"`
	Channels        map[string]*Channel       `json:"channels,omitzero"`
	Nodes           []*Node                   `json:"nodes,omitzero"` // by step
	Links           []Outcome                 `json:"links,omitzero"` // by link
	Loops           []int                     `json:"loops,omitzero"` // repeats so far, by loop
	Executions      int                       `json:"executions"`
	Paused          bool                      `json:"paused,omitzero"`
	Draining        *event.DrainMark          `json:"draining,omitzero"`
	Closing         *event.ClosingMark        `json:"closing,omitzero"`
	Signals         map[string][]Signal       `json:"signals,omitzero"` // by node id
	Error           *event.Error              `json:"error,omitzero"`
	FailedNode      string                    `json:"failedNode,omitzero"`
	Outputs         jsontext.Value            `json:"outputs,omitzero"`
	Orphans         []Child                   `json:"orphans,omitzero"` // open children of visits that are over
	Commits         []Commit                  `json:"commits,omitzero"` // effects that can be asked to be undone, oldest first
	Facts           int                       `json:"facts,omitzero"`   // how much the commits hold, in bytes
	Undoing         *Undoing                  `json:"undoing,omitzero"`

	// Of a fork.
	Fork  *Fork `json:"fork,omitzero"`
	LagNs int64 `json:"lagNs,omitzero"` // how far its own time is behind that of the source's log
	Depth int   `json:"depth,omitzero"` // of child runs, inherited from a source that was one
	Said  int64 `json:"said,omitzero"`  // events of a replay that its source says too

	wf         *flow.Workflow
	maskSecret []byte           // see MaskWith
	places     map[string]place // of child runs; see placeOf

	// What the current turn opened and closed, for the store's inbox.
	opened []*Interrupt
	closed []ids.Run

	apart bool // the last event of a replay was not what its source says
}

// New returns the empty state of a run of a workflow: what an empty log folds to.
func New(id ids.Run, wf *flow.Workflow) *State {
	s := &State{
		ID: id, Seq: -1, wf: wf,
		WorkflowID: wf.Def.ID, WorkflowVersion: wf.Def.Version,
		Variables: map[string]jsontext.Value{},
		Nodes:     make([]*Node, len(wf.Steps)),
		Links:     make([]Outcome, len(wf.Links)),
		Loops:     make([]int, len(wf.Loops)),
	}
	for i := range s.Nodes {
		s.Nodes[i] = &Node{}
	}
	return s
}

// Workflow is the definition the run executes.
func (s *State) Workflow() *flow.Workflow { return s.wf }

// Phase is where a node stands.
type Phase string

// The phases of a node. The zero phase is idle: not reached yet in this visit.
const (
	Idle      Phase = ""
	Executing Phase = "running"
	Suspended Phase = "suspended" // an interrupt is open
	Resolved  Phase = "resolved"  // answered, but the run is paused
	Sleeping  Phase = "sleeping"
	Awaiting  Phase = "awaiting" // child runs are open
	Retrying  Phase = "retrying"
	Cut       Phase = "cut" // an immediate pause ended the attempt
	Done      Phase = "completed"
	Broken    Phase = "failed"
	Skipped   Phase = "skipped"
	Aborted   Phase = "cancelled"
)

func (p Phase) active() bool {
	switch p {
	case Executing, Suspended, Resolved, Sleeping, Awaiting, Retrying, Cut:
		return true
	}
	return false
}

func (p Phase) final() bool {
	return p == Done || p == Broken || p == Skipped || p == Aborted
}

// Node is the state of one step.
type Node struct {
	Phase     Phase                     `json:"phase,omitzero"`
	Visit     int                       `json:"visit,omitzero"`
	Attempt   int                       `json:"attempt,omitzero"`
	Failures  int                       `json:"failures,omitzero"`
	Forced    bool                      `json:"forced,omitzero"` // a loop starts here again
	StartedAt time.Time                 `json:"startedAt,omitzero"`
	CalledAt  time.Time                 `json:"calledAt,omitzero"` // its newest node.started or node.resumed
	EndedAt   time.Time                 `json:"endedAt,omitzero"`
	Due       time.Time                 `json:"due,omitzero"`      // sleeping, retrying
	Deadline  time.Time                 `json:"deadline,omitzero"` // of the attempt
	Outputs   map[string]jsontext.Value `json:"outputs,omitzero"`
	Error     *event.Error              `json:"error,omitzero"`
	Saved     jsontext.Value            `json:"saved,omitzero"`
	Asked     int                       `json:"asked,omitzero"` // interrupts of this visit
	Interrupt *Interrupt                `json:"interrupt,omitzero"`
	Answers   map[string]*Answer        `json:"answers,omitzero"` // of this visit, by interrupt key
	Wake      *Wake                     `json:"wake,omitzero"`
	Children  []Child                   `json:"children,omitzero"`
	Heard     []Said                    `json:"heard,omitzero"`   // in a replay, of an exchange whose gate it does not open
	Tally     Tally                     `json:"tally,omitzero"`   // of a replay
	Partial   bool                      `json:"partial,omitzero"` // a replay begins amid what its call came to

	told int   // known answers given in a row; only a guard, and no part of the fold
	Memo Memo  `json:"-"`
	sum  brood // of Children; see children
}

// Wake is what an executing node was woken by; it is kept until the call's
// outcome is recorded, so that a call lost to a crash is repeated with it.
type Wake struct {
	Answer   *Answer `json:"answer,omitzero"`
	Timer    bool    `json:"timer,omitzero"`
	Children bool    `json:"children,omitzero"`
	Fresh    []int   `json:"fresh,omitzero"` // positions of the children that have ended since the last wake
}

// Child is a child run of a node's current visit.
type Child struct {
	RunID      string `json:"runId"`
	WorkflowID string `json:"workflowId"`
	Key        string `json:"key,omitzero"`
	Status     string `json:"status"`
	Detached   bool   `json:"detached,omitzero"`
	Told       bool   `json:"told,omitzero"` // its node has been woken for its end
}

// Interrupt is an open interrupt.
type Interrupt struct {
	ID        ids.Run         `json:"id"`
	NodeID    string          `json:"nodeId"`
	Request   event.Interrupt `json:"request"`
	OpenedAt  time.Time       `json:"openedAt"`
	ExpiresAt time.Time       `json:"expiresAt,omitzero"`
	Votes     []Vote          `json:"votes,omitzero"`
	Exchange  []Said          `json:"exchange,omitzero"` // the newest of what was asked
}

// Said is one ask of an approval: the gate stays open for it (spec v2
// interrupt.md §Approval).
type Said struct {
	By    string         `json:"by"`
	At    time.Time      `json:"at"`
	Value jsontext.Value `json:"value"`
}

// Vote is one principal's vote on an approval that needs several.
type Vote struct {
	Principal string `json:"principal"`
	Accept    bool   `json:"accept"`
}

// Answer is how an interrupt was resolved.
type Answer struct {
	InterruptID string         `json:"interruptId"`
	Kind        string         `json:"kind"`
	Value       jsontext.Value `json:"value,omitzero"`
	Action      string         `json:"action,omitzero"`
	TimedOut    bool           `json:"timedOut,omitzero"`
	By          string         `json:"by,omitzero"`
	Exchange    []Said         `json:"exchange,omitzero"`
}

// Signal is an answer that came before its node began to wait.
type Signal struct {
	Value   jsontext.Value `json:"value"`
	Subject event.Subject  `json:"subject"`
}

// Outcome is what a link carries from its source to its target.
type Outcome uint8

// The outcomes of a link. Refused means its condition or port said no.
const (
	Undecided Outcome = iota
	Success
	Failure
	Passed // the source was skipped
	Refused
)

func (s *State) node(id string) (*flow.Step, *Node, bool) {
	step, ok := s.wf.Step(id)
	if !ok {
		return nil, nil, false
	}
	return step, s.Nodes[step.Index], true
}

// OpenChildren lists the child runs that have not ended, detached ones left out.
func (s *State) OpenChildren() []Child {
	var out []Child
	open := func(list []Child) {
		for _, c := range list {
			if !Terminal(c.Status) && !c.Detached {
				out = append(out, c)
			}
		}
	}
	for _, n := range s.Nodes {
		open(n.Children)
	}
	open(s.Orphans)
	return out
}

// Interrupts lists the open interrupts in step order.
func (s *State) Interrupts() []*Interrupt {
	var out []*Interrupt
	for _, n := range s.Nodes {
		if n.Interrupt != nil {
			out = append(out, n.Interrupt)
		}
	}
	if u := s.Undoing; u != nil && u.Gate != nil && u.Gate.Interrupt != nil {
		out = append(out, u.Gate.Interrupt)
	}
	return out
}

// TakeInbox returns which interrupts have been opened and closed since it was
// last called, for the store.
func (s *State) TakeInbox() (opened []*Interrupt, closed []ids.Run) {
	opened, closed = s.opened, s.closed
	if s.opened, s.closed = nil, nil; s.Replaying() {
		return nil, nil // nobody is asked anything
	}
	return opened, closed
}

// Children lists the child runs of a node's current visit.
func (s *State) Children(nodeID string) []Child {
	_, n, ok := s.node(nodeID)
	if !ok {
		return nil
	}
	return n.Children
}

// Memo is what is remembered of a node; never nil.
func (s *State) Memo(nodeID string) *Memo {
	_, n, ok := s.node(nodeID)
	if !ok {
		return &Memo{}
	}
	return &n.Memo
}

// CalledAt is the time of a node's newest start or wake-up: what a pure call takes
// for now, so that it gives the same whenever it is made.
func (s *State) CalledAt(nodeID string) time.Time {
	_, n, ok := s.node(nodeID)
	if !ok {
		return time.Time{}
	}
	return n.CalledAt
}

// Executing lists the calls the run waits for.
func (s *State) Executing() []Execute {
	var out []Execute
	for i, n := range s.Nodes {
		if n.Phase == Executing {
			out = append(out, Execute{NodeID: s.wf.Steps[i].Node.ID, Visit: n.Visit, Attempt: n.Attempt})
		}
	}
	if a := s.undoCall(); a != nil {
		out = append(out, Execute{NodeID: a.NodeID, Visit: a.Visit, Attempt: a.Attempt, Inverse: a.call()})
	}
	return out
}

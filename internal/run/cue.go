package run

import (
	"math"
	"sort"
	"time"

	"github.com/fermata-run/fermata/internal/event"
)

// Cue is what a replay does next: what Kind says, with the source's event at Seq
// or with a node.
type Cue struct {
	Kind   CueKind
	NodeID string
	Seq    int64
	Hold   bool // of an echo: see Echo
}

// CueKind tells cues apart.
type CueKind uint8

// The cues. NoCue means that nothing is left to do, or a call is being made.
const (
	NoCue      CueKind = iota
	CueCall            // make the call of the node and decide its result, if the record need not give anything
	CueEcho            // say the source's event again: Echo
	CueAnswer          // the held result of the node may be decided now, with the answers recorded for it
	CueElapse          // what the node waits for is over: Elapse
	CueMissing         // the source never got that far: Missing
	CueCancel          // the source was cancelled by the event at Seq
	CueLate            // the source used up its time
)

// Held says of a node that is executing in a replay how far its call is: it has
// not been made, or it wants an interrupt answered, or child runs, which make it a
// node of recorded outcome.
type Held uint8

// How far a call may be.
const (
	HeldNothing Held = iota
	HeldCall
	HeldAnswer
	HeldChildren
)

// Next finds what a replay does next: of all that its nodes wait for, what came
// first in the source.
func (r *Record) Next(s *State, held func(nodeID string) Held) Cue {
	if s.Ended != "" || s.Closing != nil || s.Seq < 0 {
		return Cue{}
	}
	first, missing := Cue{Seq: math.MaxInt64}, Cue{}
	awaited := map[int64]bool{}
	for i, n := range s.Nodes {
		if !n.Phase.active() {
			continue
		}
		step := &s.wf.Steps[i]
		h := HeldNothing
		if n.Phase == Executing {
			h = held(step.Node.ID)
		}
		c := r.nodes[step.Node.ID].cue(n, step.Type.Pure, h)
		c.NodeID = step.Node.ID
		if c.Kind == CueEcho || c.Kind == CueCall || c.Kind == CueElapse {
			awaited[c.Seq] = true
		}
		switch {
		case c.Kind == CueMissing && missing.Kind == NoCue:
			missing = c
		case c.Kind != NoCue && c.Kind != CueMissing && c.Seq < first.Seq:
			first = c
		}
	}
	switch {
	case first.Kind != NoCue:
		first.Hold = (first.Kind == CueEcho || first.Kind == CueElapse) && r.movesNext(first.Seq, awaited)
		return first
	case missing.Kind == NoCue:
		return Cue{}
	case r.ended == event.RunCancelled:
		return Cue{Kind: CueCancel, Seq: r.endAt}
	case r.ended == event.RunFailed && r.late:
		return Cue{Kind: CueLate}
	}
	return missing
}

// movesNext reports whether what the source said next, behind seq, is a move of another
// node that the replay awaits, too. Both may have come of one command, such as a tick at
// which the time of several was over, before anything followed from either.
func (r *Record) movesNext(seq int64, awaited map[int64]bool) bool {
	i := sort.Search(len(r.said), func(i int) bool { return r.said[i].seq > seq })
	if i == len(r.said) || !awaited[r.said[i].seq] {
		return false
	}
	return moves(r.said[i].typ)
}

// moves reports whether an event of a node may have others follow from it.
func moves(t event.Type) bool {
	switch t {
	case event.NodeFailed, event.NodeCompleted, event.NodeRetried, event.NodeResumed, event.NodeStarted:
		return true
	}
	return false
}

// recorded reports whether the outcome of a pure node of a replay is taken from the
// record all the same: it waits for child runs, or part of it is said already.
func (n *Node) recorded() bool {
	return n.Phase == Awaiting || n.Partial || n.Wake != nil && n.Wake.Children
}

// cue is what comes next for one node.
func (r *nodeRecord) cue(n *Node, pure bool, held Held) Cue {
	if r == nil {
		r = &nodeRecord{}
	}
	k := &n.Tally
	switch {
	case n.Phase == Cut && pure:
		return Cue{Kind: CueElapse, Seq: -1}
	case n.Phase == Resolved && pure:
		if k.Resumes < len(r.resumes) {
			return Cue{Kind: CueElapse, Seq: r.resumes[k.Resumes].seq}
		}
		return Cue{Kind: CueElapse, Seq: -1}
	case !pure || n.recorded() || held == HeldChildren:
		if k.Ends < len(r.outcomes) && k.Echoes < len(r.outcomes[k.Ends]) {
			return Cue{Kind: CueEcho, Seq: r.outcomes[k.Ends][k.Echoes]}
		}
		if k.Ends == len(r.outcomes) && k.Echoes < len(r.open) { // it never came to its end
			return Cue{Kind: CueEcho, Seq: r.open[k.Echoes]}
		}
	case n.Phase == Suspended:
		if k.Answers < len(r.answers) && k.Heard < len(r.answers[k.Answers]) {
			return Cue{Kind: CueEcho, Seq: r.answers[k.Answers][k.Heard]}
		}
	case held == HeldCall:
		if m, ok := r.called(k); ok && m.next > 0 {
			return Cue{Kind: CueCall, Seq: m.next}
		}
		return Cue{Kind: CueCall, Seq: math.MaxInt64 - 1}
	case held == HeldAnswer:
		if k.Answers < len(r.answers) {
			return Cue{Kind: CueAnswer, Seq: r.answers[k.Answers][0]}
		}
	case n.Phase == Sleeping:
		if k.Resumes < len(r.resumes) {
			return Cue{Kind: CueElapse, Seq: r.resumes[k.Resumes].seq}
		}
	case n.Phase == Retrying:
		// A wait before a pure node's next try is no effect: it is over in any case.
		if k.Starts < len(r.starts) {
			return Cue{Kind: CueElapse, Seq: r.starts[k.Starts].seq}
		}
		return Cue{Kind: CueElapse, Seq: math.MaxInt64 - 1}
	default:
		return Cue{}
	}
	return Cue{Kind: CueMissing}
}

// Answers are the sequences of what resolved the interrupt a node asks for next.
func (r *Record) Answers(s *State, nodeID string) []int64 {
	_, n, ok := s.node(nodeID)
	rec := r.nodes[nodeID]
	if !ok || rec == nil || n.Tally.Answers >= len(rec.answers) {
		return nil
	}
	return rec.answers[n.Tally.Answers]
}

// Now is the time at which the source made the call a replay is about to make;
// zero if it made none.
func (r *Record) Now(s *State, nodeID string) time.Time {
	_, n, ok := s.node(nodeID)
	rec := r.nodes[nodeID]
	if !ok || rec == nil {
		return time.Time{}
	}
	m, _ := rec.called(&n.Tally)
	return m.at
}

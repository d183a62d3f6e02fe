package run

import (
	"crypto/sha256"
	"math"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
)

// Record is what a replay needs to know of its source's log: where the outcomes
// of each node are, and what every event says, by digest. It holds some fifty
// bytes for an event, whatever its payload, and is only read once it is made.
type Record struct {
	Source ids.Run

	said  []saying
	nodes map[string]*nodeRecord
	ended event.Type // the terminal event, if there is one
	endAt int64
	late  bool // the run used up its time

	ending int64 // from where on the run was ending, -1 if it was not
}

// saying is one event that a replay must say too.
type saying struct {
	seq int64
	typ event.Type
	sum [16]byte
}

type nodeRecord struct {
	outcomes [][]int64 // sequences of what belongs to each outcome; the end is last
	open     []int64   // of an outcome that has not come yet
	starts   []moment
	resumes  []moment
	answers  [][]int64 // approval.received, then interrupt.resolved
	heard    []int64
}

// moment is a node.started or node.resumed: where a call was made. next is the
// node's event that follows, from which on the call is made; 0 if there is none.
type moment struct {
	seq  int64
	at   time.Time
	next int64
}

// NewRecord makes an empty record of a source.
func NewRecord(source ids.Run) *Record {
	return &Record{Source: source, nodes: map[string]*nodeRecord{}, ending: -1}
}

// Comparable reports whether a replay says this event again. It raises no
// interrupt, dispatches no child, waits for no clock and is never paused (spec v2
// replay.md §Determinism caveats), and the host's own notes are no part of what
// a run says.
func Comparable(e *event.Event) bool {
	switch e.Type {
	case event.InterruptRequested, event.NodeSuspended, event.NodeDispatched,
		event.RunPaused, event.RunResumed, event.ReplayDiverged:
		return false
	case event.LogAppended:
		return !marked(e)
	}
	return true
}

func marked(e *event.Event) bool {
	p, err := event.Read[event.Log](e.Payload)
	return err == nil && p.X != nil
}

// ofOutcome reports whether an event is part of what a node's execution came to:
// what is said again when the node is not executed again. last marks its end.
func ofOutcome(e *event.Event) (part, last bool) {
	switch e.Type {
	case event.NodeCompleted, event.NodeFailed:
		return true, true
	case event.NodeRetried, event.NodeResumed, event.OutputChunk, event.VariableChanged, event.ChannelWritten,
		event.ApprovalReceived, event.InterruptResolved:
		return e.NodeID != "", false
	case event.LogAppended:
		return e.NodeID != "" && !marked(e), false
	case event.NodeStarted:
		p, err := event.Read[event.NodeStart](e.Payload)
		return err == nil && p.Attempt > 0, false
	}
	return false, false
}

// Add takes the next event of the source's log.
func (r *Record) Add(e *event.Event) {
	if Comparable(e) {
		r.said = append(r.said, saying{e.Seq, e.Type, digest(e)})
	}
	switch {
	case e.Type.Terminal():
		r.ended, r.endAt = e.Type, e.Seq
	case e.Type == event.CapBreached:
		p, err := event.Read[event.Breach](e.Payload)
		r.late = r.late || err == nil && p.Kind == "run-duration"
	}
	r.watch(e)
	if e.NodeID == "" {
		return
	}
	n := r.nodes[e.NodeID]
	if n == nil {
		n = &nodeRecord{}
		r.nodes[e.NodeID] = n
	}
	n.add(e)
}

// watch notes from where on the run was on its way to its end.
func (r *Record) watch(e *event.Event) {
	from := int64(-1)
	switch e.Type {
	case event.LoopbackLimit:
		from = e.Seq - 1 // what started the loop over once too often
	case event.CapBreached:
		from = e.Seq
	case event.NodeCancelled:
		p, err := event.Read[event.NodeCancel](e.Payload)
		if err == nil && p.Reason != "loop-repeated" {
			from = e.Seq
		}
	case event.RunFailed, event.RunCancelled:
		return
	case event.LogAppended:
		if marked(e) {
			return
		}
	}
	if from < 0 || r.ending < 0 {
		r.ending = from
	}
}

// End is the sequence of the source's last event, if a fork from seq begins where
// the source was ending already.
func (r *Record) End(seq int64) (int64, bool) {
	return r.endAt, r.ended != "" && r.ending >= 0 && seq > r.ending
}

func (n *nodeRecord) add(e *event.Event) {
	if part, last := ofOutcome(e); part {
		n.open = append(n.open, e.Seq)
		if last {
			n.outcomes, n.open = append(n.outcomes, n.open), nil
		}
	}
	n.follow(e.Seq)
	switch e.Type {
	case event.NodeStarted:
		n.starts = append(n.starts, moment{seq: e.Seq, at: e.Time})
	case event.NodeResumed:
		n.resumes = append(n.resumes, moment{seq: e.Seq, at: e.Time})
	case event.ApprovalReceived:
		n.heard = append(n.heard, e.Seq)
	case event.InterruptResolved:
		n.answers, n.heard = append(n.answers, append(n.heard, e.Seq)), nil
	}
}

// follow notes what comes next after a call was made.
func (n *nodeRecord) follow(seq int64) {
	for _, list := range [][]moment{n.starts, n.resumes} {
		if k := len(list) - 1; k >= 0 && list[k].next == 0 {
			list[k].next = seq
		}
	}
}

// called is where the source made the call that a replay is about to make.
func (n *nodeRecord) called(k *Tally) (m moment, ok bool) {
	if i := k.Starts - 1; i >= 0 && i < len(n.starts) {
		m, ok = n.starts[i], true
	}
	if i := k.Resumes - 1; i >= 0 && i < len(n.resumes) && n.resumes[i].seq > m.seq {
		m, ok = n.resumes[i], true
	}
	return m, ok
}

func digest(e *event.Event) [16]byte {
	sum := sha256.Sum256(e.Essence())
	return [16]byte(sum[:16])
}

// differs compares what a replay says as its nth event of those that count with
// what the source says there.
func (r *Record) differs(n int64, e *event.Event) (event.Diverged, bool) {
	d := event.Diverged{SourceRunID: r.Source.String(), DivergencePoint: string(e.Type)}
	if n >= int64(len(r.said)) {
		d.DivergenceKind = "extra"
		if len(r.said) > 0 {
			d.AtSequence = r.said[len(r.said)-1].seq + 1
		}
		return d, true
	}
	was := r.said[n]
	d.AtSequence, d.OriginalEventID = was.seq, ids.Event(r.Source, was.seq)
	switch {
	case was.typ != e.Type:
		d.DivergenceKind = "type-mismatch"
	case was.sum != digest(e):
		d.DivergenceKind = "output"
	default:
		return d, false
	}
	return d, true
}

// Cue is what a replay does next: what Kind says, with the source's event at Seq
// or with a node.
type Cue struct {
	Kind   CueKind
	NodeID string
	Seq    int64
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
		switch {
		case c.Kind == CueMissing && missing.Kind == NoCue:
			missing = c
		case c.Kind != NoCue && c.Kind != CueMissing && c.Seq < first.Seq:
			first = c
		}
	}
	switch {
	case first.Kind != NoCue:
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

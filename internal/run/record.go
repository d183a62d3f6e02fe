package run

import (
	"crypto/sha256"
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

	ending int64   // from where on the run was ending, -1 if it was not
	limits []int64 // sequences of what was said since then of limits
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
	answers  [][]int64 // what is ofAnswer, then interrupt.resolved
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
// replay.md §Determinism caveats), undoes nothing, and the host's own notes are no
// part of what a run says.
func Comparable(e *event.Event) bool {
	switch e.Type {
	case event.InterruptRequested, event.ApprovalRequested, event.ClarificationRequested,
		event.NodeSuspended, event.NodeDispatched, event.RunPaused, event.RunResumed, event.ReplayDiverged:
		return false
	case event.CompensationRequested, event.CompensationStarted, event.CompensationCompleted, event.CompensationFailed,
		event.CompensationPaused, event.CompensationManual, event.AuthorizationDecided:
		return false // what a run has done is undone once, by the run itself
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
	switch {
	case e.Type == event.NodeCompleted, e.Type == event.NodeFailed:
		return true, true
	case ofAnswer(e.Type):
		return e.NodeID != "", false
	}
	switch e.Type {
	case event.NodeRetried, event.NodeResumed, event.OutputChunk, event.VariableChanged, event.ChannelWritten, event.EgressDecided,
		event.InterruptResolved:
		return e.NodeID != "", false
	case event.LogAppended:
		return e.NodeID != "" && !marked(e), false
	case event.NodeStarted:
		p, err := event.Read[event.NodeStart](e.Payload)
		return err == nil && p.Attempt > 0, false
	}
	return false, false
}

// ofAnswer reports whether an event belongs to how an interrupt came to be resolved,
// and stands ahead of its interrupt.resolved.
func ofAnswer(t event.Type) bool {
	switch t {
	case event.ApprovalReceived, event.ApprovalOverridden, event.ApprovalGranted, event.ApprovalRejected, event.ClarificationResolved:
		return true
	}
	return false
}

// Add takes the next event of the source's log. What follows the run's end, the
// undoing of what it did, is nothing that a replay repeats.
func (r *Record) Add(e *event.Event) {
	if r.ended != "" {
		return
	}
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
		r.ending, r.limits = from, nil
	}
	if e.Type == event.LoopbackLimit || e.Type == event.CapBreached {
		r.limits = append(r.limits, e.Seq)
	}
}

// End is the sequence of the source's last event, if a fork from seq begins where
// the source was ending already, and before it those of what the source said from
// there on of the limits it had reached.
func (r *Record) End(seq int64) ([]int64, bool) {
	if r.ended == "" || r.ending < 0 || seq <= r.ending {
		return nil, false
	}
	out := []int64{}
	for _, at := range r.limits {
		if at >= seq {
			out = append(out, at)
		}
	}
	return append(out, r.endAt), true
}

func (n *nodeRecord) add(e *event.Event) {
	if part, last := ofOutcome(e); part {
		n.open = append(n.open, e.Seq)
		if last {
			n.outcomes, n.open = append(n.outcomes, n.open), nil
		}
	}
	n.follow(e.Seq)
	switch {
	case e.Type == event.NodeStarted:
		n.starts = append(n.starts, moment{seq: e.Seq, at: e.Time})
	case e.Type == event.NodeResumed:
		n.resumes = append(n.resumes, moment{seq: e.Seq, at: e.Time})
	case ofAnswer(e.Type):
		n.heard = append(n.heard, e.Seq)
	case e.Type == event.InterruptResolved:
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

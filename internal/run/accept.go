package run

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answer is what a resume value means for its interrupt.
type answer struct {
	action   string // of an approval
	decision string // granted or rejected
	open     bool   // the interrupt stays open: a question, or a vote among several
	vote     bool
	accept   bool
	parsed   approval
}

// verdictOf reads a checked resume value.
func verdictOf(i *Interrupt, value jsontext.Value) answer {
	if i.Request.Kind != "approval" {
		return answer{}
	}
	var a answer
	_ = json.Unmarshal(value, &a.parsed) // checked before
	a.action = a.parsed.Action
	switch a.action {
	case "ask":
		return answer{open: true, parsed: a.parsed}
	case "accept", "edit-accept":
		a.vote, a.accept, a.decision = true, true, "granted"
	case "reject":
		a.vote, a.decision = true, "rejected"
	}
	return a
}

// accept records an answer that has been checked.
func (t *turn) accept(step *flow.Step, n *Node, a answer, c Resolve, ground Ground) {
	i := n.Interrupt
	if a.vote {
		a = i.count(a, c.voter())
	}
	bypass := a.open && a.vote && a.accept && ground.Override && i.approval().OverrideBypassesQuorum
	if bypass {
		a.open = false
	}
	p := event.Resolution{
		NodeID: step.Node.ID, InterruptID: i.ID.String(), Kind: i.Request.Kind,
		ResumeValue: c.Value, ResolvedBy: &c.Subject, Action: a.action,
	}
	ground.Override = bypass // what it was used for counts, not what it would allow
	if ground != (Ground{}) || c.Via != "" || c.Request != "" || c.Voter != "" {
		p.X = &event.ResolutionX{
			Eligibility: ground.Eligibility, Ref: ground.Ref, Source: ground.Source, Override: bypass, Via: c.Via, Request: c.Request,
		}
		if a.vote {
			p.X.Voter = c.Voter
		}
	}
	if a.open {
		t.sayAnswer(event.ApprovalReceived, step, p)
		return
	}
	p.Decision = a.decision
	if a.action == "refine" {
		p.RefineFeedback = a.parsed.RefineFeedback
	}
	if a.action == "edit-accept" {
		p.EditedArtifactData = a.parsed.EditedArtifactData
	}
	if bypass {
		t.sayAnswer(event.ApprovalOverridden, step, p)
	}
	t.twinOfAnswer(step, p)
	t.sayAnswer(event.InterruptResolved, step, p)
	t.continueAfter(step, n)
}

// sayAnswer records an answer. Where a node's outputs are sensitive, the answer
// they come from is too; only what was decided is left to see.
func (t *turn) sayAnswer(typ event.Type, step *flow.Step, p event.Resolution) {
	d := event.Draft{Type: typ, NodeID: step.Node.ID, Causation: -1, Payload: event.Encode(p)}
	if step.HasSensitive() {
		if masked, changed := t.s.maskValue(p.ResumeValue); changed {
			d.Sealed = d.Payload
			p.ResumeValue, p.RefineFeedback = masked, nil
			if len(p.EditedArtifactData) > 0 {
				p.EditedArtifactData = masked
			}
			d.Payload = event.Encode(p)
		}
	}
	t.emit(d)
}

// continueAfter lets a node go on behind its answer, unless the run stands
// still; then it goes on when the run does.
func (t *turn) continueAfter(step *flow.Step, n *Node) {
	if t.err == nil && !t.s.Paused && t.s.Draining == nil {
		t.wake(step, n)
	}
}

// voter is who has the vote that an answer is.
func (c *Resolve) voter() string {
	by := c.Subject
	if c.Voter != "" {
		by.SubjectID = c.Voter
	}
	return principal(&by)
}

// count adds a vote and says whether the gate is decided by it: enough accepts,
// one veto, or more rejections than half of the quorum (spec v2 interrupt.md
// §Rejection). A gate whose quorum looks out of reach is not ended for it: nobody's
// vote is final before the gate is decided.
func (i *Interrupt) count(a answer, voter string) answer {
	d := i.approval()
	votes := map[string]bool{voter: a.accept}
	for _, v := range i.Votes {
		if v.Principal != voter {
			votes[v.Principal] = v.Accept
		}
	}
	yes := 0
	for _, accept := range votes {
		if accept {
			yes++
		}
	}
	no := len(votes) - yes
	switch {
	case a.accept:
		a.open = yes < d.RequiredApprovals
	case d.RejectionPolicy == "majority":
		a.open = no < d.RequiredApprovals/2+1
	}
	return a
}

// expire resolves an interrupt whose deadline has passed. A timeout never
// grants anything.
func (t *turn) expire(step *flow.Step, n *Node) {
	i := n.Interrupt
	p := event.Resolution{NodeID: step.Node.ID, InterruptID: i.ID.String(), Kind: i.Request.Kind, Reason: "timeout"}
	if i.Request.Kind == "approval" {
		p.Action, p.Decision = "timeout", "rejected"
	}
	t.twinOfAnswer(step, p)
	t.say(event.InterruptResolved, step.Node.ID, p)
	t.continueAfter(step, n)
}

// Said is the answer's exchange as a node is given it.
func (a *Answer) Said() []node.Said {
	var out []node.Said
	for _, s := range a.Exchange {
		out = append(out, node.Said{By: s.By, At: s.At, Value: []byte(s.Value)})
	}
	return out
}

package run

import (
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Commit is one effect that has happened and whose node says how it is undone, or
// that it cannot be: one visit of one node. What its undoing is given is put
// together when the effect is recorded: later the same node may have other outputs.
type Commit struct {
	Step    int                       `json:"step"`
	Visit   int                       `json:"visit"`
	Inputs  map[string]jsontext.Value `json:"inputs,omitzero"`
	Missing string                    `json:"missing,omitzero"` // the fact that was not there
}

// committed notes the effect of a visit that has been recorded as completed. This
// is the one place that says which effects have happened: one that may have
// happened although its visit failed would have to be judged here.
func (s *State) committed(step *flow.Step, n *Node) {
	if s.wf.Policy == nil || step.Inverse == nil && !step.Node.IrreversibleEffect {
		return
	}
	if s.Replaying() {
		return // the effect is its source's
	}
	c := Commit{Step: step.Index, Visit: n.Visit}
	if step.Inverse != nil {
		c.Inputs, c.Missing = s.facts(step.Inverse)
	}
	size := 0
	for k, v := range c.Inputs {
		size += len(k) + len(v)
	}
	if size > maxFacts || s.Facts+size > maxAllFacts {
		c.Inputs, size = nil, 0
		c.Missing = "what undoing it is to be given is too large to be kept"
	}
	s.Facts += size
	s.Commits = append(s.Commits, c)
}

// Bounds of the facts that a run keeps until it may be undone, in bytes: for one
// effect, and for all of them. An effect beyond them is not forgotten: its undoing
// fails, and says so.
const (
	maxFacts    = 1 << 20
	maxAllFacts = 16 << 20
)

// facts resolves what an inverse action is given, as far as the log goes now.
func (s *State) facts(inv *flow.Inverse) (map[string]jsontext.Value, string) {
	var inputs map[string]jsontext.Value
	m, err := inv.Mapping.Resolve(func(r flow.Ref) (jsontext.Value, bool) {
		if r.Step >= 0 {
			v, ok := s.Nodes[r.Step].Outputs[r.Name]
			return v, ok
		}
		if inputs == nil && len(s.Inputs) > 0 && json.Unmarshal(s.Inputs, &inputs) != nil {
			return nil, false
		}
		v, ok := inputs[r.Name]
		return v, ok
	})
	if err != nil {
		return nil, err.Error()
	}
	return m, ""
}

// secret reports whether what an inverse action is given is kept from those who
// read the run: some fact in it is.
func (s *State) secret(inv *flow.Inverse) bool {
	for _, r := range inv.Mapping.Refs() {
		if r.Step >= 0 {
			if s.wf.Hides(&s.wf.Steps[r.Step], r.Name) {
				return true
			}
		} else if v, ok := s.wf.Variable(r.Name); ok && v.Sensitive {
			return true
		}
	}
	return false
}

// EffectID names the ordinal'th effect of a visit, from 0, whatever the attempt and
// whoever makes it.
func EffectID(id ids.Run, nodeID string, visit, ordinal int) string {
	return ids.Interrupt(id, "effect\x00"+nodeID, visit, ordinal).Opaque
}

// inverseID names the undoing of an effect: from the tenant, the run, the effect,
// its place in the plan and the version of the rules, and never from the attempt.
func (s *State) inverseID(nodeID string, visit, ordinal int) ids.Run {
	effect := EffectID(s.ID, nodeID, visit, 0)
	return ids.Interrupt(s.ID, "inverse\x00"+flow.CompensationProfile+"\x00"+effect, 0, ordinal)
}

// undoable reports whether there is an effect that can be undone.
func (s *State) undoable() bool {
	for _, c := range s.Commits {
		if s.wf.Steps[c.Step].Inverse != nil {
			return true
		}
	}
	return false
}

// plan lists what must be done to undo a run's effects: the effect recorded last
// comes first.
func (s *State) plan() []event.PlanEntry {
	out := make([]event.PlanEntry, 0, len(s.Commits))
	for i := len(s.Commits) - 1; i >= 0; i-- {
		c := &s.Commits[i]
		step := &s.wf.Steps[c.Step]
		id := step.Node.ID
		e := event.PlanEntry{
			Order: len(out) + 1, NodeID: id, Visit: c.Visit, Ordinal: i + 1,
			EffectID: s.inverseID(id, c.Visit, i+1).String(), Irreversible: step.Inverse == nil,
		}
		if inv := step.Inverse; inv != nil {
			e.TypeID, e.Unresolved = inv.TypeID, c.Missing
			if c.Missing == "" {
				e.Inputs = encodeObject(c.Inputs)
			}
			e.MaxAttempts, e.BackoffMs, e.TimeoutMs = inv.MaxAttempts, inv.BackoffMs, s.wf.Policy.TimeoutMs
			e.NeedsApproval, e.WaiveApproval = inv.NeedsApproval, inv.WaiveApproval
		}
		out = append(out, e)
	}
	return out
}

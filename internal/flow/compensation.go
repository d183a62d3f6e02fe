package flow

import (
	"fmt"
	"slices"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/jsonschema"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What this host does of the compensation profile (spec v2 security-defaults.md
// §Compensation). Discovery and the checks of a policy read the same values, so
// that nothing is advertised that is refused, or the other way round.
const (
	CompensationProfile = "1"
	ReverseCompletion   = "reverse-completion"
)

// What starts an undoing.
const (
	OnNodeFailure     = "node-failure"
	OnRunCancel       = "run-cancel"
	OnCapBreach       = "cap-breach"
	OnOperatorRequest = "operator-request"
)

// Bounds of an inverse action where its author names none.
const (
	defaultUndoAttempts  = 3
	defaultUndoBackoffMs = 1000
	maxUndoAttempts      = 100
	maxUndoBackoffMs     = 24 * 60 * 60 * 1000
)

// Policy is settings.compensation: when a run's effects are undone, and how.
type Policy struct {
	ProfileVersion       string   `json:"profileVersion,omitzero"`
	OrderingModel        string   `json:"orderingModel,omitzero"`
	Triggers             []string `json:"triggers"`
	Retry                *Retry   `json:"retry,omitzero"`
	TimeoutMs            int64    `json:"timeoutMs,omitzero"` // bound of one attempt; 0 for none
	ExhaustedDisposition string   `json:"exhaustedDisposition,omitzero"`
	ApprovalScope        string   `json:"approvalScope,omitzero"`
	OnParentCancel       string   `json:"onParentCancel,omitzero"`
}

// Retry bounds the attempts at an inverse action.
type Retry struct {
	MaxAttempts *int   `json:"maxAttempts,omitzero"`
	BackoffMs   *int64 `json:"backoffMs,omitzero"` // wait before the first repeat
}

// Fires reports whether a trigger starts an undoing.
func (p *Policy) Fires(trigger string) bool { return p != nil && slices.Contains(p.Triggers, trigger) }

// Halts reports whether an action that cannot be done hands the plan to an
// operator, instead of being recorded and passed over.
func (p *Policy) Halts() bool { return p.ExhaustedDisposition == "manual-intervention" }

// Inverse is a node's compensation, compiled: how its effect is undone.
type Inverse struct {
	TypeID        string
	Mapping       Mapping
	MaxAttempts   int
	BackoffMs     int64
	NeedsApproval bool // before it is done
	WaiveApproval bool // before it is given up
}

// declared is a node's compensation as its author wrote it (closed).
type declared struct {
	NodeTypeID            string                    `json:"nodeTypeId"`
	InputMapping          map[string]jsontext.Value `json:"inputMapping,omitzero"`
	Retry                 *Retry                    `json:"retry,omitzero"`
	RequiresApproval      bool                      `json:"requiresApproval,omitzero"`
	WaiveRequiresApproval *bool                     `json:"waiveRequiresApproval,omitzero"`
}

// policy reads settings.compensation. What this host would not honour is refused
// here: an author must not learn in an incident that his policy does nothing.
func (c *compiler) policy() {
	raw := c.w.Def.Settings.Compensation
	if len(raw) == 0 {
		return
	}
	const field = "settings.compensation"
	var p Policy
	if err := json.Unmarshal(raw, &p, json.RejectUnknownMembers(true)); err != nil {
		i := decodeIssue(raw, err)
		c.fail(join(field, i.Field), "%s", i.Message)
		return
	}
	if len(p.Triggers) == 0 {
		c.fail(field+".triggers", "name at least one of node-failure, run-cancel, cap-breach, operator-request")
	}
	for i, t := range p.Triggers {
		at := fmt.Sprintf("%s.triggers[%d]", field, i)
		switch {
		case !oneOf(t, OnNodeFailure, OnRunCancel, OnCapBreach, OnOperatorRequest):
			c.fail(at, "%q is not one of node-failure, run-cancel, cap-breach, operator-request", t)
		case slices.Index(p.Triggers, t) < i:
			c.fail(at, "%q is named twice", t)
		}
	}
	if p.ProfileVersion != "" && p.ProfileVersion != CompensationProfile {
		c.fail(field+".profileVersion", "this host knows version %q, not %q", CompensationProfile, p.ProfileVersion)
	}
	if p.OrderingModel != "" && p.OrderingModel != ReverseCompletion {
		c.fail(field+".orderingModel", "this host knows %s, not %q", ReverseCompletion, p.OrderingModel)
	}
	if p.TimeoutMs < 0 {
		c.fail(field+".timeoutMs", "must not be negative")
	}
	choice := func(name, v string, allowed ...string) {
		if v != "" && !oneOf(v, allowed...) {
			c.fail(field+"."+name, "%q is not %s", v, listed(allowed))
		}
	}
	choice("exhaustedDisposition", p.ExhaustedDisposition, "record-outcome", "manual-intervention")
	choice("approvalScope", p.ApprovalScope, "declared", "all")
	choice("onParentCancel", p.OnParentCancel, "continue", "pause", "manual")
	if oneOf(p.OnParentCancel, "pause", "manual") {
		// A run here undoes its effects only once it has ended, and the end of its
		// parent does not reach a run that has: it always goes on.
		c.fail(field+".onParentCancel", "this host goes on undoing when the parent is cancelled; %q is not provided", p.OnParentCancel)
	}
	c.retry(field, p.Retry)
	c.w.Policy = &p
}

func listed(words []string) string {
	out := words[0]
	for i, w := range words[1:] {
		if i == len(words)-2 {
			out += " or " + w
		} else {
			out += ", " + w
		}
	}
	return out
}

func (c *compiler) retry(field string, r *Retry) {
	if r == nil {
		return
	}
	if r.MaxAttempts != nil && (*r.MaxAttempts < 1 || *r.MaxAttempts > maxUndoAttempts) {
		c.fail(field+".retry.maxAttempts", "want 1 to %d", maxUndoAttempts)
	}
	if r.BackoffMs != nil && (*r.BackoffMs < 0 || *r.BackoffMs > maxUndoBackoffMs) {
		c.fail(field+".retry.backoffMs", "want 0 to %d", maxUndoBackoffMs)
	}
}

// inverse compiles one node's compensation. It runs when every node is known.
// Without a policy nothing ever asks for it; such a declaration was read past once,
// so one that is wrong must not keep the runs of a workflow from going on.
func (c *compiler) inverse(field string, s *Step) {
	raw := s.Node.Compensation
	if len(raw) == 0 || c.w.Policy == nil && !c.strict {
		return
	}
	if s.Node.IrreversibleEffect {
		c.fail(field, "irreversibleEffect and compensation exclude each other")
	}
	field += ".compensation"
	var d declared
	if err := json.Unmarshal(raw, &d, json.RejectUnknownMembers(true)); err != nil {
		i := decodeIssue(raw, err)
		c.fail(join(field, i.Field), "%s", i.Message)
		return
	}
	c.undoType(field+".nodeTypeId", d.NodeTypeID)
	c.retry(field, d.Retry)
	p := c.w.Policy
	all := p != nil && p.ApprovalScope == "all"
	inv := &Inverse{TypeID: d.NodeTypeID, MaxAttempts: defaultUndoAttempts, BackoffMs: defaultUndoBackoffMs}
	if p != nil {
		inv.bound(p.Retry)
	}
	inv.bound(d.Retry)
	inv.NeedsApproval = d.RequiresApproval || all
	inv.WaiveApproval = d.RequiresApproval
	if d.WaiveRequiresApproval != nil {
		inv.WaiveApproval = *d.WaiveRequiresApproval
	}
	inv.WaiveApproval = inv.WaiveApproval || all // a policy only raises
	inv.Mapping = c.mapping(field+".inputMapping", d.InputMapping)
	s.Inverse = inv
}

// facts refuses a mapping that refers to a node which can never have been there when
// the effect is recorded: such an action could only fail. It runs on the whole graph.
func (c *compiler) facts() {
	for i := range c.w.Steps {
		s := &c.w.Steps[i]
		if s.Inverse == nil {
			continue
		}
		var before map[int]bool
		for _, r := range s.Inverse.Mapping.Refs() {
			if r.Step < 0 || r.Step == i {
				continue
			}
			if before == nil {
				before = c.before(i)
			}
			if !before[r.Step] {
				c.fail(fmt.Sprintf("nodes[%d].compensation.inputMapping", i),
					"%s: node %q does not come before %q, and what is undone is undone with what was recorded by then", r, r.Node, s.Node.ID)
			}
		}
	}
}

// before lists the steps from which a step can be reached.
func (c *compiler) before(step int) map[int]bool {
	seen, stack := map[int]bool{}, []int{step}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, l := range c.w.Steps[at].In {
			if from := c.w.Links[l].From; !seen[from] {
				seen[from] = true
				stack = append(stack, from)
			}
		}
	}
	return seen
}

// bound lets a closer declaration win.
func (i *Inverse) bound(r *Retry) {
	if r == nil {
		return
	}
	if r.MaxAttempts != nil {
		i.MaxAttempts = *r.MaxAttempts
	}
	if r.BackoffMs != nil {
		i.BackoffMs = *r.BackoffMs
	}
}

// undoType makes sure that an undoing cannot fail on a misspelt type.
func (c *compiler) undoType(field, id string) {
	if id == "" {
		c.fail(field, "is required")
		return
	}
	if !ids.ValidTypeID(id) {
		c.fail(field, "%q is not a type id: want dotted segments such as core.noop", id)
		return
	}
	if issue := Undoes(c.cat, id); issue != nil {
		issue.Field = field
		c.issues = append(c.issues, *issue)
	}
}

// Undoes reports why a node type cannot serve as an inverse action; nil if it can.
// Such a call gets ports and no config, and nothing but an end may come of it.
func Undoes(cat Catalog, id string) *Issue {
	t, ok := cat.Type(id)
	if !ok {
		issue := &Issue{Message: fmt.Sprintf("unknown node type %q", id)}
		if capability, reserved := gated[id]; reserved {
			issue.Capability = capability
			issue.Message = fmt.Sprintf("node type %q needs the capability %s, which this host does not provide", id, capability)
		}
		return issue
	}
	if len(t.Requires) > 0 {
		return &Issue{Capability: t.Requires[0], Message: fmt.Sprintf("node type %q needs the capability %s, which this host does not provide", id, t.Requires[0])}
	}
	const how = "node type %q cannot undo anything: it gets its values by ports alone, and without a config %s"
	if len(t.ConfigSchema) > 0 {
		sch, err := jsonschema.Compile(t.ConfigSchema)
		if err != nil {
			return &Issue{Message: fmt.Sprintf("the config schema of node type %q is invalid: %v", id, err)}
		}
		if v := sch.Validate(jsontext.Value(`{}`)); v != nil {
			return &Issue{Message: fmt.Sprintf(how, id, "it "+v.Message)}
		}
	}
	if t.Check != nil {
		if err := t.Check(node.CheckContext{Config: []byte(`{}`), Expression: checkExpression}); err != nil {
			return &Issue{Message: fmt.Sprintf(how, id, configMessage(err))}
		}
	}
	return nil
}

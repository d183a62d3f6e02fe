package run

import (
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/jsonschema"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// resolve answers a node's interrupt (spec v2 interrupt.md §Resolve surfaces).
func (t *turn) resolve(c Resolve) error {
	if g := t.s.gate(c.NodeID, c.InterruptID); g != nil {
		return t.pass(g, c)
	}
	if _, _, ok := t.s.node(c.NodeID); ok && t.s.Replaying() {
		return problem.New(problem.InterruptAlreadyResolved, "a replay takes its answers from its source").With("nodeId", c.NodeID)
	}
	i, err := t.s.Open(c.NodeID, c.InterruptID)
	if problem.Is(err, problem.NotFound) && t.early(c) {
		return t.keep(c)
	}
	if err != nil {
		return err
	}
	if x := i.ExpiresAt; !x.IsZero() && !t.now.Before(x) {
		// Its timer has not been heard yet, but time alone has decided.
		return problem.New(problem.InterruptAlreadyResolved, "the interrupt's time is over").With("nodeId", c.NodeID)
	}
	if c.Via == "token" && t.s.Attended(c.NodeID) {
		return problem.New(problem.Forbidden, "this gate is answered with a credential, not with a token").With("reason", "credential-required")
	}
	ground, err := c.judge(i)
	if err != nil {
		return err
	}
	if err := t.check(i, c.Value); err != nil {
		return err
	}
	step, n, _ := t.s.node(c.NodeID)
	t.accept(step, n, verdictOf(i, c.Value), c, ground)
	t.advance()
	return nil
}

// Open finds the open interrupt of a node; with an id, that very one. Without,
// a node that has not asked yet is not found, which leaves room for early
// answers; an id proves that it was asked once (spec v2 interrupt.md §Errors).
func (s *State) Open(nodeID string, id ids.Run) (*Interrupt, error) {
	_, n, ok := s.node(nodeID)
	if g := s.gate(nodeID, id); g != nil {
		return g.Interrupt, nil
	}
	switch {
	case !ok:
		return nil, problem.New(problem.NotFound, "no such node in this run").With("nodeId", nodeID)
	case s.Ended != "" || s.Closing != nil:
		p := problem.New(problem.InterruptAlreadyResolved, "the run is no longer waiting").With("runStatus", s.Status())
		if n.Asked > 0 && n.Phase != Suspended && n.Phase != Aborted {
			p = p.With("nodeId", nodeID) // it was answered before the run ended
		}
		return nil, p
	case n.Interrupt != nil && (id.IsZero() || n.Interrupt.ID == id):
		return n.Interrupt, nil
	case !id.IsZero() || n.Asked > 0 && n.Phase != Idle:
		return nil, problem.New(problem.InterruptAlreadyResolved, "the interrupt has been resolved already").With("nodeId", nodeID)
	}
	return nil, problem.New(problem.NotFound, "the node does not wait for an answer").With("nodeId", nodeID)
}

// attendedProfile is the profile of a gate that wants to see a credential (spec v1
// interrupt-profiles.md §openwop-interrupt-auth-required).
const attendedProfile = "openwop-interrupt-auth-required"

// Attended reports whether a node takes answers of callers with a credential only, and
// none by token.
func (s *State) Attended(nodeID string) bool {
	step, _, ok := s.node(nodeID)
	if !ok {
		return false
	}
	var c struct {
		Profile string `json:"profile"`
	}
	return json.Unmarshal(step.Node.Config, &c) == nil && c.Profile == attendedProfile
}

// early reports whether an answer that no interrupt waits for is one that its
// node takes in advance: an external event.
func (t *turn) early(c Resolve) bool {
	step, n, ok := t.s.node(c.NodeID)
	return ok && step.Type.Early != nil && step.Type.Early([]byte(step.Node.Config)) && !n.Phase.final()
}

// expected holds an early answer against what its node is going to ask, where the
// definition says it: who sends the wrong event hears so now, and not never.
func (t *turn) expected(c Resolve) error {
	step, _, _ := t.s.node(c.NodeID)
	if step.Type.Expect == nil || len(step.Bindings) > 0 {
		return nil
	}
	ask, ok := step.Type.Expect([]byte(step.Node.Config))
	if !ok || len(ask.Data) == 0 {
		return nil
	}
	return t.check(&Interrupt{Request: event.Interrupt{
		Kind: ask.Kind, Data: jsontext.Value(ask.Data), ResumeSchema: jsontext.Value(ask.ResumeSchema),
	}}, c.Value)
}

func (t *turn) keep(c Resolve) error {
	s := t.s
	if err := t.expected(c); err != nil {
		return err
	}
	if max := t.lim.MaxSignals; max > 0 && len(s.Signals[c.NodeID]) >= max {
		return problem.New(problem.RunStateConflict, "%d answers are kept for this node already", max).With("runStatus", s.Status())
	}
	whole := event.SignalMark{Value: c.Value, Subject: c.Subject, Request: c.Request}
	shown, hide := whole, false
	if step, _, ok := s.node(c.NodeID); ok && step.HasSensitive() {
		if shown.Value, hide = s.maskValue(c.Value); shown.Value == nil {
			shown.Value = jsontext.Value("null")
		}
	}
	t.private(c.NodeID, "answer kept until the node waits", event.Mark{Signal: &shown}, event.Mark{Signal: &whole}, hide)
	return nil
}

// check holds an answer against the interrupt: its schema, its kind's own rules.
func (t *turn) check(i *Interrupt, value jsontext.Value) error {
	if len(i.Request.ResumeSchema) > 0 {
		if err := conforms(i.Request.ResumeSchema, value, "resumeValue"); err != nil {
			return err
		}
	}
	switch i.Request.Kind {
	case "approval":
		return checkApproval(i, value)
	case "clarification":
		return checkAnswers(i, value)
	case "external-event":
		return checkCorrelation(i, value)
	case "conversation.exchange":
		var d struct {
			OutcomeSchema jsontext.Value `json:"outcomeSchema"`
		}
		if json.Unmarshal(i.Request.Data, &d) == nil && len(d.OutcomeSchema) > 0 {
			return conforms(d.OutcomeSchema, value, "resumeValue")
		}
	}
	return nil
}

func conforms(schema, value jsontext.Value, field string) error {
	sch, err := jsonschema.Compile(schema)
	if err != nil {
		return problem.Invalid(field, "the interrupt's schema cannot be used: %v", err)
	}
	if v := sch.Validate(value); v != nil {
		if v.Path != "" {
			field += "." + v.Path
		}
		return problem.Invalid(field, "%s", v.Message)
	}
	return nil
}

// approval is the resume value of an approval.
type approval struct {
	Action             string         `json:"action"`
	RefineFeedback     jsontext.Value `json:"refineFeedback"`
	EditedArtifactData jsontext.Value `json:"editedArtifactData"`
}

type approvalData struct {
	Actions                []string `json:"actions"`
	ApproversList          []string `json:"approversList"`
	ApproverGroupRefs      []string `json:"approverGroupRefs"`
	ApproverRoleRefs       []string `json:"approverRoleRefs"`
	RequiredApprovals      int      `json:"requiredApprovals"`
	RejectionPolicy        string   `json:"rejectionPolicy"`
	OverrideBypassesQuorum bool     `json:"overrideBypassesQuorum"`
	Audience               *struct {
		Subjects []string `json:"subjects"`
		Groups   []string `json:"groups"`
		Roles    []string `json:"roles"`
	} `json:"audience"`
}

func (i *Interrupt) approval() approvalData {
	var d approvalData
	_ = json.Unmarshal(i.Request.Data, &d) // validated when it was opened
	d.RequiredApprovals = max(d.RequiredApprovals, 1)
	return d
}

func checkApproval(i *Interrupt, value jsontext.Value) error {
	var a approval
	if value.Kind() != '{' {
		return problem.Invalid("resumeValue", "an approval is answered with an object {action, …}")
	}
	if err := json.Unmarshal(value, &a); err != nil {
		return problem.Invalid("resumeValue.action", "must be a string")
	}
	d := i.approval()
	if !slices.Contains(d.Actions, a.Action) {
		return problem.Invalid("resumeValue.action", "%q is not offered here", a.Action).With("actions", d.Actions)
	}
	switch a.Action {
	case "refine":
		if a.RefineFeedback.Kind() != '{' {
			return problem.Invalid("resumeValue.refineFeedback", "is required for the action refine")
		}
		return checkFeedback(a.RefineFeedback)
	case "edit-accept":
		if len(a.EditedArtifactData) == 0 {
			return problem.Invalid("resumeValue.editedArtifactData", "is required for the action edit-accept")
		}
	}
	return nil
}

func checkFeedback(v jsontext.Value) error {
	var f struct {
		Scope       string   `json:"scope"`
		SectionPath string   `json:"sectionPath"`
		ItemIDs     []string `json:"itemIds"`
		Tags        []string `json:"tags"`
		Text        string   `json:"text"`
	}
	if err := json.Unmarshal(v, &f, json.RejectUnknownMembers(true)); err != nil {
		return problem.Invalid("resumeValue.refineFeedback", "want {scope, sectionPath?, itemIds?, tags?, text?}")
	}
	if !slices.Contains([]string{"whole", "section", "items"}, f.Scope) {
		return problem.Invalid("resumeValue.refineFeedback.scope", "%q is not whole, section or items", f.Scope)
	}
	return nil
}

// checkAnswers wants an answer to every question, in either of the two shapes
// clients send.
func checkAnswers(i *Interrupt, value jsontext.Value) error {
	var d struct {
		Questions []struct {
			ID     string         `json:"id"`
			Schema jsontext.Value `json:"schema"`
		} `json:"questions"`
	}
	if err := json.Unmarshal(i.Request.Data, &d); err != nil {
		return problem.Internal(err)
	}
	answers, ok := Answers(value)
	if !ok {
		return problem.Invalid("resumeValue.answers", "want an object of answers by question id")
	}
	for _, q := range d.Questions {
		v, answered := answers[q.ID]
		if !answered {
			return problem.Invalid("resumeValue.answers."+q.ID, "is not answered")
		}
		if len(q.Schema) > 0 {
			if err := conforms(q.Schema, v, "resumeValue.answers."+q.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Answers reads the answers of a clarification: {answers: {id: value}},
// {answers: [{id, answer}]} or that list alone.
func Answers(value jsontext.Value) (map[string]jsontext.Value, bool) {
	var v struct {
		Answers jsontext.Value `json:"answers"`
	}
	switch {
	case value.Kind() == '[':
		v.Answers = value
	case value.Kind() != '{' || json.Unmarshal(value, &v) != nil:
		return nil, false
	}
	out := map[string]jsontext.Value{}
	switch v.Answers.Kind() {
	case '{':
		return out, json.Unmarshal(v.Answers, &out) == nil
	case '[':
		var list []struct {
			ID     string         `json:"id"`
			Answer jsontext.Value `json:"answer"`
		}
		if json.Unmarshal(v.Answers, &list) != nil {
			return nil, false
		}
		for _, a := range list {
			out[a.ID] = a.Answer
		}
		return out, true
	}
	return nil, false
}

// CorrelationMismatch is the reason of a refusal: the event is not the one that is waited
// for.
const CorrelationMismatch = "correlation-mismatch"

// checkCorrelation wants every correlation member back with an equal value.
func checkCorrelation(i *Interrupt, value jsontext.Value) error {
	var d struct {
		Correlation map[string]jsontext.Value `json:"correlation"`
	}
	var got map[string]jsontext.Value
	if err := json.Unmarshal(i.Request.Data, &d); err != nil {
		return problem.Internal(err)
	}
	if len(d.Correlation) == 0 {
		return nil
	}
	if value.Kind() != '{' || json.Unmarshal(value, &got) != nil {
		return problem.Invalid("resumeValue", "an external event with a correlation is an object")
	}
	for k, want := range d.Correlation {
		if v, ok := got[k]; !ok || !expr.Equal(v, want) {
			return problem.Invalid("resumeValue."+k, "does not match the correlation this run waits for").With("reason", CorrelationMismatch)
		}
	}
	return nil
}

// Approvers is who alone may answer an interrupt: the union of its members. If all
// are empty, everybody who may answer at all (spec v2 interrupt.md §Approver
// enforcement).
type Approvers struct {
	Subjects []string // explicit principals
	Groups   []string
	Roles    []string
}

// Open reports whether nobody is named.
func (a Approvers) Open() bool { return len(a.Subjects)+len(a.Groups)+len(a.Roles) == 0 }

// Approvers reads who may answer. Only an approval can restrict it.
func (i *Interrupt) Approvers() Approvers {
	if i.Request.Kind != "approval" {
		return Approvers{}
	}
	d := i.approval()
	return Approvers{d.ApproversList, d.ApproverGroupRefs, d.ApproverRoleRefs}
}

// Audience is who should be told about an interrupt: whom its author names, else
// those who may answer. It is a hint and makes nobody eligible.
func (i *Interrupt) Audience() Approvers {
	if i.Request.Kind != "approval" {
		return Approvers{}
	}
	if a := i.approval().Audience; a != nil {
		return Approvers{a.Subjects, a.Groups, a.Roles}
	}
	return i.Approvers()
}

// judge asks whether the answer may count. Without a judge a gate that names
// its approvers stays shut.
func (c *Resolve) judge(i *Interrupt) (Ground, error) {
	if c.Judge != nil {
		return c.Judge(i)
	}
	if !i.Approvers().Open() {
		return Ground{}, problem.New(problem.Forbidden, "this gate names its approvers").With("reason", "not-an-approver")
	}
	return Ground{}, nil
}

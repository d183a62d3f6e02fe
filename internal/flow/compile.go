package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sort"

	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/jsonschema"
	"github.com/fermata-run/fermata/node"
	"github.com/fermata-run/fermata/schema"
	"github.com/go-json-experiment/json/jsontext"
)

// Catalog knows the node types of a host.
type Catalog interface {
	Type(id string) (*node.Type, bool)
}

// Workflow is a definition compiled for execution. It is immutable and may be
// shared by any number of runs.
type Workflow struct {
	Def    *Definition
	Raw    jsontext.Value // canonical bytes, as stored and served
	Digest string         // SHA-256 of Raw, hexadecimal

	Steps []Step
	Links []Link
	Loops []Loop
	Order []int // all steps in the order in which ready ones start
	Sinks []int // steps without a forward successor, in definition order

	Policy *Policy // when effects are undone; nil for never

	byID         map[string]int
	variables    map[string]*Variable
	channels     map[string]*jsonschema.Schema // of values written, where declared
	configurable *jsonschema.Schema
	schedules    []Schedule
}

// ChannelSchema is what a value written to a channel must match; nil for anything.
func (w *Workflow) ChannelSchema(name string) *jsonschema.Schema { return w.channels[name] }

// ConfigurableSchema is what a run's configurable must match; nil for anything.
func (w *Workflow) ConfigurableSchema() *jsonschema.Schema { return w.configurable }

// Step is a compiled node.
type Step struct {
	Index    int
	Node     *Node
	Type     *node.Type
	Settings NodeSettings
	Rule     string // trigger rule; see the Rule constants
	In, Out  []int  // links, forward and back, by edge id
	Bindings []Binding
	Loops    []int    // loops whose body holds this step
	Routed   bool     // some outgoing link depends on what happened
	Inverse  *Inverse // how its effect is undone; nil if nobody has said

	sensitive map[string]bool
}

// Trigger rules (spec: workflow-definition schema).
const (
	AllSuccess  = "all_success"
	AnySuccess  = "any_success"
	AllComplete = "all_complete"
	NoneFailed  = "none_failed"
	AnyFailed   = "any_failed"
)

// Absorbs reports whether a step with this rule can take over from a failed
// source, so that the failure does not end the run.
func Absorbs(rule string) bool {
	return rule == AnyFailed || rule == AllComplete || rule == AnySuccess
}

// Link is a compiled edge, or a dependency implied by a connection input.
type Link struct {
	Index    int
	ID       string
	From, To int
	Edge     *Edge      // nil for an implied dependency
	Cond     *expr.Test // nil for none
	Back     bool       // closes a loop
	Loop     int        // the loop a back link closes
	Exits    []int      // loops whose body this forward link leaves
}

// Loop is a cycle: the step it starts at and everything that may run again.
type Loop struct {
	Header  int
	Latches []int // steps with a back link to the header
	Body    []int // header and latches included, ascending
	in      map[int]bool
}

// Holds reports whether a step belongs to the loop's body.
func (l *Loop) Holds(step int) bool { return l.in[step] }

// Binding is one compiled input port.
type Binding struct {
	Port    string
	Value   PortValue
	Program *expr.Program // for expressions
	Step    int           // for connections
}

// Step finds a compiled node by id.
func (w *Workflow) Step(id string) (*Step, bool) {
	i, ok := w.byID[id]
	if !ok {
		return nil, false
	}
	return &w.Steps[i], true
}

// Variable finds a declared variable by name.
func (w *Workflow) Variable(name string) (*Variable, bool) {
	v, ok := w.variables[name]
	return v, ok
}

// Sensitive reports whether an output port's values are masked.
func (s *Step) Sensitive(port string) bool { return s.sensitive[port] }

// HasSensitive reports whether the step masks any port.
func (s *Step) HasSensitive() bool { return len(s.sensitive) > 0 }

// Hides reports whether an output must not be shown: it is declared sensitive, or
// bears the name of a variable that is, as the outputs of core.flow.set do.
func (w *Workflow) Hides(s *Step, output string) bool {
	if s.Sensitive(output) {
		return true
	}
	v, ok := w.variables[output]
	return ok && v.Sensitive
}

// Retries is how often a failed attempt is repeated.
func (w *Workflow) Retries(s *Step) int {
	if s.Settings.MaxRetries != nil {
		return *s.Settings.MaxRetries
	}
	return w.Def.Settings.MaxRetries
}

// Compile validates a parsed definition against the host's node types and
// builds its graph. The error is an Issues.
func Compile(def *Definition, raw jsontext.Value, cat Catalog) (*Workflow, error) {
	return compile(def, raw, cat, false)
}

func compile(def *Definition, raw jsontext.Value, cat Catalog, strict bool) (*Workflow, error) {
	sum := sha256.Sum256(raw)
	w := &Workflow{
		Def: def, Raw: raw, Digest: hex.EncodeToString(sum[:]),
		byID: map[string]int{}, variables: map[string]*Variable{},
	}
	c := &compiler{w: w, cat: cat, raw: raw, strict: strict}
	c.definition()
	c.steps()
	c.links()
	if len(c.issues) > 0 {
		return nil, c.issues
	}
	c.imply()
	c.graph()
	c.bound()
	c.facts()
	if len(c.issues) > 0 {
		return nil, c.issues
	}
	return w, nil
}

// Load parses and compiles in one go, giving lines of the original text.
func Load(data []byte, cat Catalog) (*Workflow, error) { return load(data, cat, false) }

func load(data []byte, cat Catalog, strict bool) (*Workflow, error) {
	def, raw, err := Parse(data)
	if err != nil {
		return nil, err
	}
	w, err := compile(def, raw, cat, strict)
	return w, placed(data, err)
}

// Check is Load for a definition that somebody hands in. It must also satisfy
// the protocol's schema down to the members that have no effect here, because it
// is served again as it came, and say nothing that can never come true.
func Check(data []byte, cat Catalog) (*Workflow, error) {
	w, err := load(data, cat, true)
	if err != nil {
		return nil, err
	}
	if issues := w.atTheDoor(); len(issues) > 0 {
		return nil, placed(data, issues)
	}
	err = schema.Validate("workflow-definition", w.Raw)
	var bad *schema.Invalid
	if errors.As(err, &bad) {
		err = placed(data, Issues{{Field: bad.Field, Message: bad.Reason}})
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// placed adds lines to issues.
func placed(data []byte, err error) error {
	if issues, ok := err.(Issues); ok {
		src := newSource(data)
		for i := range issues {
			issues[i].Line = src.lineOf(issues[i].Field)
		}
		sort.SliceStable(issues, func(a, b int) bool { return issues[a].Line < issues[b].Line })
	}
	return err
}

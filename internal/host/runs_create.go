package host

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of RunOptions (spec v2 runs.md §tags and metadata).
const (
	maxTags          = 100
	maxTagLength     = 256 // characters
	maxMetadataBytes = 64 << 10
	maxScopeLength   = 256 // characters
)

// CreateRun is the request of createRun, decoded.
type CreateRun struct {
	WorkflowID   string
	Inputs       jsontext.Value
	TenantID     string
	ScopeID      string
	Alone        bool // refuse if another run of the scope is active
	CallbackURL  string
	Major        int // of the protocol the request came by, if it is an older one: its callbacks keep its form
	Residency    jsontext.Value
	Mode         string
	EvalSuiteRef string
	AgentID      string
	Configurable jsontext.Value
	Written      jsontext.Value // configurable in the form of an older major, if it came so
	Tags         []string
	Metadata     jsontext.Value
	Transport    string // rest if empty
}

// Created is a run that has come into being.
type Created struct {
	ID     ids.Run
	Status string
}

// CreateRun starts a run (spec v2 runs.md §Create).
func (h *Host) CreateRun(ctx context.Context, c identity.Caller, r CreateRun) (Created, error) {
	if err := h.allow(c, identity.RunsCreate); err != nil {
		return Created{}, err
	}
	if err := unsupported(c, r); err != nil {
		return Created{}, err
	}
	if err := checkOptions(r); err != nil {
		return Created{}, err
	}
	if err := h.checkCallback(c, r.CallbackURL); err != nil {
		return Created{}, err
	}
	for field, text := range map[string]string{"callbackUrl": r.CallbackURL, "scopeId": r.ScopeID} {
		if err := h.holdsSecret(c.Tenant(), field, text); err != nil {
			return Created{}, err
		}
	}
	try := attemptIn(ctx)
	if out, done, err := h.created(ctx, try); done || err != nil {
		return out, err
	}
	out, err := h.begin(ctx, c, r, birth{id: try.run})
	if errors.Is(err, store.ErrExists) { // an earlier try came through after all
		if out, done, err := h.created(ctx, try); done || err != nil {
			return out, err
		}
	}
	return out, err
}

// birth is what the host itself decides about a run that begins.
type birth struct {
	id      ids.Run        // zero for any
	version string         // of the workflow; empty for the latest
	trigger *event.Trigger // nil if a caller starts it
}

// begin starts a run for somebody who may. An id that is there is ErrExists.
func (h *Host) begin(ctx context.Context, c identity.Caller, r CreateRun, b birth) (Created, error) {
	wf, err := h.engine.Definitions().Get(ctx, c.Tenant(), r.WorkflowID, b.version)
	if errors.Is(err, store.ErrNotFound) {
		return Created{}, problem.New(problem.NotFound, "no workflow %q", r.WorkflowID).With("workflowId", r.WorkflowID)
	}
	if err != nil {
		return Created{}, err
	}
	if err := startable(wf); err != nil {
		return Created{}, err
	}
	if err := checkInputs(wf, r.Inputs); err != nil {
		return Created{}, err
	}
	if err := checkConfigurable(wf, r.Configurable, r.Written); err != nil {
		return Created{}, err
	}
	if r.Transport == "" {
		r.Transport = "rest"
	}
	id := b.id // chosen before the claim was written, so that it is the same in every try
	if id.IsZero() {
		id = h.engine.NewID(c.Tenant())
	}
	begun, err := h.active.begin(ctx, c.Tenant())
	if err != nil {
		return Created{}, err
	}
	defer begun()
	create := h.engine.Create
	if r.Alone {
		create = h.engine.CreateAlone
	}
	// The start of a run is in its own log, with who asked for it. It is recorded
	// here, too, only where the operator wants it so (docs/adr/0019).
	if h.cfg.Audit.Runs {
		ctx = store.Audited(ctx, h.draft(ctx, c, onRun("run.create", id).with("workflowId", r.WorkflowID)))
	}
	out, err := create(ctx, id, wf, run.Start{
		Owner: c.Owner(), Transport: r.Transport, Inputs: r.Inputs, Tags: r.Tags, Metadata: r.Metadata,
		Configurable: r.Configurable, ScopeID: r.ScopeID, CallbackURL: r.CallbackURL, CallbackMajor: r.Major, Trigger: b.trigger,
	})
	if err != nil {
		return Created{}, err
	}
	return Created{ID: id, Status: accepted(out.Status)}, nil
}

// accepted is the status a 201 may carry: a run that is over already was
// running when it was accepted.
func accepted(status string) string {
	switch status {
	case run.Pending, run.WaitingApproval, run.WaitingInput, run.WaitingExternal:
		return status
	}
	return run.Running
}

// unsupported refuses what this host would otherwise have to ignore.
func unsupported(c identity.Caller, r CreateRun) error {
	switch {
	case r.TenantID != "" && r.TenantID != c.Tenant():
		return problem.New(problem.IDTenantMismatch, "tenantId names another tenant").With("field", "tenantId")
	case r.Mode != "":
		if r.Mode != "eval" {
			return problem.Invalid("mode", "%q is not eval", r.Mode)
		}
		if r.EvalSuiteRef == "" {
			return problem.Invalid("evalSuiteRef", "is required in mode eval")
		}
		if r.AgentID == "" {
			return problem.Invalid("agentId", "is required in mode eval")
		}
		return problem.New(problem.CapabilityNotProvided, "this host does not run evaluation suites").
			With("requiredCapability", "agents.evalSuite")
	case r.EvalSuiteRef != "":
		return problem.Invalid("evalSuiteRef", "goes with mode eval only")
	case r.AgentID != "":
		return problem.Invalid("agentId", "goes with mode eval only")
	case len(r.Residency) > 0 && r.Residency.Kind() != '{':
		return problem.Invalid("residency", "must be an object")
	case len(r.Residency) > 0:
		return problem.New(problem.Code("residency_unavailable"), "this host cannot honour a residency constraint").With("field", "residency")
	case r.WorkflowID == "":
		return problem.Invalid("workflowId", "is required")
	case !ids.ValidAuthored(r.WorkflowID):
		return problem.Invalid("workflowId", "is no workflow id: want 1 to 128 of A-Z a-z 0-9 . _ ~ : -")
	case utf8.RuneCountInString(r.ScopeID) > maxScopeLength:
		return problem.Invalid("scopeId", "has at most %d characters", maxScopeLength)
	}
	return nil
}

func startable(wf *flow.Workflow) error {
	d := wf.Def
	if d.IsActive != nil && !*d.IsActive || d.Status == "inactive" || d.Status == "archived" {
		return problem.Invalid("workflowId", "the workflow %s is not active", d.ID)
	}
	return nil
}

func checkOptions(r CreateRun) error {
	if len(r.Tags) > maxTags {
		return problem.Invalid("tags", "at most %d tags are allowed", maxTags).With("limit", maxTags)
	}
	for i, t := range r.Tags {
		if n := utf8.RuneCountInString(t); n > maxTagLength {
			return problem.Invalid(fmt.Sprintf("tags[%d]", i), "a tag has at most %d characters", maxTagLength).With("limit", maxTagLength)
		}
	}
	if len(r.Metadata) > 0 && r.Metadata.Kind() != '{' {
		return problem.Invalid("metadata", "must be an object")
	}
	if len(r.Metadata) > maxMetadataBytes {
		return problem.Invalid("metadata", "has at most %d bytes", maxMetadataBytes).With("limit", maxMetadataBytes)
	}
	return nil
}

// checkInputs holds run inputs against the workflow's variables.
func checkInputs(wf *flow.Workflow, inputs jsontext.Value) error {
	in := map[string]jsontext.Value{}
	if len(inputs) > 0 {
		if inputs.Kind() != '{' {
			return problem.Invalid("inputs", "must be an object")
		}
		if err := json.Unmarshal(inputs, &in); err != nil {
			return problem.Invalid("inputs", "%v", err)
		}
	}
	if name, reason := wf.CheckInputs(in); reason != "" {
		return problem.Invalid("inputs."+name, "%s", reason)
	}
	return nil
}

// checkConfigurable holds the overlay against the protocol's form and the workflow's
// own schema. A workflow may have been written with the form of an older major in
// mind: an overlay that came in that form is held against its schema so, too.
func checkConfigurable(wf *flow.Workflow, v, written jsontext.Value) error {
	if len(v) == 0 {
		return nil
	}
	if err := parseConfigurable(v); err != nil {
		return err
	}
	sch := wf.ConfigurableSchema()
	if sch == nil {
		return nil
	}
	if len(written) > 0 {
		if sch.Validate(v) == nil {
			return nil
		}
		v = written
	}
	if bad := sch.Validate(v); bad != nil {
		field := "configurable"
		if bad.Path != "" {
			field += "." + bad.Path
		}
		return problem.Invalid(field, "%s", bad.Message)
	}
	return nil
}

package v1

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/event/v1wire"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// snapshot is v1's RunSnapshot (run-snapshot.schema.json), which is open: inputs,
// interrupt, childRuns and the parent stand outside the schema and are read by
// clients all the same.
type snapshot struct {
	RunID                 string                    `json:"runId"`
	WorkflowID            string                    `json:"workflowId"`
	Status                string                    `json:"status"`
	Owner                 owner                     `json:"owner"`
	EventLogSchemaVersion int                       `json:"eventLogSchemaVersion"`
	EngineVersion         string                    `json:"engineVersion"`
	CurrentNodeID         string                    `json:"currentNodeId,omitzero"`
	StartedAt             string                    `json:"startedAt,omitzero"`
	CompletedAt           string                    `json:"completedAt,omitzero"`
	EndedAt               string                    `json:"endedAt,omitzero"` // the same, as older hosts call it
	Inputs                jsontext.Value            `json:"inputs,omitzero"`
	Error                 *runError                 `json:"error,omitzero"`
	Tags                  jsontext.Value            `json:"tags,omitzero"`
	Metadata              jsontext.Value            `json:"metadata,omitzero"`
	Configurable          jsontext.Value            `json:"configurable,omitzero"`
	Variables             jsontext.Value            `json:"variables,omitzero"`
	Channels              jsontext.Value            `json:"channels,omitzero"`
	NodeStates            map[string]jsontext.Value `json:"nodeStates,omitzero"`
	Interrupt             *openInterrupt            `json:"interrupt,omitzero"`
	ChildRuns             []childRun                `json:"childRuns,omitzero"`
	ParentRunID           string                    `json:"parentRunId,omitzero"`
	ParentNodeID          string                    `json:"parentNodeId,omitzero"`
}

// owner is who a run belongs to; a subject is one principal in v1.
type owner struct {
	Tenant    string `json:"tenant"`
	Workspace string `json:"workspace,omitzero"`
	Principal string `json:"principal,omitzero"`
}

type runError struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
}

// openInterrupt is what a suspended run waits for. Token and callback are for a
// caller who may answer it.
type openInterrupt struct {
	Kind        string         `json:"kind"`
	NodeID      string         `json:"nodeId"`
	InterruptID string         `json:"interruptId"`
	Key         string         `json:"key,omitzero"`
	Data        jsontext.Value `json:"data"`
	ExpiresAt   string         `json:"expiresAt,omitzero"`
	Token       string         `json:"interruptToken,omitzero"`
	CallbackURL string         `json:"callbackUrl,omitzero"`
}

type childRun struct {
	RunID      string `json:"runId"`
	WorkflowID string `json:"workflowId"`
	Status     string `json:"status"`
	NodeID     string `json:"nodeId"`
}

// nodeState is what is read of an entry of this major's nodeStates.
type nodeState struct {
	Interrupt *openInterrupt `json:"interrupt"`
	Children  []childRun     `json:"children"`
}

// project writes a run as v1 shows it.
func project(d *host.RunDetail) (*snapshot, error) {
	out := &snapshot{
		RunID: bare(d.RunID), WorkflowID: d.WorkflowID, Status: d.Status, EventLogSchemaVersion: logEra,
		EngineVersion: strconv.Itoa(d.EngineVersion), CurrentNodeID: d.CurrentNodeID, StartedAt: d.StartedAt, CompletedAt: d.CompletedAt, EndedAt: d.CompletedAt,
		Inputs: d.Inputs, Tags: d.Tags, Metadata: d.Metadata, Configurable: flat(d.Configurable),
		Variables: d.Variables, Channels: d.Channels, ParentNodeID: d.ParentNode,
	}
	if !d.Parent.IsZero() {
		out.ParentRunID = d.Parent.Opaque
	}
	o, err := event.Read[event.Owner](d.Owner)
	if err != nil {
		return nil, err
	}
	out.Owner = owner{o.Tenant, o.Workspace, v1wire.Principal(event.Encode(o.Subject))}
	if len(d.Error) > 0 {
		if out.Error, err = errorOf(o.Tenant, d.Error); err != nil {
			return nil, err
		}
	}
	return out, out.nodes(d)
}

// errorOf is a run's or node's error as v1 shows it. Its codes are an open list: a
// code of the workflow's own that is internal_error in this major is itself there.
func errorOf(tenant string, v jsontext.Value) (*runError, error) {
	e, err := event.Read[runError](v)
	if err != nil {
		return nil, err
	}
	own, _ := e.Details["reason"].(string)
	e.Code = v1wire.Code(e.Code, own)
	for name, v := range e.Details {
		if id, ok := v.(string); ok && idMember(name) {
			e.Details[name] = v1wire.Bare(tenant, id)
		}
	}
	return &e, nil
}

// nodes reads what the states of the nodes say of interrupts and children.
func (s *snapshot) nodes(d *host.RunDetail) error {
	if len(d.NodeStates) == 0 {
		return nil
	}
	if err := json.Unmarshal(d.NodeStates, &s.NodeStates); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(s.NodeStates)) {
		var n nodeState
		if err := json.Unmarshal(s.NodeStates[id], &n); err != nil {
			return err
		}
		if x := n.Interrupt; x != nil {
			x.NodeID, x.InterruptID = id, bare(x.InterruptID)
			if s.Interrupt == nil || id == s.CurrentNodeID {
				s.Interrupt = x
			}
		}
		for _, c := range n.Children {
			s.ChildRuns = append(s.ChildRuns, childRun{bare(c.RunID), c.WorkflowID, c.Status, id})
		}
		var err error
		if s.NodeStates[id], err = bareNode(s.Owner.Tenant, s.NodeStates[id]); err != nil {
			return err
		}
	}
	if run.Terminal(s.Status) {
		s.Interrupt = nil
	}
	return nil
}

// bareNode writes the ids in the host's own members of a node's state as v1 does.
// Outputs are the node's: of those, what names a run is the host's, and nothing below.
func bareNode(tenant string, v jsontext.Value) (jsontext.Value, error) {
	var m map[string]jsontext.Value
	if err := json.Unmarshal(v, &m); err != nil {
		return nil, err
	}
	for _, name := range []string{"interrupt", "children"} {
		if m[name] == nil {
			continue
		}
		clean, err := bareIDs(m[name], "data")
		if err != nil {
			return nil, err
		}
		m[name] = clean
	}
	if m["outputs"] != nil {
		var out map[string]jsontext.Value
		if err := json.Unmarshal(m["outputs"], &out); err != nil {
			return nil, err
		}
		for name, v := range out {
			var id string
			if idMember(name) && v.Kind() == '"' && json.Unmarshal(v, &id) == nil {
				out[name] = event.Encode(v1wire.Bare(tenant, id))
			}
		}
		m["outputs"] = event.Encode(out)
	}
	if m["error"] != nil {
		e, err := errorOf(tenant, m["error"])
		if err != nil {
			return nil, err
		}
		m["error"] = event.Encode(e)
	}
	return event.Encode(m), nil
}

// read is a run's snapshot for a caller, with the means to answer what it waits for
// if he may.
func (a *API) read(ctx context.Context, c identity.Caller, d *host.RunDetail) (*snapshot, error) {
	s, err := project(d)
	if err != nil {
		return nil, err
	}
	if s.Interrupt != nil {
		err = a.offer(ctx, c, d, s.Interrupt)
	}
	return s, err
}

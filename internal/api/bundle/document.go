package bundle

import (
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json/jsontext"
)

// document is the bundle.
type document struct {
	BundleVersion    string           `json:"bundleVersion"`
	GeneratedAt      string           `json:"generatedAt"`
	Host             program          `json:"host"`
	Run              jsontext.Value   `json:"run"`
	Events           []jsontext.Value `json:"events"`
	Spans            []jsontext.Value `json:"spans"` // this host records none
	Metrics          metrics          `json:"metrics"`
	RedactionApplied bool             `json:"redactionApplied"`
	RedactionMode    string           `json:"redactionMode"`
	Truncated        bool             `json:"truncated,omitzero"`
	TruncatedReason  string           `json:"truncatedReason,omitzero"`
}

type program struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Vendor  string `json:"vendor"`
}

// metrics count what is in the bundle, and nothing beside it.
type metrics struct {
	Cost       jsontext.Value `json:"openwopCost"`
	NodeCount  int            `json:"nodeCount"`
	EventCount int            `json:"eventCount"`
}

// Run is the run of a bundle. Values of the workflow's own are left out where they
// alone would fill it.
type Run struct {
	RunID         string         `json:"runId"`
	WorkflowID    string         `json:"workflowId"`
	Status        string         `json:"status"`
	StartedAt     string         `json:"startedAt,omitzero"`
	EndedAt       *string        `json:"endedAt"`
	Error         jsontext.Value `json:"error"`
	Inputs        jsontext.Value `json:"inputs,omitzero"`
	Variables     jsontext.Value `json:"variables,omitzero"`
	CurrentNodeID string         `json:"currentNodeId,omitzero"`
	NodeStates    jsontext.Value `json:"nodeStates,omitzero"`
}

// RunOf is what a run's detail says to a bundle, but for what a major writes in its
// own way: ids, the error, the states of the nodes.
func RunOf(d *host.RunDetail) Run {
	out := Run{
		WorkflowID: d.WorkflowID, Status: Status(d.Status), StartedAt: d.StartedAt, Error: jsontext.Value("null"),
		Inputs: d.Inputs, Variables: d.Variables, CurrentNodeID: d.CurrentNodeID,
	}
	if d.CompletedAt != "" {
		out.EndedAt = &d.CompletedAt
	}
	return out
}

// Status is a run's status in the seven words that the schema of a bundle has for it,
// in either major. The events and the states of the nodes say what it was.
func Status(status string) string {
	switch status {
	case run.WaitingInput:
		return "waiting-clarification"
	case run.WaitingExternal:
		return run.WaitingApproval
	case run.Paused, run.Cancelling:
		return run.Running
	}
	return status
}

package run

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/go-json-experiment/json/jsontext"
)

// Snapshot is the closed RunSnapshot (spec v2 runs.md §Snapshot): the fold of
// the log as the outside may see it.
type Snapshot struct {
	RunID                 string         `json:"runId"`
	WorkflowID            string         `json:"workflowId"`
	Status                string         `json:"status"`
	Owner                 jsontext.Value `json:"owner"`
	EventLogSchemaVersion int            `json:"eventLogSchemaVersion"`
	EngineVersion         int            `json:"engineVersion"`
	CurrentNodeID         string         `json:"currentNodeId,omitzero"`
	StartedAt             string         `json:"startedAt,omitzero"`
	CompletedAt           string         `json:"completedAt,omitzero"`
	Error                 jsontext.Value `json:"error,omitzero"`
	Tags                  jsontext.Value `json:"tags,omitzero"`
	Metadata              jsontext.Value `json:"metadata,omitzero"`
	Configurable          jsontext.Value `json:"configurable,omitzero"`
	Variables             jsontext.Value `json:"variables,omitzero"`
	Channels              jsontext.Value `json:"channels,omitzero"`
	NodeStates            jsontext.Value `json:"nodeStates,omitzero"`
	CompensationStatus    string         `json:"compensationStatus"`
}

// Stamp writes a time the way the wire does; empty for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(event.TimeLayout)
}

// era is the era of the log the state was folded from.
func (s *State) era() int {
	if s.Era == 0 {
		return event.LogEra
	}
	return s.Era
}

// Snapshot projects the state.
func (s *State) Snapshot() Snapshot {
	out := Snapshot{
		RunID: s.ID.String(), WorkflowID: s.WorkflowID, Status: s.Status(), Owner: event.Encode(s.Owner),
		EventLogSchemaVersion: s.era(), EngineVersion: event.EngineVersion,
		CurrentNodeID: s.CurrentNode(), StartedAt: Stamp(s.StartedAt), CompletedAt: Stamp(s.CompletedAt),
		Metadata: s.Metadata, Configurable: s.Configurable,
		Variables: s.publicVariables(), NodeStates: s.nodeStates(), CompensationStatus: s.CompensationStatus(),
	}
	if s.Error != nil {
		out.Error = errorObject(s.Error)
	}
	if s.Tags != nil {
		out.Tags = event.Encode(s.Tags)
	}
	if len(s.wf.Def.Channels) > 0 {
		out.Channels = s.channelValues(true)
	}
	return out
}

// errorObject is the snapshot's error: closed to code, message and details.
func errorObject(e *event.Error) jsontext.Value {
	c := *e
	c.Retryable = nil
	return event.Encode(c)
}

func (s *State) publicVariables() jsontext.Value {
	m := make(map[string]jsontext.Value, len(s.Variables))
	for name, v := range s.Variables {
		m[name] = v
		if decl, ok := s.wf.Variable(name); ok && decl.Sensitive {
			s.maskInto(m, name, v)
		}
	}
	for name, c := range s.Channels {
		if c.Loose {
			m[name] = c.shown()
		}
	}
	return encodeObject(m)
}

// nodeState is one entry of nodeStates; its shape is the host's own.
type nodeState struct {
	Status    string         `json:"status"`
	Visit     int            `json:"visit"`
	Attempt   int            `json:"attempt"`
	StartedAt string         `json:"startedAt,omitzero"`
	EndedAt   string         `json:"endedAt,omitzero"`
	WakesAt   string         `json:"wakesAt,omitzero"`
	Outputs   jsontext.Value `json:"outputs,omitzero"`
	Error     *event.Error   `json:"error,omitzero"`
	Interrupt *openInterrupt `json:"interrupt,omitzero"`
	Children  []childState   `json:"children,omitzero"`
}

type openInterrupt struct {
	InterruptID string         `json:"interruptId"`
	Kind        string         `json:"kind"`
	Key         string         `json:"key"`
	Data        jsontext.Value `json:"data"`
	ExpiresAt   string         `json:"expiresAt,omitzero"`
	Votes       int            `json:"votes,omitzero"`
}

type childState struct {
	RunID      string `json:"runId"`
	WorkflowID string `json:"workflowId"`
	Status     string `json:"status"`
}

func (s *State) nodeStates() jsontext.Value {
	m := map[string]jsontext.Value{}
	for i, n := range s.Nodes {
		if n.Visit == 0 && n.Phase == Idle {
			continue
		}
		v := nodeState{
			Status: string(n.Phase), Visit: n.Visit, Attempt: n.Attempt, StartedAt: Stamp(n.StartedAt),
			EndedAt: Stamp(n.EndedAt), WakesAt: Stamp(n.Due), Error: n.Error,
		}
		if v.Status == "" {
			v.Status = "pending"
		}
		if n.Outputs != nil {
			v.Outputs = encodeObject(s.visible(i))
		}
		if x := n.Interrupt; x != nil {
			v.Interrupt = &openInterrupt{
				InterruptID: x.ID.String(), Kind: x.Request.Kind, Key: x.Request.Key, Data: x.Request.Data,
				ExpiresAt: Stamp(x.ExpiresAt), Votes: len(x.Votes),
			}
		}
		for _, c := range n.Children {
			v.Children = append(v.Children, childState{c.RunID, c.WorkflowID, c.Status})
		}
		m[s.wf.Steps[i].Node.ID] = event.Encode(v)
	}
	return encodeObject(m)
}

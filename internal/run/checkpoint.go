package run

import (
	"fmt"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode writes the state as a checkpoint. What callers sent stays as they
// spelled it, so that a state is the same whether it comes from a checkpoint or
// from the log.
func (s *State) Encode() ([]byte, error) {
	return json.Marshal(s, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

// Decode reads a checkpoint of a run of a workflow.
func Decode(id ids.Run, wf *flow.Workflow, data []byte) (*State, error) {
	s := New(id, wf)
	s.Nodes, s.Links, s.Loops = nil, nil, nil
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("decode checkpoint of %s: %w", id, err)
	}
	if len(s.Nodes) != len(wf.Steps) || len(s.Links) != len(wf.Links) || len(s.Loops) != len(wf.Loops) {
		return nil, fmt.Errorf("decode checkpoint of %s: it belongs to another definition", id)
	}
	return s, nil
}

package host

import (
	"context"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json/jsontext"
)

// RunDetail is a run's snapshot with what the closed shape of this major has no
// member for and the wire of an older one does.
type RunDetail struct {
	run.Snapshot
	Seq        int64          // of the last event it is the fold of
	Inputs     jsontext.Value // as the outside may see them; nil for none
	Parent     ids.Run        // zero for a run that no run has started
	ParentNode string
}

// RunDetail reads a run as Snapshot does.
func (h *Host) RunDetail(ctx context.Context, c identity.Caller, id ids.Run) (RunDetail, error) {
	if err := h.admit(ctx, c, identity.RunsRead, id); err != nil {
		return RunDetail{}, err
	}
	s, err := h.state(ctx, id)
	if err != nil {
		return RunDetail{}, notFound(err)
	}
	return DetailOf(s)
}

// DetailOf is what a state says of its run.
func DetailOf(s *run.State) (RunDetail, error) {
	out := RunDetail{Snapshot: s.Snapshot(), Seq: s.Seq, Inputs: s.PublicInputs()}
	if p := s.Parent; p != nil {
		var err error
		if out.Parent, err = ids.ParseRun(p.RunID); err != nil {
			return RunDetail{}, err
		}
		out.ParentNode = p.NodeID
	}
	return out, nil
}

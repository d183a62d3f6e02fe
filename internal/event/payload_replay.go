package event

import (
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// Diverged is the payload of replay.diverged: where a replay does not say what
// its source said (spec v2 replay.md §Divergence). AtSequence is the source's.
type Diverged struct {
	SourceRunID     string    `json:"sourceRunId"`
	AtSequence      int64     `json:"atSequence"`
	OriginalEventID string    `json:"originalEventId,omitzero"` // empty where the source says nothing more
	DivergenceKind  string    `json:"divergenceKind"`           // output, extra or type-mismatch
	DivergencePoint string    `json:"divergencePoint"`          // type of the event that differs
	X               DivergedX `json:"x-fermata"`
}

// DivergedX names the replay's own event, for which the closed payload has no
// member: it is the one that follows.
type DivergedX struct {
	ReplayEventID string `json:"replayEventId"`
}

// ForkOptions are run options that a branch has in place of its source's. What
// is not given stays as it was.
type ForkOptions struct {
	Configurable jsontext.Value `json:"configurable,omitzero"`
	Tags         []string       `json:"tags,omitzero"` // not nil but empty for none at all
	Metadata     jsontext.Value `json:"metadata,omitzero"`
}

// IsZero reports whether nothing is given.
func (o *ForkOptions) IsZero() bool {
	return o == nil || o.Configurable == nil && o.Tags == nil && o.Metadata == nil
}

// Inherited is an event of a source as its fork carries it: the same type, node,
// payload, time and place, in a log of another run (spec v2 replay.md
// §Byte-equivalence of the prefix). Ids of events follow from run and sequence.
func (e *Event) Inherited(by ids.Run) Event {
	return Event{
		Run: by, Seq: e.Seq, Type: e.Type, NodeID: e.NodeID, Time: e.Time,
		Causation: e.Causation, Payload: e.Payload, Sealed: e.Sealed,
	}
}

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Input is everything one call of Type.Run is given. It belongs to that call
// and must not be kept.
type Input struct {
	RunID      string // tenant-bound, tenant/opaque
	TenantID   string
	WorkflowID string
	NodeID     string
	TypeID     string
	Name       string

	// Visit counts the times the run has come to this node, from 1; Attempt
	// counts the tries within the visit, from 0.
	Visit   int
	Attempt int

	// EffectKey identifies this visit's effect across retries, crashes and
	// replicas. Hand it to whatever is called outside as an idempotency key.
	EffectKey string

	// Now is the time of the run's turn.
	Now time.Time

	Config    json.RawMessage            // the node's config object, verbatim
	Inputs    map[string]json.RawMessage // the resolved input ports
	Variables map[string]json.RawMessage // the run's variables; read only

	// Wake says what a waiting node was woken by; nil on the first call of an
	// attempt.
	Wake *Wake

	// Scratch, if not nil, is a place for what a pure node makes of its own state,
	// to find it again when it is called again. It lasts no longer than the run
	// stays in memory, and must never be more than a shortcut.
	Scratch *any

	// Services is filled in by the host.
	Services Services

	writes []Write
	logs   []LogLine
}

// Services are the host's services a node may use during a call.
type Services struct {
	// Eval evaluates an expression over the run's scope (inputs, variables,
	// channels, nodes, run) and the extra names given.
	Eval func(source string, extra map[string]json.RawMessage) (json.RawMessage, error)

	// Guard lets the call pass a seam of the type's Seams, or returns the error to
	// fail with: in a replay nothing may leave the host (spec v2 replay.md
	// §Suppression). Call it with the context Run was given, before anything goes
	// out. Effect does so by itself. It is nil for a pure node.
	Guard func(ctx context.Context, seam string) error

	// Effect performs an effect at most once, as far as the other side lets that be
	// known, and returns its outcome: do's own, or the recorded one of whoever was
	// there before. While somebody else is at it, it waits. do runs under the seam's
	// guard. Its error is returned as it is, unless the effect is in doubt and may
	// not be repeated. It is nil for a pure node.
	Effect func(ctx context.Context, e Effect, do Perform) (json.RawMessage, error)

	// Credential resolves a credential that the node's config names in one of the
	// type's Credentials. It fails with credential_not_found, credential_forbidden
	// or credential_scope_unsupported. Whatever it returns is kept out of the run:
	// its material is masked in everything the call gives back. It is nil for a pure
	// node.
	Credential func(ctx context.Context, ref CredentialRef) (*Credential, error)

	// Chunk streams a piece of output to the run's subscribers at once. last
	// marks the end. It is nil for a pure node.
	Chunk func(text string, last bool) error
}

// Wake is why a waiting node is called again. State is what the node saved when
// it began to wait. Of the others, the one that fits is set.
type Wake struct {
	State    json.RawMessage
	Answer   *Answer
	Timer    bool
	Children []ChildResult // every child of this visit, in the order they were asked for

	// Fresh lists the positions in Children of those that have ended since the node
	// was called before; nil if that is not known.
	Fresh []int

	// Load reads the outcome (outputs, variables, error) of Children[i] once it
	// has ended. Children itself carries outcomes only while there are few of
	// them (at most 16), so that a node with thousands of children stays cheap.
	Load func(i int) (ChildResult, error)
}

// Answer is how an interrupt was resolved.
type Answer struct {
	InterruptID string
	Kind        string
	Value       json.RawMessage // the resume value; absent after a timeout
	Action      string          // approvals: accept, reject, refine, edit-accept; timeout for a deadline passed
	TimedOut    bool
	By          string // opaque id of who answered

	// Exchange is what was asked while an approval stayed open, oldest first. Of
	// a long exchange it is the newest part; the run's log holds all of it.
	Exchange []Said
}

// Said is one ask of an approval, or an answer to one.
type Said struct {
	By    string // opaque id of who said it
	At    time.Time
	Value json.RawMessage
}

// ChildResult is the state of one child run.
type ChildResult struct {
	RunID      string
	WorkflowID string
	Key        string
	Status     string // a run status; Ended says whether it is terminal
	Ended      bool
	Outputs    json.RawMessage
	Variables  map[string]json.RawMessage
	Error      *Error
}

// Write is a change to the run's variables or channels, applied with the result.
type Write struct {
	Variable string // set for a variable
	Channel  string // set for a channel
	Value    json.RawMessage

	// For a channel the workflow does not declare: its reducer, and the bounds
	// of what it keeps.
	Reducer string
}

// LogLine is one line a node adds to the run's log.
type LogLine struct {
	Level   string // debug, info, warn or error
	Message string
	Fields  map[string]any
}

// Bind decodes the node's config into v and then lays the resolved inputs over
// it, so that an input port overrides the config member of the same name.
func (in *Input) Bind(v any) error {
	if len(in.Config) > 0 {
		if err := json.Unmarshal(in.Config, v); err != nil {
			return Fail(CodeConfig, "config: %v", err)
		}
	}
	if len(in.Inputs) == 0 {
		return nil
	}
	b, err := json.Marshal(in.Inputs)
	if err != nil {
		return fmt.Errorf("inputs: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return Fail(CodeConfig, "inputs: %v", err)
	}
	return nil
}

// SetVariable sets a variable of the run when the result is recorded.
func (in *Input) SetVariable(name string, value any) error {
	b, err := encode(value)
	if err != nil {
		return err
	}
	in.writes = append(in.writes, Write{Variable: name, Value: b})
	return nil
}

// WriteChannel writes to a channel of the run when the result is recorded. A
// channel the workflow declares ignores reducer and uses its own.
func (in *Input) WriteChannel(name string, value any, reducer string) error {
	b, err := encode(value)
	if err != nil {
		return err
	}
	in.writes = append(in.writes, Write{Channel: name, Value: b, Reducer: reducer})
	return nil
}

// Log adds a line to the run's log when the result is recorded.
func (in *Input) Log(level, message string, fields map[string]any) {
	in.logs = append(in.logs, LogLine{level, message, fields})
}

// Recorded hands the host what the call asked to have written.
func (in *Input) Recorded() ([]Write, []LogLine) { return in.writes, in.logs }

func encode(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a value keeps its characters
	if err := enc.Encode(v); err != nil {
		return nil, Fail(CodeConfig, "value cannot be written as JSON: %v", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

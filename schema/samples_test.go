package schema_test

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// sample is a payload this host emits: with the least it can hold and with
// everything it can hold.
type sample struct {
	typ           event.Type
	minimal, full any
}

var (
	runID  = ids.Run{Tenant: "acme", Opaque: "01k8abcdefghjkmnpqrstvwxyz"}
	child  = "acme/01k8zyxwvutsrqpnmkjhgfedcb"
	waitID = "acme/0123456789abcdefghjkmnpqrs"
	at     = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
)

func (s sample) event(payload any) event.Event {
	return event.Event{Run: runID, Seq: 7, Type: s.typ, NodeID: "n1", Time: at, Causation: 6, Payload: event.Encode(payload)}
}

func raw(s string) jsontext.Value { return jsontext.Value(s) }

func subject(full bool) event.Subject {
	s := event.Subject{Issuer: "urn:acme:api-key", SubjectID: "k1", Tenant: "acme", Lane: "api-key", Kind: "user"}
	if full {
		actor := s
		s.Lane, s.KeyClass, s.Actor = "saml", "opaque-idp", &actor
	}
	return s
}

func fault(full bool) event.Error {
	e := event.Error{Code: "internal_error", Message: "It broke."}
	if full {
		yes := true
		e.Details, e.Retryable = map[string]any{"at": "here"}, &yes
	}
	return e
}

// samples returns one entry per type the payload structs of internal/event serve.
func samples() []sample {
	full, lean := fault(true), fault(false)
	resolved := event.Resolution{
		NodeID: "n1", InterruptID: waitID, Kind: "approval", Reason: "timeout", ResumeValue: raw(`{"action":"refine"}`),
		ResolvedBy: new(subject(true)), Decision: "granted", Action: "refine",
		RefineFeedback: raw(`{"scope":"section","sectionPath":"$.a","itemIds":["i"],"tags":["t"],"text":"more"}`), EditedArtifactData: raw(`[1]`),
		X: &event.ResolutionX{Eligibility: "listed", Via: "token", Request: "r"},
	}
	unresolved := event.Resolution{NodeID: "n1", InterruptID: waitID}
	return []sample{
		{event.RunStarted,
			event.Started{WorkflowID: "hello", Transport: "rest", EngineVersion: 1, Owner: event.Owner{Tenant: "acme", Subject: subject(false)}},
			event.Started{WorkflowID: "hello", Inputs: raw(`{"a":1}`), Transport: "mcp", EngineVersion: 1,
				Owner: event.Owner{Tenant: "acme", Workspace: "w1", Subject: subject(true)}, Tags: []string{"t"}, Metadata: raw(`{"k":[]}`),
				X: event.StartedX{WorkflowVersion: "1", WorkflowDigest: "d", Configurable: raw(`{"version":1}`), ScopeID: "s", CallbackURL: "https://a.example",
					Parent: &event.Parent{RunID: child, NodeID: "n", Depth: 1}}}},
		{event.RunCompleted, event.Completed{Outputs: raw(`{}`)}, event.Completed{Outputs: raw(`{"n":{"x":1}}`), DurationMs: 5}},
		{event.RunFailed, event.Failed{Error: lean}, event.Failed{Error: full, FailedNodeID: "n1", DurationMs: 5}},
		{event.RunCancelled, event.Cancelled{}, event.Cancelled{Reason: "parent-cancelled", CancelledBy: "k1", DurationMs: 5, ParentRunID: child}},
		{event.RunPaused, event.Paused{}, event.Paused{Reason: "lunch", DrainPolicy: "immediate", InterruptedNodeID: "n1", InterruptedAttempt: 1}},
		{event.RunResumed, event.Resumed{}, event.Resumed{Reason: "back"}},
		{event.NodeStarted, event.NodeStart{NodeID: "n1", TypeID: "core.delay"}, event.NodeStart{NodeID: "n1", TypeID: "core.delay", Attempt: 2}},
		{event.NodeCompleted, event.NodeDone{NodeID: "n1"},
			event.NodeDone{NodeID: "n1", Outputs: raw(`{"output":null}`), DurationMs: 5, X: &event.Routing{Edges: []string{"e1"}}}},
		{event.NodeFailed, event.NodeFail{NodeID: "n1", Error: lean, Attempts: 1},
			event.NodeFail{NodeID: "n1", Error: full, Attempts: 3, X: &event.Routing{Edges: []string{"e1"}}}},
		{event.NodeSkipped, event.NodeSkip{NodeID: "n1"}, event.NodeSkip{NodeID: "n1", Reason: "condition"}},
		{event.NodeCancelled, event.NodeCancel{NodeID: "n1"}, event.NodeCancel{NodeID: "n1", Reason: "cancelled"}},
		{event.NodeRetried, event.NodeRetry{NodeID: "n1", Attempt: 1}, event.NodeRetry{NodeID: "n1", Attempt: 2, DelayMs: 100, LastError: &full}},
		{event.NodeSuspended, event.NodeSuspend{NodeID: "n1", InterruptID: waitID, Kind: "approval", Key: "k"},
			event.NodeSuspend{NodeID: "n1", InterruptID: waitID, Kind: "low-confidence", Reason: "low-confidence", Key: "k", X: &event.SuspendX{State: raw(`1`)}}},
		{event.NodeResumed, event.NodeResume{NodeID: "n1"}, event.NodeResume{NodeID: "n1", InterruptID: waitID, ResumeValue: raw(`null`)}},
		{event.NodeDispatched, event.NodeDispatch{ChildRunID: child, ChildWorkflowID: "w"},
			event.NodeDispatch{ChildRunID: child, ChildWorkflowID: "w", ChildStatus: "completed"}},
		{event.InterruptRequested, event.Interrupt{Kind: "custom", Key: "k", Data: raw(`{"customKind":"x"}`)},
			event.Interrupt{Kind: "approval", Key: "k", ResumeSchema: raw(`{"type":"object"}`), TimeoutMs: new(int64(9)),
				Data: raw(`{"artifactId":"a","artifactType":"doc","title":"t","actions":["accept","reject"]}`)}},
		{event.InterruptResolved, unresolved, resolved},
		{event.ApprovalReceived, unresolved, resolved},
		{event.ChannelWritten, event.Channel{Channel: "c", Reducer: "message", WrittenAt: "2026-01-02T03:04:05.678Z"},
			event.Channel{Channel: "c", Value: raw(`{"v":1}`), Reducer: "vendor.acme.sum", NodeID: "n1", WrittenAt: "2026-01-02T03:04:05Z", SchemaVersion: 2}},
		{event.OutputChunk, event.Chunk{NodeID: "n1", RunID: runID.String()},
			event.Chunk{NodeID: "n1", RunID: runID.String(), Chunk: "hi", IsLast: true, Channel: "main",
				Meta: raw(`{"finishReason":"stop","model":"m","usage":{"promptTokens":1},"providerExtensions":{"a":1}}`)}},
		{event.VariableChanged, event.Variable{Name: "v"}, event.Variable{Name: "v", Next: raw(`[]`), NodeID: "n1"}},
		{event.LogAppended, event.Log{Level: "info", Message: ""},
			event.Log{Level: "error", Message: "m", NodeID: "n1", Fields: map[string]any{"k": 1}, X: &event.Mark{Wait: &event.WaitMark{Until: at, State: raw(`{}`)}}}},
		{event.CompensationRequested, event.Undoing{CompensationID: waitID}, event.Undoing{CompensationID: waitID, NodeID: "n1", EffectID: waitID, Attempt: 1, OrderingModel: "reverse-completion"}},
		{event.CompensationFailed, event.Halt{CompensationID: waitID},
			event.Halt{CompensationID: waitID, NodeID: "n1", EffectID: waitID, Attempt: 1, OrderingModel: "reverse-completion", Reason: event.RetriesExhausted}},
		{event.AuthorizationDecided, event.Authorized{Principal: "p", Action: "a", Resource: "r"},
			event.Authorized{Principal: "p", Action: "a", Resource: "r", Allowed: true, Reason: "listed"}},
		{event.LoopbackLimit, event.Loopback{NodeID: "n1", Iterations: 1, Limit: 1}, event.Loopback{NodeID: "n1", Iterations: 6, Limit: 5}},
		{event.CapBreached, event.Breach{Kind: "run-duration", Limit: 0, Observed: 1}, event.Breach{Kind: "node-executions", Limit: 100, Observed: 101, NodeID: "n1"}},
	}
}

package event

// Type is a registered protocol event type (spec v2 events.md §Types).
type Type string

// The types this host emits.
const (
	RunStarted         Type = "run.started"
	RunCompleted       Type = "run.completed"
	RunFailed          Type = "run.failed"
	RunCancelled       Type = "run.cancelled"
	RunPaused          Type = "run.paused"
	RunResumed         Type = "run.resumed"
	NodeStarted        Type = "node.started"
	NodeCompleted      Type = "node.completed"
	NodeFailed         Type = "node.failed"
	NodeSuspended      Type = "node.suspended"
	NodeResumed        Type = "node.resumed"
	NodeRetried        Type = "node.retried"
	NodeSkipped        Type = "node.skipped"
	NodeCancelled      Type = "node.cancelled"
	NodeDispatched     Type = "node.dispatched"
	ApprovalReceived   Type = "approval.received"
	ApprovalOverridden Type = "approval.overridden"
	ApprovalRequested  Type = "approval.requested"
	ApprovalGranted    Type = "approval.granted"
	ApprovalRejected   Type = "approval.rejected"

	ClarificationRequested Type = "clarification.requested"
	ClarificationResolved  Type = "clarification.resolved"

	InterruptRequested Type = "interrupt.requested"
	InterruptResolved  Type = "interrupt.resolved"
	ChannelWritten     Type = "channel.written"
	OutputChunk        Type = "output.chunk"
	VariableChanged    Type = "variable.changed"
	LogAppended        Type = "log.appended"
	LoopbackLimit      Type = "workflow.loopback-limit"
	CapBreached        Type = "cap.breached"

	CompensationRequested Type = "compensation.requested"
	CompensationStarted   Type = "compensation.started"
	CompensationCompleted Type = "compensation.completed"
	CompensationFailed    Type = "compensation.failed"
	CompensationPaused    Type = "compensation.paused"
	CompensationManual    Type = "compensation.manual-intervention-required"
	AuthorizationDecided  Type = "authorization.decided"
	EgressDecided         Type = "egress.decided"
	ReplayDiverged        Type = "replay.diverged"
)

// Tier says in which stream modes beside debug an event appears.
type Tier uint8

// Debug events appear in debug only; Updates in updates too; Messages in
// messages, under the frame name ai.message.chunk.
const (
	Debug Tier = iota
	Updates
	Messages
)

// Row is one registered type.
type Row struct {
	Type Type
	V1   string // the name a v1 log and the v1 wire use
	Tier Tier
}

// registry holds every registered type once. The v1 name is given only where
// it differs; init fills in the rest and checks that the map is a bijection.
var registry = []Row{
	{RunStarted, "", Updates}, {RunCompleted, "", Updates}, {RunFailed, "", Updates},
	{RunCancelled, "", Updates}, {"run.resume-started", "run.resuming", Updates},
	{RunPaused, "", Updates}, {RunResumed, "", Updates},
	{"run.restored-from-snapshot", "", Debug}, {"run.dead-lettered", "run.dead_lettered", Updates},
	{NodeStarted, "", Debug}, {NodeCompleted, "", Updates}, {NodeFailed, "", Updates},
	{NodeSuspended, "", Updates}, {"node.suspend-failed", "", Debug}, {NodeResumed, "", Debug},
	{NodeRetried, "", Debug}, {NodeSkipped, "", Updates}, {NodeCancelled, "", Updates},
	{NodeDispatched, "", Updates},
	{ApprovalRequested, "", Updates}, {ApprovalReceived, "", Updates}, {ApprovalGranted, "", Updates},
	{ApprovalRejected, "", Updates}, {ApprovalOverridden, "", Updates},
	{ClarificationRequested, "", Updates}, {ClarificationResolved, "", Updates},
	{InterruptRequested, "", Updates}, {InterruptResolved, "", Updates},
	{ChannelWritten, "", Debug}, {"channel.presence", "", Debug}, {"context.summarized", "", Debug},
	{"artifact.created", "", Updates}, {OutputChunk, "", Messages}, {VariableChanged, "", Debug},
	{LogAppended, "", Debug}, {"version.pinned", "", Debug}, {"workflow.restored", "", Debug},
	{LoopbackLimit, "", Debug}, {"workflow.stalled", "", Debug}, {CapBreached, "", Debug},
	{"lease.acquired", "", Debug}, {"lease.renewed", "", Debug}, {"lease.lost", "", Debug},
	{"lease.handed-off", "", Debug},
	{ReplayDiverged, "", Debug}, {"replay.diverged-at-refusal", "replay.divergedAtRefusal", Debug},
	{"agent.reasoned", "", Debug}, {"agent.reasoning-delta", "agent.reasoning.delta", Debug},
	{"agent.prompt-resolved", "agent.promptResolved", Debug}, {"agent.tool-called", "agent.toolCalled", Debug},
	{"agent.tool-returned", "agent.toolReturned", Debug}, {"agent.handoff", "", Debug},
	{"agent.decided", "", Debug}, {"agent.verified", "", Debug},
	{"agent.invocation-started", "agent.invocation.started", Debug},
	{"agent.invocation-completed", "agent.invocation.completed", Debug},
	{"agent.memory-consolidated", "agent.memory.consolidated", Debug},
	{"provider.usage", "", Debug}, {"prompt.composed", "", Debug},
	{"model.capability-substituted", "model.capability.substituted", Debug},
	{"model.capability-insufficient", "model.capability.insufficient", Debug},
	{"envelope.retry-attempted", "envelope.retry.attempted", Debug},
	{"envelope.retry-exhausted", "envelope.retry.exhausted", Debug},
	{"envelope.refusal", "", Debug}, {"envelope.truncated", "", Debug},
	{"envelope.nl-to-format-engaged", "envelope.nlToFormat.engaged", Debug},
	{"envelope.recovery-applied", "envelope.recovery.applied", Debug},
	{"eval.started", "", Updates}, {"eval.scored", "", Updates}, {"eval.completed", "", Updates},
	{"deployment.promoted", "", Updates}, {"deployment.rolled-back", "", Updates},
	{"deployment.canary-adjusted", "deployment.canary.adjusted", Updates},
	{"deployment.state-changed", "deployment.state.changed", Updates},
	{"roster.run-initiated", "roster.run.initiated", Debug},
	{"tool.session-opened", "tool.session.opened", Debug}, {"tool.session-closed", "tool.session.closed", Debug},
	{EgressDecided, "", Debug},
	{"trigger.subscription-state-changed", "trigger.subscription.state.changed", Debug},
	{"trigger.delivery-attempted", "trigger.delivery.attempted", Debug},
	{"budget.reserved", "", Debug}, {"budget.consumed", "", Debug},
	{"budget.threshold-crossed", "budget.threshold.crossed", Debug}, {"budget.exhausted", "", Debug},
	{"orchestrator.decided", "runOrchestrator.decided", Debug},
	{"dispatch.fanned-out", "core.dispatch.fanOut", Debug}, {"dispatch.joined", "core.dispatch.join", Debug},
	{"conversation.opened", "", Debug}, {"conversation.exchanged", "", Debug}, {"conversation.closed", "", Debug},
	{"memory.compacted", "", Debug}, {"memory.written", "", Debug}, {"commitment.fired", "", Debug},
	{"workspace.updated", "", Updates},
	{"workflow-chain.event", "core.workflowChain.event", Debug},
	{"workflow-chain.confidence-escalated", "core.workflowChain.confidence-escalated", Debug},
	{"connector.authorized", "", Debug}, {"connector.auth-expired", "connector.auth_expired", Debug},
	{AuthorizationDecided, "", Debug}, {"negotiation.decided", "", Debug},
	{"proposal.created", "", Debug}, {"proposal.activated", "", Debug},
	{"goal.evaluated", "", Debug}, {"goal.closed", "", Debug}, {"import.applied", "", Debug},
	{"voice.speech-start", "voice.speech_start", Debug}, {"voice.transcript", "", Debug},
	{"voice.endpoint-candidate", "voice.endpoint_candidate", Debug},
	{"voice.turn-commit", "voice.turn_commit", Debug},
	{"voice.synthesis-chunk", "voice.synthesis_chunk", Debug},
	{"voice.barge-in", "voice.barge_in", Debug}, {"voice.cancelled", "", Debug},
	{CompensationRequested, "", Debug}, {CompensationStarted, "", Debug},
	{CompensationCompleted, "", Debug}, {CompensationFailed, "", Debug}, {CompensationPaused, "", Debug},
	{CompensationManual, "compensation.manual_intervention_required", Debug},
}

var (
	byType = make(map[Type]Row, len(registry))
	byV1   = make(map[string]Row, len(registry))
)

func init() {
	for i, r := range registry {
		if r.V1 == "" {
			r.V1 = string(r.Type)
			registry[i] = r
		}
		if _, dup := byType[r.Type]; dup {
			panic("event: type registered twice: " + string(r.Type))
		}
		if _, dup := byV1[r.V1]; dup {
			panic("event: v1 name registered twice: " + r.V1)
		}
		byType[r.Type], byV1[r.V1] = r, r
	}
}

// Lookup returns the registered row of a type.
func Lookup(t Type) (Row, bool) {
	r, ok := byType[t]
	return r, ok
}

// LookupV1 returns the row whose v1 name is given.
func LookupV1(name string) (Row, bool) {
	r, ok := byV1[name]
	return r, ok
}

// Rows returns the registry in its own order. The caller must not change it.
func Rows() []Row { return registry }

// Terminal reports whether t ends a run: a log has at most one such event, and
// nothing follows it but the undoing of the run's effects.
func (t Type) Terminal() bool {
	return t == RunCompleted || t == RunFailed || t == RunCancelled
}

// InUpdates reports whether t appears in the updates stream mode.
func (t Type) InUpdates() bool { return byType[t].Tier == Updates }

// InMessages reports whether t appears in the messages stream mode.
func (t Type) InMessages() bool { return byType[t].Tier == Messages }

package problem

import "net/http"

// Code is a registered error code (spec v2 errors.md).
type Code string

// Row is one registered code: the status it is always answered with, and
// whether a client may retry the same request unchanged.
type Row struct {
	Code      Code
	Status    int
	Retriable bool
}

// The codes fermata itself returns or records. The table below holds every
// registered code, so that an error that crosses the wire from elsewhere
// (a child run, a remote host) is recognised too.
const (
	ValidationError            Code = "validation_error"
	UnsupportedStreamMode      Code = "unsupported_stream_mode"
	ProtocolVersionMismatch    Code = "protocol_version_mismatch"
	ProtocolVersionUnsupported Code = "protocol_version_unsupported"
	Unauthenticated            Code = "unauthenticated"
	KeyRevoked                 Code = "key_revoked"
	InterruptTokenInvalid      Code = "interrupt_token_invalid"
	CredentialRevoked          Code = "credential_revoked"
	IdentityUnverified         Code = "identity_unverified"
	IdentityUnresolvable       Code = "identity_unresolvable"
	AudienceMismatch           Code = "audience_mismatch"
	CredentialLifetimeExceeded Code = "credential_lifetime_exceeded"
	DelegationExpired          Code = "delegation_expired"
	DelegationChainTooLong     Code = "delegation_chain_too_long"
	DelegationChainCyclic      Code = "delegation_chain_cyclic"
	DelegationScopeAmplified   Code = "delegation_scope_amplified"
	SenderConstraintMissing    Code = "sender_constraint_missing"
	Forbidden                  Code = "forbidden"
	IDTenantMismatch           Code = "id_tenant_mismatch"
	EgressDenied               Code = "egress_denied"
	NotFound                   Code = "not_found"
	InterruptAlreadyResolved   Code = "interrupt_already_resolved"
	RunTerminal                Code = "run_terminal"
	RunStateConflict           Code = "run_state_conflict"
	RunAlreadyActive           Code = "run_already_active"
	VersionConflict            Code = "version_conflict"
	IdempotencyKeyInvalid      Code = "idempotency_key_invalid"
	IdempotencyKeyMismatch     Code = "idempotency_key_mismatch"
	IdempotencyInFlight        Code = "idempotency_in_flight"
	InterruptCancelled         Code = "interrupt_cancelled"
	InterruptExpired           Code = "interrupt_expired"
	RunExpired                 Code = "run_expired"
	PayloadTooLarge            Code = "payload_too_large"
	StorageLimitExceeded       Code = "storage_limit_exceeded"
	WebhookEndpointUnverified  Code = "webhook_endpoint_unverified"
	WebhookURLRejected         Code = "webhook_url_rejected"
	UnsupportedMediaType       Code = "unsupported_media_type"
	ApprovalRejected           Code = "approval_rejected"
	CapabilityNotProvided      Code = "capability_not_provided"
	CapabilityRequired         Code = "capability_required"
	LoopLimitExceeded          Code = "loop_limit_exceeded"
	NodeConfigInvalid          Code = "node_config_invalid"
	RecursionLimitExceeded     Code = "recursion_limit_exceeded"
	RunTimeout                 Code = "run_timeout"
	RateLimited                Code = "rate_limited"
	InternalError              Code = "internal_error"
	EventTypeUnmapped          Code = "event_type_unmapped"
	PayloadUnprojectable       Code = "payload_unprojectable"
	UpstreamUnavailable        Code = "upstream_unavailable"
	ServiceUnavailable         Code = "service_unavailable"
	MockProviderForbidden      Code = "mock_provider_forbidden"
	ForceEngineForbidden       Code = "force_engine_version_forbidden"
	CredentialForbidden        Code = "credential_forbidden"
	CredentialNotFound         Code = "credential_not_found"
	CredentialScopeUnsupported Code = "credential_scope_unsupported"
	ClientVersionUnsupported   Code = "client_version_unsupported"
	ForkPointInvalid           Code = "fork_point_invalid"
	ReplaySourceMissing        Code = "replay_source_missing"
)

// groups lists the registry by status; retriable codes are named apart.
var groups = map[int][]Code{
	http.StatusBadRequest: {
		"connection_provider_unresolved", "connector_action_unresolved", CredentialScopeUnsupported,
		DelegationChainCyclic, DelegationChainTooLong, IdempotencyKeyInvalid,
		"interop_version_unsupported", "oauth_provider_unsupported", "oauth_scope_unsupported",
		"pack_dependency_cycle", "pack_engine_unsupported", "pack_integrity_failure", "pack_kind_invalid",
		"pack_lockfile_incomplete", "pack_peer_dependency_missing", "pack_peer_dependency_undefined",
		"pack_signature_invalid", "pack_validation_failed", ProtocolVersionMismatch,
		"schedule_horizon_exceeded", "sub_chain_cycle", "sub_chain_depth_exceeded", "unsupported_runtime",
		UnsupportedStreamMode, "until_in_past", ValidationError, WebhookEndpointUnverified,
		WebhookURLRejected,
	},
	http.StatusUnauthorized: {
		AudienceMismatch, "connector_auth_declined", "connector_auth_expired",
		CredentialLifetimeExceeded, CredentialRevoked, DelegationExpired, IdentityUnresolvable,
		IdentityUnverified, InterruptTokenInvalid, KeyRevoked, SenderConstraintMissing,
		Unauthenticated,
	},
	http.StatusForbidden: {
		CredentialForbidden, "credential_scope_forbidden", DelegationScopeAmplified, EgressDenied,
		Forbidden, ForceEngineForbidden, IDTenantMismatch, MockProviderForbidden,
		"pack_namespace_unauthorized", "run_forbidden", "sandbox_capability_denied",
		"sandbox_escape_attempt", "workspace_membership_required",
	},
	http.StatusNotFound: {
		CredentialNotFound, "interrupt_not_found", NotFound, "pack_version_not_found",
		ReplaySourceMissing, "signature_not_available",
	},
	http.StatusNotAcceptable: {ProtocolVersionUnsupported},
	http.StatusConflict: {
		"connection_provider_conflict", "envelope_correlation_conflict", IdempotencyInFlight,
		IdempotencyKeyMismatch, InterruptAlreadyResolved, "pack_dependency_conflict",
		"pack_integrity_mismatch", "replay_context_summary_unavailable", "replay_diverged_at_refusal",
		"replay_memory_snapshot_unavailable", RunAlreadyActive, RunStateConflict, RunTerminal,
		VersionConflict, "workspace_conflict",
	},
	http.StatusGone:                  {InterruptCancelled, InterruptExpired, RunExpired},
	http.StatusRequestEntityTooLarge: {PayloadTooLarge, "workspace_too_large"},
	http.StatusUnsupportedMediaType:  {UnsupportedMediaType},
	http.StatusUnprocessableEntity: {
		ApprovalRejected, "budget_exhausted", "budget_model_denied", CapabilityNotProvided,
		CapabilityRequired, "connection_auth_metadata_mismatch", "credential_required", "envelope_invalid",
		"envelope_refusal", "envelope_truncation_unrecoverable", "eval_gate_unmet", ForkPointInvalid,
		LoopLimitExceeded, "mcp_mrtr_rounds_exceeded", NodeConfigInvalid, "pack_runtime_requirement_unmet",
		"provider_policy_denied", RecursionLimitExceeded, "residency_unavailable", RunTimeout,
		"sandbox_invocation_error", "sandbox_memory_exceeded", "sandbox_timeout", StorageLimitExceeded,
		"token_budget_exceeded", "unknown_envelope_kind", "unknown_schema_version",
	},
	http.StatusUpgradeRequired:     {ClientVersionUnsupported},
	http.StatusTooManyRequests:     {RateLimited},
	http.StatusInternalServerError: {EventTypeUnmapped, InternalError, "pack_load_failure", PayloadUnprojectable},
	http.StatusNotImplemented:      {"credential_unavailable"},
	http.StatusBadGateway:          {"mcp_error", UpstreamUnavailable},
	http.StatusServiceUnavailable:  {"pack_registry_unreachable", "runner_unavailable", ServiceUnavailable},
}

var retriable = map[Code]bool{
	"residency_unavailable": true, RateLimited: true, InternalError: true,
	"pack_registry_unreachable": true, "runner_unavailable": true,
	UpstreamUnavailable: true, ServiceUnavailable: true,
}

var table = func() map[Code]Row {
	t := make(map[Code]Row, 128)
	for status, codes := range groups {
		for _, c := range codes {
			t[c] = Row{Code: c, Status: status, Retriable: retriable[c]}
		}
	}
	return t
}()

// Lookup returns the registered row of a code.
func Lookup(c Code) (Row, bool) {
	r, ok := table[c]
	return r, ok
}

// Rows returns a copy of the whole registry, in no particular order.
func Rows() []Row {
	out := make([]Row, 0, len(table))
	for _, r := range table {
		out = append(out, r)
	}
	return out
}

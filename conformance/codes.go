package conformance

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"slices"
	"strings"
)

// codesOf is the registry of error codes with the status each is answered with
// (spec v2 errors.md §Codes by HTTP status), by status.
var codesOf = map[int]string{
	400: `connection_provider_unresolved connector_action_unresolved credential_scope_unsupported delegation_chain_cyclic
		delegation_chain_too_long idempotency_key_invalid interop_version_unsupported oauth_provider_unsupported
		oauth_scope_unsupported pack_dependency_cycle pack_engine_unsupported pack_integrity_failure pack_kind_invalid
		pack_lockfile_incomplete pack_peer_dependency_missing pack_peer_dependency_undefined pack_signature_invalid
		pack_validation_failed protocol_version_mismatch schedule_horizon_exceeded sub_chain_cycle sub_chain_depth_exceeded
		unsupported_stream_mode until_in_past validation_error webhook_url_rejected webhook_endpoint_unverified unsupported_runtime`,
	401: `audience_mismatch connector_auth_expired connector_auth_declined credential_revoked credential_lifetime_exceeded
		delegation_expired identity_unresolvable identity_unverified interrupt_token_invalid key_revoked
		sender_constraint_missing unauthenticated`,
	403: `credential_forbidden credential_scope_forbidden delegation_scope_amplified egress_denied forbidden
		force_engine_version_forbidden id_tenant_mismatch mock_provider_forbidden pack_namespace_unauthorized run_forbidden
		sandbox_capability_denied sandbox_escape_attempt workspace_membership_required`,
	404: `credential_not_found interrupt_not_found not_found pack_version_not_found replay_source_missing signature_not_available`,
	406: `protocol_version_unsupported`,
	409: `connection_provider_conflict envelope_correlation_conflict idempotency_in_flight idempotency_key_mismatch
		interrupt_already_resolved pack_dependency_conflict pack_integrity_mismatch replay_context_summary_unavailable
		replay_diverged_at_refusal replay_memory_snapshot_unavailable run_already_active run_terminal run_state_conflict
		version_conflict workspace_conflict`,
	410: `interrupt_cancelled interrupt_expired run_expired`,
	413: `payload_too_large workspace_too_large`,
	415: `unsupported_media_type`,
	422: `approval_rejected budget_exhausted budget_model_denied capability_not_provided capability_required
		connection_auth_metadata_mismatch credential_required envelope_invalid envelope_refusal
		envelope_truncation_unrecoverable eval_gate_unmet fork_point_invalid loop_limit_exceeded mcp_mrtr_rounds_exceeded
		node_config_invalid pack_runtime_requirement_unmet provider_policy_denied recursion_limit_exceeded
		residency_unavailable run_timeout sandbox_invocation_error sandbox_memory_exceeded sandbox_timeout
		storage_limit_exceeded token_budget_exceeded unknown_envelope_kind unknown_schema_version`,
	426: `client_version_unsupported`,
	429: `rate_limited`,
	500: `event_type_unmapped internal_error pack_load_failure payload_unprojectable`,
	501: `credential_unavailable`,
	502: `mcp_error upstream_unavailable`,
	503: `pack_registry_unreachable runner_unavailable service_unavailable`,
}

var vendorCode = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*\.[a-z][a-z0-9_]*$`)

// registered returns the statuses a code may be answered with; a vendor's code
// may be answered with any.
func registered(code string) (statuses []int, vendor bool) {
	if vendorCode.MatchString(code) && !strings.HasPrefix(code, "openwop.") {
		return nil, true
	}
	for status, codes := range codesOf {
		if slices.Contains(strings.Fields(codes), code) {
			statuses = append(statuses, status)
		}
	}
	return statuses, false
}

func gunzip(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(r, maxAnswer))
	return out
}

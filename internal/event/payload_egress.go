package event

// Egress is the payload of egress.decided: whether an outbound call may carry a
// credential (spec v2 schemas: credential-provenance). It holds nothing of the
// credential, and of the call only the host it goes to.
type Egress struct {
	Decision           string `json:"decision"` // allowed, denied or downgraded
	Destination        string `json:"destination"`
	CredentialID       string `json:"credentialId,omitzero"`
	Reason             string `json:"reason,omitzero"`
	AuditCorrelationID string `json:"auditCorrelationId,omitzero"`
}

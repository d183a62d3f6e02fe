package identity

// Proofs of delegation that a lane may accept (spec v2 identity.md §2.4).
const (
	ProofDPoP = "dpop"
	ProofMTLS = "mtls-key-binding"
)

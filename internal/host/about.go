package host

import (
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// SigningKey is a public key that discovery lists: whoever holds the private part
// signs certification bundles of this host (spec v2 conformance.md §Bundle v3). A
// retired key stays listed.
type SigningKey struct {
	KeyID     string `json:"keyId"`
	Alg       string `json:"alg"`       // ed25519
	PublicKey string `json:"publicKey"` // 32 bytes in base64url
	Use       string `json:"use,omitzero"`
	RetiredAt string `json:"retiredAt,omitzero"` // RFC 3339
}

// Build identifies the program that runs: kind is image-digest, commit or
// artifact-sha256.
type Build struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// About is what a host says of itself beside discovery: what a certification
// bundle has to record, and what discovery may not hold (spec v2
// security-defaults.md §Relaxations).
type About struct {
	Name        string    `json:"name"`
	Version     string    `json:"version"`
	Build       *Build    `json:"build,omitzero"`
	Relaxations []Relaxed `json:"relaxations"`
}

// Relaxed is a relaxation as a bundle records it, and the setting behind it.
type Relaxed struct {
	Obligation string `json:"obligation"` // the family it belongs to, a dot, its name
	Durability string `json:"durability"` // deployment: it holds while the process was started with the setting
	Reason     string `json:"reason"`
	Setting    string `json:"setting"`
}

// About tells a caller with manifest:read.
func (h *Host) About(c identity.Caller) (About, error) {
	if err := h.allow(c, identity.ManifestRead); err != nil {
		return About{}, err
	}
	a := About{Name: implementation, Version: h.cfg.Version, Relaxations: []Relaxed{}}
	for _, r := range h.cfg.Relaxations {
		a.Relaxations = append(a.Relaxations, Relaxed{
			Obligation: r.Family + "." + r.Name, Durability: "deployment", Reason: r.Effect, Setting: r.Setting,
		})
	}
	if h.cfg.Build != nil {
		b, err := h.cfg.Build()
		if err != nil {
			return About{}, problem.Internal(err)
		}
		a.Build = &b
	}
	return a, nil
}

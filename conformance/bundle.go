package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-run/fermata/schema"
)

// SuiteName is what the bundles of this suite call it. It is not the name of the
// protocol's own suite: a bundle says which program looked.
const SuiteName = "fermata-conformance"

// SpecArtifacts is the revision of the protocol text this suite is written after.
const SpecArtifacts = "2.0.9"

// Bundle is a certification bundle, version 3 (spec v2 conformance.md §Bundle v3;
// schema certification-bundle).
type Bundle struct {
	Version     string       `json:"bundleVersion"`
	GeneratedAt string       `json:"generatedAt"`
	Suite       BundleSuite  `json:"suite"`
	Host        BundleHost   `json:"host"`
	Discovery   BundleDoc    `json:"discovery"`
	Claimed     []Claim      `json:"claimedProfiles"`
	Results     BundleResult `json:"results"`

	WitnessSHA256  string        `json:"witnessSha256"`
	AssertionCount int           `json:"assertionCount"`
	Detail         *BundleDetail `json:"detail,omitempty"`
	Signature      Signature     `json:"signature"`
	Verifier       *Signature    `json:"verifierSignature,omitempty"`
}

// BundleSuite names the program that looked.
type BundleSuite struct {
	Name          string `json:"name"`
	Version       string `json:"version"`
	TargetMajor   int    `json:"targetMajor"`
	SpecArtifacts string `json:"specArtifactsVersion"`
}

// BundleHost names the program that was looked at.
type BundleHost struct {
	Name        string       `json:"name"`
	Version     string       `json:"version"`
	Vendor      string       `json:"vendor,omitempty"`
	Build       Build        `json:"build"`
	KeyID       string       `json:"signingKeyId,omitempty"`
	Relaxations []Relaxation `json:"relaxations,omitempty"`
}

// Build identifies a build: kind is image-digest, commit or artifact-sha256.
type Build struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Relaxation is a protection the operator had loosened. Obligation is the family
// it belongs to, a dot, and its name; Durability is session, deployment or persisted.
type Relaxation struct {
	Obligation string `json:"obligation"`
	Durability string `json:"durability"`
	Reason     string `json:"reason"`
}

// BundleDoc is the discovery document as it was. SHA256 is of its canonical JSON.
type BundleDoc struct {
	URL              string          `json:"url"`
	SHA256           string          `json:"sha256"`
	ProtocolVersions []string        `json:"protocolVersions"`
	PreferredVersion string          `json:"preferredVersion"`
	Document         json.RawMessage `json:"document,omitempty"`
}

// Claim is a profile the host claims, and whether the evidence carries it.
type Claim struct {
	ID        string `json:"id"`
	Tier      string `json:"evidenceTier"` // self, steward or independent
	Witnesses int    `json:"witnessCount"`
	Certified bool   `json:"certified"`
}

// BundleResult is the ledger: one row for each requirement.
type BundleResult struct {
	Totals BundleTotals `json:"totals"`
	Rows   []Row        `json:"requirements"`
}

// BundleTotals counts rows by result.
type BundleTotals struct {
	Pass         int `json:"executedPass"`
	Fail         int `json:"executedFail"`
	Skipped      int `json:"skipped"`
	Inapplicable int `json:"inapplicable"`
	Blocked      int `json:"blocked"`
}

// BundleDetail repeats the rows that are no pass, for people.
type BundleDetail struct {
	NonPass []NonPass `json:"nonPass"`
}

// NonPass is one of them.
type NonPass struct {
	ID     string `json:"id"`
	Result string `json:"result"`
	Reason string `json:"reason"`
}

// Signature is an Ed25519 attestation. Over is empty for a verifier's.
type Signature struct {
	Alg   string   `json:"alg"`
	KeyID string   `json:"keyId"`
	Sig   string   `json:"sig"`
	Over  []string `json:"over,omitempty"`
}

// Tiers of evidence.
const (
	TierSelf        = "self"
	TierSteward     = "steward"
	TierIndependent = "independent"
)

// Certificate says how a report becomes a bundle.
type Certificate struct {
	Signer      *Signer
	Verifier    *Signer // of an independent party; makes the tier independent
	Tier        string  // self if empty
	Build       Build   // empty: what the host says of itself
	Relaxations []Relaxation
	Secrets     []string // are blanked wherever a reason quotes them
}

// Certify makes a signed bundle of the report of a whole run.
func Certify(r *Report, c Certificate) (*Bundle, error) {
	b, err := draft(r, c)
	if err != nil {
		return nil, err
	}
	if b.Signature.Sig, err = c.Signer.sign(b); err != nil {
		return nil, err
	}
	if c.Verifier != nil {
		sig, err := c.Verifier.sign(b)
		if err != nil {
			return nil, err
		}
		b.Verifier = &Signature{Alg: "ed25519", KeyID: c.Verifier.KeyID, Sig: sig}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	if err := schema.Validate("certification-bundle", text); err != nil {
		return nil, fmt.Errorf("the bundle is malformed: %w", err)
	}
	return b, nil
}

func draft(r *Report, c Certificate) (*Bundle, error) {
	if r.TargetMajor != 2 {
		return nil, errors.New("a bundle is about major 2")
	}
	build := c.Build
	if build == (Build{}) && r.Host.Build != nil {
		build = *r.Host.Build
	}
	tier := or(c.Tier, TierSelf)
	if c.Verifier != nil {
		tier = TierIndependent
	}
	switch {
	case r.Filter != "":
		return nil, errors.New("a filtered run proves no profile: certify a whole one")
	case r.discovery == nil:
		return nil, errors.New("discovery could not be read, so there is nothing to certify")
	case build.Kind == "" || build.ID == "":
		return nil, errors.New("the host does not say which build it is: give its kind and id")
	case c.Signer == nil:
		return nil, errors.New("a bundle needs a signing key")
	case tier == TierIndependent && (c.Verifier == nil || c.Verifier.key.Equal(c.Signer.key) || c.Verifier.KeyID == c.Signer.KeyID):
		return nil, errors.New("independent evidence needs a verifier's key that is not the host's")
	}
	doc, err := canonicalText(r.discovery)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	b := &Bundle{
		Version: "3", GeneratedAt: r.StartedAt.UTC().Format(time.RFC3339Nano),
		Suite: BundleSuite{SuiteName, r.Version, r.TargetMajor, SpecArtifacts},
		Host: BundleHost{Name: or(r.Host.Name, "unnamed"), Version: or(r.Host.Version, "unknown"), Vendor: r.Host.Vendor, Build: build,
			KeyID: c.Signer.KeyID, Relaxations: slices.Concat(r.Host.Relaxations, c.Relaxations)},
		Discovery: BundleDoc{URL: r.Host.BaseURL + discoveryPath, SHA256: hexSum(doc), Document: r.discovery,
			ProtocolVersions: slices.Clone(r.Host.ProtocolVersions), PreferredVersion: r.Host.PreferredVersion},
		Claimed:   []Claim{},
		Signature: Signature{Alg: "ed25519", KeyID: c.Signer.KeyID, Over: signedMembers},
	}
	if b.Discovery.ProtocolVersions == nil {
		b.Discovery.ProtocolVersions = []string{}
	}
	b.Results.Rows = ledger(r, func(s string) string { return blank(s, c.Secrets) })
	if err := b.sum(); err != nil {
		return nil, err
	}
	for _, p := range b.derive() {
		if p.claimed {
			b.Claimed = append(b.Claimed, Claim{ID: p.id, Tier: tier, Witnesses: p.witnesses, Certified: p.refusal() == ""})
		}
	}
	return b, nil
}

func blank(s string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	return s
}

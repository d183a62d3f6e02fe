package conformance

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-run/fermata/schema"
)

// Attribution says what a bundle's signature is worth (spec v2 conformance.md
// §Bundle v3). The ways in which it is worth less are kept apart.
type Attribution string

// The host published the key and the attestation verifies under it; nobody has
// read the host's discovery document; it was read and does not list the key; the
// attestation does not verify.
const (
	Attributed   Attribution = "attributed"
	NoDiscovery  Attribution = "no-discovery"
	NotPublished Attribution = "not-published"
	Forged       Attribution = "does-not-verify"
)

// Rejection is one reason not to take a bundle as evidence.
type Rejection struct {
	Kind    string `json:"kind"`
	Detail  string `json:"detail"`
	Profile string `json:"profile,omitempty"`
}

// Verification is the verdict on a bundle. A bundle without rejections is sound
// evidence of what its rows say; whether that certifies a profile is another
// question.
type Verification struct {
	Attribution Attribution `json:"attribution"`
	Rejections  []Rejection `json:"rejections"`
	Profiles    []Verified  `json:"profiles"`

	// Intact reports that the attestation verifies under a key the caller gave,
	// though nobody says whose it is.
	Intact bool `json:"intact,omitempty"`

	// Moved reports that the host's discovery document is another one by now.
	Moved bool `json:"discoveryChanged,omitempty"`
}

// Verified is the verdict on one claim.
type Verified struct {
	ID        string `json:"id"`
	Tier      string `json:"evidenceTier"`
	Certified bool   `json:"certified"`
	Why       string `json:"why,omitempty"` // why not
}

// Trust is what a verifier knows from elsewhere.
type Trust struct {
	// Discovery is the document of the host the bundle is about, read from the
	// host; nil if it was not read. The copy inside a bundle proves nothing.
	Discovery []byte
	// Key is a public key the caller trusts to be the host's, if any.
	Key ed25519.PublicKey
	// VerifierKey is the public key of the independent party, if any.
	VerifierKey ed25519.PublicKey
}

// Verify judges a bundle.
func Verify(text []byte, t Trust) Verification {
	v := Verification{Attribution: NoDiscovery, Rejections: []Rejection{}, Profiles: []Verified{}}
	b, err := readBundle(text)
	if err != nil {
		v.reject(err.Kind, "%s", err.Detail)
		return v
	}
	v.rows(b)
	v.attestation(b, t)
	v.independent(b, t)
	v.claims(b)
	return v
}

func (v *Verification) reject(kind, format string, args ...any) {
	v.Rejections = append(v.Rejections, Rejection{Kind: kind, Detail: fmt.Sprintf(format, args...)})
}

// readBundle reads a bundle of version 3. Older ones are evidence at their own
// version and never taken for this one.
func readBundle(text []byte) (*Bundle, *Rejection) {
	var head struct {
		Version json.RawMessage `json:"bundleVersion"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, &Rejection{Kind: "not-json", Detail: "the file is not a JSON object"}
	}
	if string(head.Version) != `"3"` {
		return nil, &Rejection{Kind: "not-v3", Detail: fmt.Sprintf("bundleVersion is %s, want \"3\"; an older bundle is not upgraded", or(string(head.Version), "absent"))}
	}
	if err := schema.Validate("certification-bundle", text); err != nil {
		return nil, &Rejection{Kind: "schema", Detail: err.Error()}
	}
	b := &Bundle{}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, &Rejection{Kind: "schema", Detail: err.Error()}
	}
	return b, nil
}

// rows holds the ledger against everything that is said to follow from it.
func (v *Verification) rows(b *Bundle) {
	seen := map[string]bool{}
	for _, r := range b.Results.Rows {
		if seen[r.ID] {
			v.reject("duplicate-requirement", "%s has more than one row", r.ID)
		}
		seen[r.ID] = true
		if r.Result == rowPass && r.Assertions == 0 {
			v.reject("vacuous-pass", "%s passed without an assertion", r.ID)
		}
		if r.Result != rowPass && r.Detail == "" {
			v.reject("reason-missing", "%s is %s without a reason", r.ID, r.Result)
		}
	}
	want := Bundle{Host: b.Host, Results: BundleResult{Rows: b.Results.Rows}}
	if err := want.sum(); err != nil {
		v.reject("schema", "%v", err)
		return
	}
	if want.Results.Totals != b.Results.Totals {
		v.reject("totals-mismatch", "the totals are %+v, the rows count %+v", b.Results.Totals, want.Results.Totals)
	}
	if want.AssertionCount != b.AssertionCount {
		v.reject("assertion-count", "assertionCount is %d, the rows sum up to %d", b.AssertionCount, want.AssertionCount)
	}
	if want.WitnessSHA256 != b.WitnessSHA256 {
		v.reject("witness-digest", "witnessSha256 is %.12s…, the rows and relaxations have %.12s…", b.WitnessSHA256, want.WitnessSHA256)
	}
	if !slices.Equal(nonPass(&want), nonPass(b)) {
		v.reject("detail-mismatch", "detail.nonPass does not repeat the rows that are no pass")
	}
	if doc := b.Discovery.Document; doc != nil {
		c, err := canonicalText(doc)
		if err != nil || hexSum(c) != b.Discovery.SHA256 {
			v.reject("discovery-digest", "discovery.document does not have the digest discovery.sha256")
		}
	}
}

func nonPass(b *Bundle) []NonPass {
	if b.Detail == nil {
		return nil
	}
	return slices.SortedFunc(slices.Values(b.Detail.NonPass), func(x, y NonPass) int { return bytes.Compare([]byte(x.ID), []byte(y.ID)) })
}

// claims holds each claim against what the rows say.
func (v *Verification) claims(b *Bundle) {
	all := b.derive()
	for _, c := range b.Claimed {
		out := Verified{ID: c.ID, Tier: c.Tier, Certified: c.Certified}
		i := slices.IndexFunc(all, func(d derived) bool { return d.id == c.ID })
		switch {
		case i < 0:
			out.Why = "this suite knows no such profile"
		case b.Discovery.Document != nil && !all[i].claimed:
			out.Why = fmt.Sprintf("discovery lacks %v", all[i].lacks)
		case c.Witnesses != all[i].witnesses:
			out.Why = fmt.Sprintf("witnessCount is %d, the rows witness %d scenarios", c.Witnesses, all[i].witnesses)
		default:
			out.Why = all[i].refusal()
		}
		if c.Certified && out.Why != "" {
			out.Certified = false
			v.Rejections = append(v.Rejections, Rejection{"not-certifiable", "is marked certified: " + out.Why, c.ID})
		}
		v.Profiles = append(v.Profiles, out)
	}
}

package conformance

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"time"
)

const auditPath = "/audit/verify"

// verdict is the answer of verifyAuditLog.
type verdict struct {
	FromSeq          int64             `json:"fromSeq"`
	ToSeq            int64             `json:"toSeq"`
	ChainValid       bool              `json:"chainValid"`
	CheckpointsValid *bool             `json:"checkpointsValid"`
	Checkpoints      []anchor          `json:"checkpoints"`
	Anomalies        []json.RawMessage `json:"anomalies"`
}

type anchor struct {
	AtSequence int64  `json:"atSequence"`
	MerkleRoot string `json:"merkleRoot"`
	Signature  string `json:"signature"`
}

var auditChecks = []check{
	must("audit.verdict", "security-defaults.md §Audit-log integrity", "an audit log that nobody touched holds, and the verdict keeps to the range asked for", func(p *probe) {
		v := p.verdict("?fromSeq=0&toSeq=1000000")
		p.want(v.ChainValid && len(v.Anomalies) == 0, "the log is not valid: %d anomalies", len(v.Anomalies))
		p.want(v.CheckpointsValid == nil || *v.CheckpointsValid, "the log is valid, its checkpoints are not")
		p.want(v.FromSeq == 0 && v.ToSeq == 1_000_000, "asked for 0 to 1000000, answered for %d to %d", v.FromSeq, v.ToSeq)
		some := p.verdict("?fromSeq=1&toSeq=2")
		p.want(some.ChainValid && some.FromSeq == 1 && some.ToSeq == 2, "a part of a log that holds does not hold, or is another part")
		for _, c := range some.Checkpoints {
			p.want(c.AtSequence >= 1 && c.AtSequence <= 2, "the range 1 to 2 shows a checkpoint at %d", c.AtSequence)
		}
	}).gated("auditLogIntegrity"),

	must("audit.cadence", "security-defaults.md §Audit-log integrity", "checkpoints come in order, no farther apart than discovery says", func(p *probe) {
		every := p.cadence("checkpointIntervalEntries")
		prev := int64(0)
		for _, c := range p.anchors() {
			p.want(c.AtSequence > prev, "the checkpoint at %d follows the one at %d", c.AtSequence, prev)
			p.want(c.AtSequence-prev <= every, "the checkpoint at %d follows the one at %d; at most %d entries may lie between", c.AtSequence, prev, every)
			prev = c.AtSequence
		}
	}).gated("auditLogIntegrity"),

	must("audit.signatures", "security-defaults.md §Audit-log integrity", "every checkpoint is signed over the bytes of its root, by the key of discovery", func(p *probe) {
		key := p.auditKey()
		for _, c := range p.anchors() {
			root, err := hex.DecodeString(c.MerkleRoot)
			p.want(err == nil && len(root) == 32, "the root of the checkpoint at %d is not 32 bytes in hex", c.AtSequence)
			sig, err := base64.StdEncoding.DecodeString(c.Signature)
			p.want(err == nil && len(sig) == ed25519.SignatureSize && ed25519.Verify(key, root, sig), "the checkpoint at %d does not verify", c.AtSequence)
		}
	}).gated("auditLogIntegrity"),

	must("audit.refusals", "security-defaults.md §Audit-log integrity; errors.md", "a range that is none is refused, and so is whoever has no credential", func(p *probe) {
		for _, q := range []string{"?fromSeq=5&toSeq=4", "?fromSeq=x&toSeq=4", "?fromSeq=-1&toSeq=4"} {
			p.refused(p.get(auditPath+q), 400, "validation_error")
		}
		p.refused(p.get(auditPath+"?fromSeq=0&toSeq=4", "Authorization", ""), 401)
	}).gated("auditLogIntegrity"),
}

func (p *probe) verdict(query string) (v verdict) {
	a := p.ok(p.get(auditPath+query), 200, "audit-verify-result")
	if err := json.Unmarshal(a.body, &v); err != nil {
		p.fail("the verdict does not decode: %v", err)
	}
	return v
}

// cadence reads a number of the family's record.
func (p *probe) cadence(facet string) (n int64) {
	p.want(p.s.facet(&n, "auditLogIntegrity", facet) && n > 0, "discovery has no %s", facet)
	return n
}

// anchors waits for a checkpoint as long as an entry may wait for one, if that is
// not long.
func (p *probe) anchors() []anchor {
	for until := time.Now().Add(min(time.Duration(p.cadence("checkpointIntervalSeconds")), 5) * time.Second); ; {
		v := p.verdict("?fromSeq=0&toSeq=1000000")
		if len(v.Checkpoints) > 0 {
			return v.Checkpoints
		}
		if time.Now().After(until) || !p.pause(100*time.Millisecond) {
			p.inapplicable("the host has signed no checkpoint yet")
		}
	}
}

func (p *probe) auditKey() ed25519.PublicKey {
	var text string
	p.want(p.s.facet(&text, "auditLogIntegrity", "checkpointPublicKey"), "discovery has no checkpointPublicKey")
	der, err := base64.StdEncoding.DecodeString(text)
	p.want(err == nil, "the key of discovery is not base64")
	any, err := x509.ParsePKIXPublicKey(der)
	key, ok := any.(ed25519.PublicKey)
	p.want(err == nil && ok, "the key of discovery is no Ed25519 key in its DER form")
	return key
}

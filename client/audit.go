package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// AuditRange says what of an audit log is meant.
type AuditRange struct {
	From, To int64 // sequences, both inclusive; zero for the start and the end
	Host     bool  // the host's own chain in place of the tenant's
}

func (r AuditRange) query() url.Values {
	q := url.Values{}
	setInt(q, "fromSeq", r.From)
	setInt(q, "toSeq", r.To)
	return chainOf(q, r.Host)
}

func chainOf(q url.Values, host bool) url.Values {
	if host {
		q.Set("chain", "host")
	}
	return q
}

// AuditVerdict says whether a stretch of an audit log holds.
type AuditVerdict struct {
	FromSeq          int64             `json:"fromSeq"`
	ToSeq            int64             `json:"toSeq"`
	ChainValid       bool              `json:"chainValid"`
	CheckpointsValid *bool             `json:"checkpointsValid,omitempty"`
	Checkpoints      []AuditCheckpoint `json:"checkpoints"`
	Anomalies        []AuditAnomaly    `json:"anomalies"`

	Raw json.RawMessage `json:"-"`
}

// AuditCheckpoint is a signature over the entries up to a sequence.
type AuditCheckpoint struct {
	Checkpoint string `json:"checkpoint"`
	AtSequence int64  `json:"atSequence"`
	MerkleRoot string `json:"merkleRoot"` // lowercase hex
	Signature  string `json:"signature"`  // base64
}

// AuditAnomaly is a place at which a log does not hold.
type AuditAnomaly struct {
	AtSeq            int64  `json:"atSeq"`
	ExpectedPrevHash string `json:"expectedPrevHash"`
	ActualPrevHash   string `json:"actualPrevHash"` // empty if the entry is missing
}

// VerifyAudit lets the host verify its audit log.
func (c *Client) VerifyAudit(ctx context.Context, r AuditRange) (*AuditVerdict, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: "/audit/verify", query: r.query(), again: true})
	if err != nil {
		return nil, err
	}
	var out AuditVerdict
	out.Raw, err = a.into(&out)
	return &out, err
}

// AuditEntry is one entry of an audit log.
type AuditEntry struct {
	Chain    string            `json:"chain"`
	Sequence int64             `json:"sequence"`
	At       time.Time         `json:"at"`
	Actor    AuditActor        `json:"actor"`
	Action   string            `json:"action"`
	Outcome  string            `json:"outcome"` // done, denied or failed
	Target   AuditTarget       `json:"target"`
	Request  string            `json:"request,omitempty"`
	Detail   map[string]string `json:"detail,omitempty"`
}

// AuditActor is who did it.
type AuditActor struct {
	Issuer    string `json:"issuer,omitempty"`
	SubjectID string `json:"subjectId,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
	Lane      string `json:"lane,omitempty"`
	Kind      string `json:"kind"`
	Assurance string `json:"assurance,omitempty"`
}

// AuditTarget is what it was done to.
type AuditTarget struct {
	Type string `json:"type"`
	ID   string `json:"id,omitempty"`
}

// AuditPage is one page of entries, the newest first.
type AuditPage struct {
	Entries []struct {
		Hash  string     `json:"hash"`
		Entry AuditEntry `json:"entry"`
	} `json:"entries"`
	NextCursor string `json:"nextCursor,omitempty"`

	Raw json.RawMessage `json:"-"`
}

// ListAudit reads one page of the tenant's audit log, or of the host's.
func (c *Client) ListAudit(ctx context.Context, host bool, o PageOptions) (*AuditPage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/audit", query: chainOf(o.query(), host), again: true})
	if err != nil {
		return nil, err
	}
	var out AuditPage
	out.Raw, err = a.into(&out)
	return &out, err
}

// ExportAudit writes a whole audit log to w, one JSON object a line. It has no
// bound but ctx: a log may be long.
func (c *Client) ExportAudit(ctx context.Context, host bool, w io.Writer) error {
	resp, err := c.send(ctx, call{method: http.MethodGet, path: hostPath + "/audit/export", query: chainOf(url.Values{}, host)})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, err := readAll(resp.Body)
		if err != nil {
			return c.unreachable(err)
		}
		return refusal(resp.StatusCode, resp.Header, body)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("the export broke off: %w", err)
	}
	return nil
}

// AuditKey is a public key that has signed checkpoints.
type AuditKey struct {
	KeyID     string `json:"keyId"`
	PublicKey string `json:"publicKey"` // base64 of its DER form
	Signs     bool   `json:"signs"`     // from now on
}

// AuditKeys reads every key that has signed checkpoints.
func (c *Client) AuditKeys(ctx context.Context) ([]AuditKey, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/audit/keys", again: true})
	if err != nil {
		return nil, err
	}
	var out struct {
		Keys []AuditKey `json:"keys"`
	}
	_, err = a.into(&out)
	return out.Keys, err
}

// RotateAuditKey has checkpoints signed with a new key from now on.
func (c *Client) RotateAuditKey(ctx context.Context) (keyID string, err error) {
	a, err := c.do(ctx, call{method: http.MethodPost, path: hostPath + "/audit/keys", keyed: true})
	if err != nil {
		return "", err
	}
	var out AuditKey
	_, err = a.into(&out)
	return out.KeyID, err
}

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// NewCredential asks the host to keep a credential. The host never shows Secret
// again.
type NewCredential struct {
	Name            string            `json:"name,omitempty"`      // what people call it
	Scope           string            `json:"scope,omitempty"`     // user, workspace, tenant (the default) or run
	RunID           string            `json:"runId,omitempty"`     // with the scope run
	Workspace       string            `json:"workspace,omitempty"` // with the scope workspace; by default the caller's
	Kind            string            `json:"kind,omitempty"`      // secret (the default) or basic
	Username        string            `json:"username,omitempty"`
	Secret          string            `json:"secret,omitempty"` // 8 bytes to 64 KiB
	Source          *CredentialSource `json:"source,omitempty"` // in place of Secret
	Audiences       []string          `json:"audiences"`        // hosts, or *.domain; at least one
	Scopes          []string          `json:"scopes,omitempty"`
	ExpiresAt       *time.Time        `json:"expiresAt,omitempty"`
	RedactionPolicy string            `json:"redactionPolicy,omitempty"`
	OutOfAudience   string            `json:"outOfAudience,omitempty"` // deny (the default) or downgrade
}

// CredentialSource names a secret in a store outside the host.
type CredentialSource struct {
	Store string `json:"store"`
	Name  string `json:"name"`
}

// CredentialProvenance says where a credential may go.
type CredentialProvenance struct {
	CredentialID       string    `json:"credentialId"`
	Issuer             string    `json:"issuer"`
	Audiences          []string  `json:"audiences"`
	Scopes             []string  `json:"scopes,omitempty"`
	ExpiresAt          time.Time `json:"expiresAt,omitzero"`
	RedactionPolicy    string    `json:"redactionPolicy"`
	AuditCorrelationID string    `json:"auditCorrelationId"`
}

// Credential is what can be known of a credential.
type Credential struct {
	Ref           string               `json:"ref"`
	Scope         string               `json:"scope"`
	Name          string               `json:"name"`
	Kind          string               `json:"kind"`
	Version       int64                `json:"version"`
	RunID         string               `json:"runId"`
	Workspace     string               `json:"workspace"`
	Source        *CredentialSource    `json:"source"`
	OutOfAudience string               `json:"outOfAudience"`
	Provenance    CredentialProvenance `json:"provenance"`
	CreatedAt     time.Time            `json:"createdAt"`
	RotatedAt     time.Time            `json:"rotatedAt,omitzero"`
	PreviousUntil time.Time            `json:"previousUntil,omitzero"`

	Raw json.RawMessage `json:"-"`
}

// CredentialPage is one page of credentials.
type CredentialPage struct {
	Credentials []Credential `json:"credentials"`
	NextCursor  string       `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

const credentialsPath = hostPath + "/credentials"

// CreateCredential has a credential kept. It is sent once: the host keeps no record
// of a request that holds a secret.
func (c *Client) CreateCredential(ctx context.Context, n NewCredential) (*Credential, error) {
	var out Credential
	raw, err := c.change(ctx, credentialsPath, n, &out)
	out.Raw = raw
	return &out, err
}

// ListCredentials reads one page of the credentials the caller may see.
func (c *Client) ListCredentials(ctx context.Context, o PageOptions) (*CredentialPage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: credentialsPath, query: o.query(), again: true})
	if err != nil {
		return nil, err
	}
	var out CredentialPage
	out.Raw, err = a.into(&out)
	return &out, err
}

// GetCredential reads what can be known of a credential.
func (c *Client) GetCredential(ctx context.Context, ref string) (*Credential, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: credentialsPath + "/" + nameSegment(ref), again: true})
	if err != nil {
		return nil, err
	}
	var out Credential
	out.Raw, err = a.into(&out)
	return &out, err
}

// CredentialRotation is new material. Overlap is for how long the old one still
// resolves, by ref@version; nil for a day.
type CredentialRotation struct {
	Username string
	Secret   string
	Overlap  *time.Duration
}

// RotateCredential gives a credential new material. It is sent once.
func (c *Client) RotateCredential(ctx context.Context, ref string, r CredentialRotation) (*Credential, error) {
	body := struct {
		Username string `json:"username,omitempty"`
		Secret   string `json:"secret"`
		Overlap  *int64 `json:"overlapSeconds,omitempty"`
	}{Username: r.Username, Secret: r.Secret}
	if r.Overlap != nil {
		s := int64(r.Overlap.Seconds())
		body.Overlap = &s
	}
	var out Credential
	raw, err := c.change(ctx, credentialsPath+"/"+nameSegment(ref)+":rotate", body, &out)
	out.Raw = raw
	return &out, err
}

// DeleteCredential has a credential forgotten. Nothing resolves it any more.
func (c *Client) DeleteCredential(ctx context.Context, ref string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: credentialsPath + "/" + nameSegment(ref), keyed: true})
	return err
}

// VaultRotation is what a rotation of the host's keys has done.
type VaultRotation struct {
	Master   string `json:"master"`   // id of the master key in use
	DataKeys int    `json:"dataKeys"` // made
	Values   int    `json:"values"`   // sealed anew

	Raw json.RawMessage `json:"-"`
}

// RotateVault lets the host take up the master key that is first in its file by now,
// and with dataKeys make new data keys and seal everything anew.
func (c *Client) RotateVault(ctx context.Context, dataKeys bool) (*VaultRotation, error) {
	var out VaultRotation
	raw, err := c.change(ctx, hostPath+"/vault:rotate", map[string]bool{"dataKeys": dataKeys}, &out)
	out.Raw = raw
	return &out, err
}

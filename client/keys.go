package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// NewKey asks for an API key in the caller's tenant.
type NewKey struct {
	Name             string   `json:"name,omitempty"`
	Kind             string   `json:"kind,omitempty"`      // user (the default), agent or workload
	Workspace        string   `json:"workspace,omitempty"` // the only one it acts in
	Scopes           []string `json:"scopes"`              // at least one; none that the caller does not hold
	Groups           []string `json:"groups,omitempty"`
	Roles            []string `json:"roles,omitempty"`
	ExpiresInSeconds int64    `json:"expiresInSeconds,omitempty"` // 0 for never
}

// KeyInfo describes an API key. It holds nothing of the key itself.
type KeyInfo struct {
	KeyID                string    `json:"keyId"`
	Issuer               string    `json:"issuer"`
	SubjectID            string    `json:"subjectId"` // what an approversList names its holder by
	Tenant               string    `json:"tenant"`
	Workspace            string    `json:"workspace,omitempty"`
	Name                 string    `json:"name"`
	Kind                 string    `json:"kind"`
	Scopes               []string  `json:"scopes"`
	Groups               []string  `json:"groups"`
	Roles                []string  `json:"roles"`
	State                string    `json:"state"` // active, expired or revoked
	CreatedAt            time.Time `json:"createdAt"`
	ExpiresAt            time.Time `json:"expiresAt,omitzero"`
	RevokedAt            time.Time `json:"revokedAt,omitzero"`
	LastUsedAt           time.Time `json:"lastUsedAt,omitzero"`           // to about a minute
	PreviousKeyExpiresAt time.Time `json:"previousKeyExpiresAt,omitzero"` // while the key before it still opens
}

// IssuedKey is a new API key. Nobody can show it again.
type IssuedKey struct {
	Key string `json:"key"`
	KeyInfo

	Raw json.RawMessage `json:"-"`
}

// KeyPage is one page of a tenant's keys.
type KeyPage struct {
	Keys       []KeyInfo `json:"keys"`
	NextCursor string    `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

func (c *Client) issued(ctx context.Context, path string, body any) (*IssuedKey, error) {
	var out IssuedKey
	raw, err := c.change(ctx, path, body, &out)
	out.Raw = raw
	return &out, err
}

// CreateKey makes an API key. It is sent once: the host keeps no record of an
// answer that holds a credential.
func (c *Client) CreateKey(ctx context.Context, k NewKey) (*IssuedKey, error) {
	return c.issued(ctx, hostPath+"/keys", k)
}

// RotateKey replaces an API key; the key before opens for overlap. Its holder stays
// who it was. It is sent once, like CreateKey.
func (c *Client) RotateKey(ctx context.Context, keyID string, overlap time.Duration) (*IssuedKey, error) {
	body := map[string]int64{"overlapSeconds": int64(overlap / time.Second)}
	return c.issued(ctx, hostPath+"/keys/"+nameSegment(keyID)+":rotate", body)
}

// RevokeKey ends an API key, from the next request on.
func (c *Client) RevokeKey(ctx context.Context, keyID string) (*KeyInfo, error) {
	var out KeyInfo
	_, err := c.change(ctx, hostPath+"/keys/"+nameSegment(keyID)+":revoke", nil, &out)
	return &out, err
}

// ListKeys reads one page of the keys of the caller's tenant, revoked ones too.
func (c *Client) ListKeys(ctx context.Context, o PageOptions) (*KeyPage, error) {
	var out KeyPage
	raw, err := c.read(ctx, hostPath+"/keys", o.query(), &out)
	out.Raw = raw
	return &out, err
}

// read gets a document.
func (c *Client) read(ctx context.Context, path string, query url.Values, out any) (json.RawMessage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, again: true})
	if err != nil {
		return nil, err
	}
	return a.into(out)
}

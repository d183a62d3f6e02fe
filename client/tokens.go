package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// TokenOptions says what a token is good for.
type TokenOptions struct {
	Intent           string `json:"intent,omitempty"`           // resolve (the default) or inspect
	ExpiresInSeconds int64  `json:"expiresInSeconds,omitempty"` // 0 for the host's default of 30 minutes
}

// Token is an interrupt token: a link with which somebody without a credential
// answers one interrupt, in the name of whoever asked for it.
type Token struct {
	Token       string    `json:"token"`
	RunID       string    `json:"runId"`
	NodeID      string    `json:"nodeId"`
	InterruptID string    `json:"interruptId"`
	Intent      string    `json:"intent"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// IssueToken asks for a token for what a node waits for. Asking again gives
// another one, and both are good.
func (c *Client) IssueToken(ctx context.Context, runID, nodeID string, o TokenOptions) (*Token, error) {
	body, err := encode(o)
	if err != nil {
		return nil, err
	}
	path := hostPath + runPath(runID, "/interrupts/"+nameSegment(nodeID)+"/tokens")
	a, err := c.do(ctx, call{method: http.MethodPost, path: path, body: body, again: true})
	if err != nil {
		return nil, err
	}
	var out Token
	_, err = a.into(&out)
	return &out, err
}

// InspectToken shows what a token's interrupt asks. The client's own key is not
// needed and not sent.
func (c *Client) InspectToken(ctx context.Context, token string) (*Request, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: "/interrupts/" + nameSegment(token), again: true, bare: true})
	if err != nil {
		return nil, err
	}
	var out Request
	_, err = a.into(&out)
	return &out, err
}

// ResolveToken answers a token's interrupt. The client's own key is not needed
// and not sent.
func (c *Client) ResolveToken(ctx context.Context, token string, resumeValue json.RawMessage) (*RunStatus, error) {
	return c.answer(ctx, call{method: http.MethodPost, path: "/interrupts/" + nameSegment(token), keyed: true, bare: true}, resolution{resumeValue})
}

// RotateTokenKey lets the host sign interrupt tokens with a new key, and returns
// its id. Tokens given out before stay good.
func (c *Client) RotateTokenKey(ctx context.Context) (kid string, err error) {
	a, err := c.do(ctx, call{method: http.MethodPost, path: hostPath + "/token-keys", keyed: true})
	if err != nil {
		return "", err
	}
	var out struct {
		Kid string `json:"kid"`
	}
	_, err = a.into(&out)
	return out.Kid, err
}

package builtin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/node"
)

// Ways in which a credential goes along with a request.
const (
	asBearer = "bearer"
	asBasic  = "basic"
	asHeader = "header"
	asQuery  = "query"
)

// credentialConfig is the part of the config that chooses a credential. It is never
// taken from input ports: what a run brings along must not choose one.
type credentialConfig struct {
	Credential     *node.CredentialRef `json:"-"`
	Raw            json.RawMessage     `json:"credential"`
	CredentialAs   string              `json:"credentialAs"`
	CredentialName string              `json:"credentialName"`
}

const credentialSchema = `"credential":{"type":"object","additionalProperties":false,"required":["ref"],"properties":{` +
	`"ref":{"type":"string","minLength":1,"maxLength":256},"scope":{"enum":["user","workspace","tenant","run"]}}},` +
	`"credentialAs":{"enum":["bearer","basic","header","query"]},"credentialName":{"type":"string","minLength":1,"maxLength":128}`

// readCredential reads it, and refuses what cannot work whatever the credential is.
func readCredential(in *node.Input, cfg *httpConfig) (*credentialConfig, error) {
	var c credentialConfig
	if err := settings(in, &c); err != nil {
		return nil, err
	}
	if len(c.Raw) == 0 || string(c.Raw) == "null" {
		if c.CredentialAs != "" || c.CredentialName != "" {
			return nil, badMember("credential", "is missing")
		}
		return nil, nil
	}
	c.Credential = &node.CredentialRef{}
	if err := json.Unmarshal(c.Raw, c.Credential); err != nil {
		return nil, badMember("credential", "must be an object with a ref and a scope, and nothing else")
	}
	if _, err := choice("credentialAs", c.CredentialAs, asBearer, asBearer, asBasic, asHeader, asQuery); err != nil {
		return nil, err
	}
	named := c.CredentialAs == asHeader || c.CredentialAs == asQuery
	switch {
	case named != (c.CredentialName != ""):
		return nil, badMember("credentialName", "goes with credentialAs header or query, and only with them")
	case c.CredentialAs == asHeader && (!isToken(c.CredentialName) || reserved[http.CanonicalHeaderKey(c.CredentialName)]):
		return nil, badMember("credentialName", "is not a header that a credential can go into")
	}
	for name := range cfg.Headers {
		if http.CanonicalHeaderKey(name) == c.header() {
			return nil, badMember("headers", "sets the header that the credential goes into")
		}
	}
	return &c, nil
}

// header is where the credential goes; empty if it goes into the query.
func (c *credentialConfig) header() string {
	switch c.CredentialAs {
	case asQuery:
		return ""
	case asHeader:
		return http.CanonicalHeaderKey(c.CredentialName)
	}
	return "Authorization"
}

// attach resolves the credential and lets it go along with the requests of ctx.
func (c *credentialConfig) attach(ctx context.Context, in *node.Input) (context.Context, error) {
	if in.Services.Credential == nil {
		return nil, node.Fail("credential_unavailable", "this host keeps no credentials")
	}
	cred, err := in.Services.Credential(ctx, *c.Credential)
	if err != nil {
		return nil, err
	}
	basic := cred.Kind() == "basic"
	if c.CredentialAs != "" && basic != (c.CredentialAs == asBasic) {
		return nil, badMember("credentialAs", "does not fit the credential, whose kind is %s", cred.Kind())
	}
	return egress.With(ctx, cred, func(r *http.Request, m node.Material) error {
		return c.put(r, m, basic)
	}), nil
}

func (c *credentialConfig) put(r *http.Request, m node.Material, basic bool) error {
	if basic {
		r.SetBasicAuth(m.Username, m.Secret)
		return nil
	}
	if c.CredentialAs == asQuery {
		q, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return badMember("url", "has a query that cannot be read")
		}
		q.Set(c.CredentialName, m.Secret)
		r.URL.RawQuery = q.Encode()
		return nil
	}
	for i := range len(m.Secret) {
		if ch := m.Secret[i]; ch < ' ' && ch != '\t' || ch == 0x7f {
			return node.Fail(node.CodeConfig, "the credential holds a character that no header can hold")
		}
	}
	if c.CredentialAs == asHeader {
		r.Header.Set(c.CredentialName, m.Secret)
		return nil
	}
	r.Header.Set("Authorization", "Bearer "+m.Secret)
	return nil
}

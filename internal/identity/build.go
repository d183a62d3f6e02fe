package identity

import (
	"fmt"
	"time"
)

// Config is what an operator has said of lanes beside API keys.
type Config struct {
	// PublicURL is the base URL under which the world calls the API, such as
	// https://h.example/api. Lanes of tokens need it.
	PublicURL string

	OAuth2 *Tokens       // nil for no such lane
	OIDC   *Tokens       // nil for no such lane
	MTLS   *Certificates // nil for no such lane
}

// Build makes the pipeline of a host: own lanes of an embedder first, since only
// they know their credentials by the form, then tokens, API keys and client
// certificates. There is no anonymous lane: who presents nothing is nobody.
func Build(cfg Config, keys Lane, out Outside, now func() time.Time, own ...Lane) (*Pipeline, error) {
	lanes := own
	var resource *Resource
	if cfg.PublicURL != "" {
		var err error
		if resource, err = NewResource(cfg.PublicURL, Scopes()); err != nil {
			return nil, err
		}
	}
	var last *tokenLane
	trust := map[string]string{}
	for _, l := range []struct {
		name string
		cfg  *Tokens
	}{{LaneOIDC, cfg.OIDC}, {LaneOAuth2, cfg.OAuth2}} {
		if l.cfg == nil {
			continue
		}
		if resource == nil {
			return nil, fmt.Errorf("lane %s: it needs the public URL of the API", l.name)
		}
		made, err := newTokenLane(l.name, *l.cfg, resource.Metadata.Resource, out, now)
		if err != nil {
			return nil, err
		}
		for iss := range made.issuers {
			if trust[iss] != "" {
				return nil, fmt.Errorf("lane %s: issuer %q is trusted by lane %s already, and its tokens do not say which is meant", l.name, iss, trust[iss])
			}
			trust[iss] = l.name
		}
		lanes, last = append(lanes, made), made
	}
	if last != nil {
		last.rest = true
	}
	lanes = append(lanes, keys)
	if cfg.MTLS != nil {
		l, err := newCertLane(*cfg.MTLS, now)
		if err != nil {
			return nil, fmt.Errorf("lane %s: %w", LaneMTLS, err)
		}
		lanes = append(lanes, l)
	}
	return NewPipeline(resource, lanes...)
}

package identity

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Resource is the host as an OAuth protected resource (RFC 9728; spec v2
// identity.md §2.5). Its identifier is the base URL under which the API is served.
type Resource struct {
	Metadata Metadata

	path string // of the metadata document
	url  string
}

// Metadata is the RFC 9728 document.
type Metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required,omitzero"`
	CertificateRequired  bool     `json:"tls_client_certificate_bound_access_tokens,omitzero"`
}

const wellKnown = "/.well-known/oauth-protected-resource"

var basePath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)

// NewResource makes a resource of the base URL of the API, such as
// https://h.example/api, and the scopes the host enforces.
func NewResource(base string, scopes []string) (*Resource, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return nil, errors.New("the public URL is not one such as https://h.example/api")
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || !basePath.MatchString(path) ||
		slices.Contains(strings.Split(path, "/"), "..") || slices.Contains(strings.Split(path, "/"), ".") {
		return nil, errors.New("the public URL holds more than a scheme, a host and a plain path")
	}
	origin := u.Scheme + "://" + strings.ToLower(u.Host)
	return &Resource{
		Metadata: Metadata{Resource: origin + path, ScopesSupported: slices.Sorted(slices.Values(scopes)), BearerMethods: []string{"header"}},
		path:     wellKnown + path, url: origin + wellKnown + path,
	}, nil
}

// Path is where this host serves the metadata, and URL what the world calls it.
func (r *Resource) Path() string { return r.path }

// URL is the address of the metadata.
func (r *Resource) URL() string { return r.url }

// describe fills in what follows from the lanes.
func (r *Resource) describe(facets []Facet) {
	r.Metadata.AuthorizationServers = []string{}
	dpop, cert := true, true
	for _, f := range facets {
		if !tokens(f.Lane) {
			continue
		}
		for _, iss := range f.Issuers {
			if strings.HasPrefix(iss, "https://") || strings.HasPrefix(iss, "http://") {
				r.Metadata.AuthorizationServers = append(r.Metadata.AuthorizationServers, iss)
			}
		}
		// A floor of sender-constrained can be met by either proof: then neither is
		// required by itself.
		dpop = dpop && f.MinimumAssurance == SenderConstrained && slices.Equal(f.DelegationProofs, []string{ProofDPoP})
		cert = cert && f.MinimumAssurance == KeyBound
	}
	any := len(r.Metadata.AuthorizationServers) > 0
	r.Metadata.DPoPRequired, r.Metadata.CertificateRequired = any && dpop, any && cert
}

package identity

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/ids"
)

// Issuer is an issuer of tokens that a lane trusts, and what its tokens mean here.
type Issuer struct {
	// Issuer is the iss of its tokens, compared byte by byte; an https URL.
	Issuer string `json:"issuer"`

	// JWKS is where its keys are. If empty, it is looked up in the issuer's own
	// metadata. Hosts are names beside the issuer's at which keys may lie.
	JWKS  string   `json:"jwks"`
	Hosts []string `json:"hosts"`

	// Algorithms its tokens may be signed with; RS256, PS256, ES256 and EdDSA if
	// empty. Types are values of the header's typ that are taken; at+jwt, JWT and
	// none at all if empty.
	Algorithms []string `json:"algorithms"`
	Types      []string `json:"types"`

	// Tenant is the tenant of everybody the issuer vouches for. Where one issuer
	// serves several, TenantClaim names the member that says which, and Tenants, if
	// there are any, what its values mean.
	Tenant      string            `json:"tenant"`
	TenantClaim string            `json:"tenant-claim"`
	Tenants     map[string]string `json:"tenants"`

	// Subject is the member that says who it is; sub if empty. Kind is what
	// everybody there is (user, agent or workload); without it, a client that holds
	// a token of its own is a workload and everybody else a user.
	Subject string `json:"subject-claim"`
	Kind    string `json:"kind"`

	// ScopeClaim is where scopes are; scope, or else scp, if empty. Scopes are the
	// most that a token of the issuer can carry; if empty, all that reach no further
	// than its tenant. Grant is what each
	// carries without saying so. Required must be in every token.
	ScopeClaim string   `json:"scope-claim"`
	Scopes     []string `json:"scopes"`
	Grant      []string `json:"grant"`
	Required   []string `json:"required-scopes"`

	GroupsClaim string `json:"groups-claim"`
	RolesClaim  string `json:"roles-claim"`

	// Introspection is where tokens are checked again (RFC 7662).
	Introspection *Introspection `json:"introspection"`
}

// Introspection is how the host asks an issuer about a token.
type Introspection struct {
	URL      string `json:"url"`
	ClientID string `json:"client-id"`

	// Secret authenticates the host there. It is never shown. SecretFile is where
	// it was read from.
	Secret     string `json:"-"`
	SecretFile string `json:"client-secret-file"`
}

// Outside says what an issuer's servers are called with.
type Outside struct {
	Client *http.Client

	// Check refuses a URL that may not be called.
	Check func(u *url.URL) error
}

var (
	defaultAlgorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}
	defaultTypes      = []string{"at+jwt", "jwt", ""}
)

// prepare fills in what was left out and refuses what cannot be meant.
func (i *Issuer) prepare(out Outside, rechecked bool) error {
	if err := i.checkURLs(out, rechecked); err != nil {
		return fmt.Errorf("issuer %q: %w", i.Issuer, err)
	}
	if err := i.checkMapping(); err != nil {
		return fmt.Errorf("issuer %q: %w", i.Issuer, err)
	}
	if len(i.Algorithms) == 0 {
		i.Algorithms = defaultAlgorithms
	}
	for _, a := range i.Algorithms {
		if !slices.Contains(algorithms, a) {
			return fmt.Errorf("issuer %q: algorithms: %q is none of %s", i.Issuer, a, strings.Join(algorithms, ", "))
		}
	}
	if len(i.Types) == 0 {
		i.Types = defaultTypes
	}
	types := make([]string, len(i.Types))
	for n, t := range i.Types {
		types[n] = mediaType(t)
	}
	i.Types = types
	if i.Subject == "" {
		i.Subject = "sub"
	}
	return nil
}

// mediaType is a typ without what may be left out of it (RFC 7515 §4.1.9).
func mediaType(typ string) string {
	return strings.TrimPrefix(strings.ToLower(typ), "application/")
}

func (i *Issuer) checkURLs(out Outside, rechecked bool) error {
	u, err := url.Parse(i.Issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || len(i.Issuer) > 1024 {
		return errors.New("it is not an issuer's URL")
	}
	if err := out.Check(u); err != nil {
		return errors.New("its address may not be called: it wants https, or a literal address in a range of allow")
	}
	if i.JWKS != "" {
		if err := i.mayCall(out, i.JWKS); err != nil {
			return fmt.Errorf("jwks: %w", err)
		}
	}
	in := i.Introspection
	if !rechecked {
		if in != nil {
			return errors.New("introspection: the lane's revocation is not exp-and-recheck")
		}
		return nil
	}
	if in == nil || in.URL == "" || in.ClientID == "" {
		return errors.New("introspection: exp-and-recheck needs url and client-id")
	}
	if err := i.mayCall(out, in.URL); err != nil {
		return fmt.Errorf("introspection: %w", err)
	}
	return nil
}

// mayCall judges an address that belongs to the issuer: its own host, or one that
// the operator has named. What an issuer's metadata says is no way around it.
func (i *Issuer) mayCall(out Outside, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("not a URL")
	}
	own, err := url.Parse(i.Issuer)
	if err != nil {
		return err
	}
	if own.Scheme == "https" && u.Scheme != "https" {
		return errors.New("the issuer speaks https, and this address does not")
	}
	if !strings.EqualFold(u.Host, own.Host) && !slices.ContainsFunc(i.Hosts, func(h string) bool { return strings.EqualFold(h, u.Host) }) {
		return fmt.Errorf("the host %q is neither the issuer's nor named in hosts", u.Host)
	}
	return out.Check(u)
}

func (i *Issuer) checkMapping() error {
	if (i.Tenant == "") == (i.TenantClaim == "") {
		return errors.New("give either tenant or tenant-claim")
	}
	if len(i.Tenants) > 0 && i.TenantClaim == "" {
		return errors.New("tenants: it needs tenant-claim")
	}
	names := []string{}
	if i.Tenant != "" {
		names = append(names, i.Tenant)
	}
	for _, t := range i.Tenants {
		names = append(names, t)
	}
	for _, t := range names {
		if !plainTenant(t) {
			return fmt.Errorf("%q is not a tenant", t)
		}
	}
	if i.Kind != "" && !slices.Contains(kinds, i.Kind) {
		return fmt.Errorf("kind: %q is none of user, agent, workload", i.Kind)
	}
	return checkScopes(i.Scopes, i.Grant, i.Required)
}

// plainTenant reports whether a tenant may be named by a lane. One with a tilde
// would put it in ids that the host mints (identity.md §5).
func plainTenant(t string) bool {
	return ids.ValidTenant(t) && !strings.ContainsAny(t, ":~")
}

// Plain reports whether a lane trusts an issuer that is called without TLS.
func (t *Tokens) Plain() bool {
	return t != nil && slices.ContainsFunc(t.Issuers, func(i Issuer) bool { return !strings.HasPrefix(i.Issuer, "https://") })
}

func checkScopes(lists ...[]string) error {
	for _, list := range lists {
		for _, s := range list {
			if !ValidScope(s) {
				return fmt.Errorf("%q is not a scope", s)
			}
		}
	}
	return nil
}

// ValidScope reports whether s can be a scope of this host. The one that stands
// for all of them cannot come from outside.
func ValidScope(s string) bool {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(s) > 256 {
		return false
	}
	for _, p := range parts {
		if p == "" || strings.Trim(p, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

package host

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// KeyRing keeps API keys.
type KeyRing interface {
	Directory
	// Add stores a key and returns the id its holder is known by.
	Add(ctx context.Context, key, tenant, name string, g identity.Grants, now time.Time) (id string, err error)
}

// How much one key may carry. Every name travels with every request of the key.
const (
	maxGrants    = 100
	maxGrantName = 256
	maxKeyName   = 256
)

// NewKey is the request for an API key of the caller's tenant.
type NewKey struct {
	Name   string
	Scopes []string // at least one
	Groups []string
	Roles  []string
}

// IssuedKey is a new API key. The key itself is shown this once and kept nowhere.
type IssuedKey struct {
	Key       string   `json:"key"`
	Issuer    string   `json:"issuer"`
	SubjectID string   `json:"subjectId"` // of its holder; what an approversList names
	Tenant    string   `json:"tenant"`
	Name      string   `json:"name,omitzero"`
	Scopes    []string `json:"scopes"`
	Groups    []string `json:"groups"`
	Roles     []string `json:"roles"`
}

var scopeGrammar = regexp.MustCompile(`^(\*|[a-z][a-z0-9-]*(:[a-z0-9-]+)+)$`)

// CreateKey makes an API key in the caller's tenant. It carries no scope that the
// caller does not hold. Groups and roles are for the caller to give: whoever may
// make keys says who is who.
func (h *Host) CreateKey(ctx context.Context, c identity.Caller, r NewKey) (IssuedKey, error) {
	if err := h.allow(c, identity.KeysWrite); err != nil {
		return IssuedKey{}, err
	}
	if err := r.check(c); err != nil {
		if problem.Is(err, problem.Forbidden) {
			h.denials.note(c, "key.create", "more-than-its-own", h.clock.Now())
		}
		return IssuedKey{}, err
	}
	key := identity.Generate()
	g := identity.Grants{Scopes: r.Scopes, Groups: r.Groups, Roles: r.Roles}
	d := deed{action: "key.create", target: audit.Target{Type: "key", ID: identity.KeyID(key)}}.with("name", r.Name).
		with("scopes", strings.Join(r.Scopes, " ")).with("groups", strings.Join(r.Groups, " ")).with("roles", strings.Join(r.Roles, " "))
	id, err := audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (string, error) {
		return h.cfg.Keys.Add(ctx, key, c.Tenant(), r.Name, g, h.clock.Now())
	})
	if err != nil {
		return IssuedKey{}, err
	}
	return IssuedKey{
		Key: key, Issuer: identity.KeyRealm, SubjectID: id, Tenant: c.Tenant(), Name: r.Name,
		Scopes: r.Scopes, Groups: append([]string{}, r.Groups...), Roles: append([]string{}, r.Roles...),
	}, nil
}

func (r *NewKey) check(c identity.Caller) error {
	if len(r.Name) > maxKeyName {
		return problem.Invalid("name", "has more than %d bytes", maxKeyName)
	}
	if len(r.Scopes) == 0 {
		return problem.Invalid("scopes", "name at least one; * stands for all")
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"scopes", r.Scopes}, {"groups", r.Groups}, {"roles", r.Roles}} {
		if len(list.names) > maxGrants {
			return problem.Invalid(list.field, "has more than %d entries", maxGrants)
		}
		for _, n := range list.names {
			if n == "" || len(n) > maxGrantName || strings.ContainsFunc(n, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				return problem.Invalid(list.field, "%q is not a name of 1 to %d bytes without control characters", n, maxGrantName)
			}
		}
	}
	for _, s := range r.Scopes {
		if !scopeGrammar.MatchString(s) {
			return problem.Invalid("scopes", "%q is not a scope", s)
		}
		if !c.Holds(s) {
			return problem.New(problem.Forbidden, "a key cannot carry the scope %s, which yours does not hold", s).With("requiredScope", s)
		}
	}
	return nil
}

package identity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
)

func unresolvable(format string, args ...any) error {
	p := problem.New(problem.IdentityUnresolvable, "the credential is sound, but names nobody whom this host knows")
	p.Cause = fmt.Errorf(format, args...)
	return p
}

// resolve says which Subject a verified token means, with which scopes, groups and
// roles.
func (t *trusted) resolve(lane string, cl claims) (Caller, error) {
	sub := cl.text(t.Subject)
	if !ids.ValidSubject(sub) {
		return Caller{}, unresolvable("%s is no subjectId", t.Subject)
	}
	tenant, err := t.tenant(cl)
	if err != nil {
		return Caller{}, err
	}
	c := Caller{Subject: event.Subject{Issuer: t.Issuer.Issuer, SubjectID: sub, Tenant: tenant, Lane: lane, Kind: t.kind(cl, sub)}}
	if c.Scopes, err = t.scopes(cl); err != nil {
		return Caller{}, err
	}
	c.Source = lane
	if c.Groups, err = names(cl, t.GroupsClaim); err == nil {
		c.Roles, err = names(cl, t.RolesClaim)
	}
	if err != nil {
		return Caller{}, err
	}
	c.Subject.Actor, err = actors(&c, cl)
	return c, err
}

func (t *trusted) tenant(cl claims) (string, error) {
	if t.Tenant != "" {
		return t.Tenant, nil
	}
	v := cl.text(t.TenantClaim)
	if len(t.Tenants) > 0 {
		v = t.Tenants[v]
	}
	if !plainTenant(v) {
		return "", unresolvable("%s names no tenant", t.TenantClaim)
	}
	return v, nil
}

func (t *trusted) kind(cl claims, sub string) string {
	client := cl.text("client_id")
	if client == "" {
		client = cl.text("azp")
	}
	switch {
	case t.Kind != "":
		return t.Kind
	case client != "" && client == sub: // RFC 9068 §2.2: no resource owner is involved
		return "workload"
	}
	return "user"
}

// scopes are what the token carries of what this issuer may give.
func (t *trusted) scopes(cl claims) ([]string, error) {
	claim := t.ScopeClaim
	if claim == "" {
		if claim = "scope"; cl[claim] == nil {
			claim = "scp"
		}
	}
	carried, ok := cl.words(claim)
	if !ok {
		return nil, unverified(fmt.Errorf("%s holds no scopes", claim))
	}
	for _, need := range t.Required {
		if !slices.Contains(carried, need) {
			return nil, problem.New(problem.Forbidden, "the credential lacks the scope %s", need).With("requiredScope", need)
		}
	}
	out := append([]string{}, t.Grant...)
	for _, s := range carried {
		// Whatever is no scope of a host like this one means something elsewhere.
		may := slices.Contains(t.Scopes, s) || len(t.Scopes) == 0 && !slices.Contains(hostWide, s)
		if ValidScope(s) && may && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, nil
}

// Bounds of what a token says its holder belongs to.
const (
	maxNames = 200
	maxName  = 256
)

func names(cl claims, claim string) ([]string, error) {
	if claim == "" {
		return nil, nil
	}
	list, ok := cl.texts(claim)
	if !ok || len(list) > maxNames {
		return nil, unresolvable("%s is no list of up to %d names", claim, maxNames)
	}
	for _, n := range list {
		if n == "" || len(n) > maxName || strings.ContainsFunc(n, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, unresolvable("%s holds what is no name", claim)
		}
	}
	return list, nil
}

// maxActors bounds a chain of actors (identity.md §1.1).
const maxActors = 4

// actors reads the chain of those who act on the subject's behalf (RFC 8693 §4.1):
// the outermost is the one who calls. It adds no right to the token: it is kept
// for the record, and refused where it cannot be one.
func actors(c *Caller, cl claims) (*event.Subject, error) {
	var chain []event.Subject
	var stated [][]string // scopes by link; nil where a link states none
	seen := map[[2]string]bool{{c.Subject.Issuer, c.Subject.SubjectID}: true}
	for act := cl["act"]; act != nil; {
		if len(chain) == maxActors {
			return nil, problem.New(problem.DelegationChainTooLong, "the chain of actors is longer than %d", maxActors).With("maxDepth", maxActors)
		}
		link, err := parseClaims(act)
		if err != nil {
			return nil, unverified(fmt.Errorf("an actor is not an object"))
		}
		s := event.Subject{Issuer: link.text("iss"), SubjectID: link.text("sub"), Tenant: c.Subject.Tenant, Lane: c.Subject.Lane, Kind: "agent"}
		if link["iss"] == nil {
			s.Issuer = c.Subject.Issuer
		}
		if !ids.ValidSubject(s.SubjectID) || s.Issuer == "" || len(s.Issuer) > 1024 || len(strings.Fields(s.Issuer)) != 1 {
			return nil, unresolvable("an actor has no sub")
		}
		if key := [2]string{s.Issuer, s.SubjectID}; seen[key] {
			return nil, problem.New(problem.DelegationChainCyclic, "the chain of actors comes back to a subject")
		} else {
			seen[key] = true
		}
		scopes, ok := link.words("scope")
		if !ok {
			return nil, unverified(fmt.Errorf("an actor's scope is no text"))
		}
		if link["scope"] == nil {
			scopes = nil
		} else if scopes == nil {
			scopes = []string{}
		}
		chain, stated = append(chain, s), append(stated, scopes)
		act = link["act"]
	}
	if err := narrowing(append([][]string{carriedBy(cl)}, stated...)); err != nil {
		return nil, err
	}
	for i := len(chain) - 1; i > 0; i-- {
		chain[i-1].Actor = &chain[i]
	}
	if len(chain) == 0 {
		return nil, nil
	}
	return &chain[0], nil
}

// carriedBy is what the token itself states, for the caller at the chain's end.
func carriedBy(cl claims) []string {
	if cl["scope"] == nil {
		return nil
	}
	list, _ := cl.words("scope")
	return append([]string{}, list...)
}

// narrowing asks that no link states more than the one that delegated to it: the
// next one in, since the newest link is the outermost. A link that states nothing
// resets nothing.
func narrowing(links [][]string) error {
	var bound []string
	for _, scopes := range slices.Backward(links) {
		if scopes == nil {
			continue
		}
		if bound != nil {
			for _, s := range scopes {
				if !slices.Contains(bound, s) {
					return problem.New(problem.DelegationScopeAmplified, "a link of the chain of actors claims a scope that was not given to it")
				}
			}
		}
		bound = scopes
	}
	return nil
}

// introspection is what matters of an issuer's answer about a token.
type introspection struct {
	Active bool `json:"active"`
}

func (i *introspection) UnmarshalJSON(b []byte) error {
	cl, err := parseClaims(b)
	if err != nil {
		return err
	}
	return json.Unmarshal(cl["active"], &i.Active) // absent is an error: no answer is not a yes
}

package identity

import (
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/event"
)

// Caller is an authenticated party. Its memberships are those of the moment at
// which its credential was looked at.
type Caller struct {
	Subject event.Subject
	Scopes  []string
	Membership

	// Workspace is the only one of the tenant in which the caller acts; empty for
	// one who acts in all of it.
	Workspace string

	// Assurance is how strongly the request was tied to who made it: bearer,
	// sender-constrained or key-bound. It is what was proved, not what was asked for.
	Assurance string

	// Expires is when the credential must be looked at again, at the latest. Zero
	// if its lane looks at every request anyway.
	Expires time.Time
}

// Membership is what a party belongs to, in its own tenant. Names are opaque: a
// gate names a group, and either the party is in it or not.
type Membership struct {
	Groups []string
	Roles  []string
	Source string // where it was looked up; recorded with every decision that rests on it
}

// And is a membership with that of another source beside it.
func (m Membership) And(o Membership) Membership {
	if len(o.Groups)+len(o.Roles) == 0 {
		return m
	}
	if len(m.Groups)+len(m.Roles) == 0 {
		return o
	}
	return Membership{Groups: union(m.Groups, o.Groups), Roles: union(m.Roles, o.Roles), Source: m.Source + "+" + o.Source}
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Tenant is the tenant the caller acts for.
func (c Caller) Tenant() string { return c.Subject.Tenant }

// Holds reports whether the caller has a right to a scope, by its credential or by
// a role.
func (c Caller) Holds(scope string) bool { return coveredBy(c.Scopes, scope) }

// HoldsAll reports whether the caller has every one of some scopes.
func (c Caller) HoldsAll(scopes []string) (missing string, ok bool) {
	for _, s := range scopes {
		if !c.Holds(s) {
			return s, false
		}
	}
	return "", true
}

// AtMost shortens a wait so that it ends with the credential it is granted to.
func (c Caller) AtMost(d time.Duration, now time.Time) time.Duration {
	if c.Expires.IsZero() {
		return d
	}
	return max(min(d, c.Expires.Sub(now)), 0)
}

// Owner is the owner block of what the caller creates.
func (c Caller) Owner() event.Owner {
	return event.Owner{Tenant: c.Subject.Tenant, Workspace: c.Workspace, Subject: c.Subject}
}

package identity_test

import (
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/identity"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		held, wanted string
		want         bool
	}{
		{"runs:read", "runs:read", true},
		{"runs:read", "runs:cancel", false},
		{"runs:cancel", "runs:read", false}, // none implies another
		{"runs", "runs:read", false},
		{"runs:read", "runs", false},
		{"runs:read", "runs:read:x", false},
		{"runs:rea", "runs:read", false},
		{"Runs:read", "runs:read", false},
		{"*", "runs:read", true},
		{"*", "fermata:keys:write", true},
		{"runs:*", "runs:read", true},
		{"runs:*", "fermata:keys:write", false},
		{"runs:*", "runs", false},
		{"fermata:*", "fermata:keys:write", true},
		{"fermata:*:write", "fermata:keys:write", true},
		{"fermata:*:write", "fermata:keys:read", false},
		{"fermata:*:write", "fermata:keys:a:write", false},
		{"*:read", "runs:read", true},
		{"*:read", "fermata:keys:read", false},
		{"", "runs:read", false},
		{"", "", true},

		// A scope that is passed on may hold wildcards itself.
		{"runs:read", "runs:*", false},
		{"runs:*", "runs:*", true},
		{"runs:*", "*", false},
		{"*:read", "runs:*", false},
		{"fermata:*:write", "fermata:*", false},
		{"fermata:*:write", "fermata:*:write", true},
		{"fermata:*", "fermata:*:write", true},
		{"*", "*", true},
		{"*:*", "*", false},

		// The host's own take no wildcard.
		{"*", identity.HostAdmin, false},
		{"fermata:*", identity.HostAdmin, false},
		{"fermata:host:*", identity.HostAdmin, false},
		{"*", identity.Vouch, false},
		{"fermata:host:*", identity.Vouch, false},
		{identity.HostAdmin, identity.Vouch, false},
		{identity.Vouch, identity.Vouch, true},
		{"fermata:*:admin", identity.HostAdmin, false},
		{"*", "fermata:host:*", false},
		{identity.HostAdmin, identity.HostAdmin, true},
		{identity.HostAdmin, "runs:read", false},
	} {
		if got := identity.Covers(c.held, c.wanted); got != c.want {
			t.Errorf("%q covers %q: %v", c.held, c.wanted, got)
		}
	}
}

// FuzzCovers: whatever a passed-on scope stands for, whoever passed it on has.
func FuzzCovers(f *testing.F) {
	f.Add("runs:*", "runs:*", "runs:read")
	f.Add("*", "fermata:*", "fermata:host:admin")
	f.Add("a:*:c", "a:*", "a:b:c")
	f.Add("*:*", "*", "x")
	f.Fuzz(func(t *testing.T, mine, passed, wanted string) {
		if strings.Contains(wanted, "*") {
			t.Skip()
		}
		if identity.Covers(mine, passed) && identity.Covers(passed, wanted) && !identity.Covers(mine, wanted) {
			t.Errorf("%q has passed on %q, and with it %q, which it does not have", mine, passed, wanted)
		}
	})
}

// Each role has what the one below it has, and no role reaches beyond its tenant.
func TestCatalogue(t *testing.T) {
	holder := func(role string) identity.Caller {
		scopes, ok := identity.RoleScopes(role)
		if !ok {
			t.Fatalf("there is no role %s", role)
		}
		return identity.Caller{Scopes: scopes}
	}
	for _, pair := range [][2]string{{identity.Owner, identity.Admin}, {identity.Admin, identity.Editor}, {identity.Admin, identity.ApproverFor},
		{identity.Editor, identity.Viewer}, {identity.ApproverFor, identity.Viewer}} {
		if s, ok := holder(pair[0]).HoldsAll(holder(pair[1]).Scopes); !ok {
			t.Errorf("%s lacks the scope %s of %s", pair[0], s, pair[1])
		}
		if _, ok := holder(pair[1]).HoldsAll(holder(pair[0]).Scopes); ok {
			t.Errorf("%s may do all that %s may", pair[1], pair[0])
		}
	}
	for _, r := range identity.Catalogue() {
		if holder(r.Role).Holds(identity.HostAdmin) {
			t.Errorf("%s administers the host", r.Role)
		}
	}
	for role, lacks := range map[string]string{identity.Admin: identity.RolesWrite, identity.Editor: identity.ApprovalsRespond,
		identity.ApproverFor: identity.RunsCreate, identity.Viewer: identity.RunsCancel} {
		if holder(role).Holds(lacks) {
			t.Errorf("%s holds %s", role, lacks)
		}
	}
	list := identity.Catalogue()
	list[0].Scopes[0] = "runs:read"
	if s, _ := identity.RoleScopes(identity.Owner); s[0] != "*" {
		t.Error("the catalogue can be changed from outside")
	}
}

func TestMemberIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range [][2]string{{"a", "b"}, {"ab", ""}, {"", "ab"}, {"a", "B"}, {"https://a", "b"}, {"https://a/", "b"}} {
		id := identity.MemberID(p[0], p[1])
		if seen[id] || id != identity.MemberID(p[0], p[1]) {
			t.Errorf("%v: %s", p, id)
		}
		seen[id] = true
	}
}

package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
)

func gateOf(kind, data string) *run.Interrupt {
	return &run.Interrupt{Request: event.Interrupt{Kind: kind, Data: []byte(data)}}
}

// The one judgement of who may answer.
func TestApprover(t *testing.T) {
	ann := claims("", day).Subject // urn:test, ann
	of := identity.Membership{Groups: []string{"ops", "dev"}, Roles: []string{"lead"}, Source: "test"}
	for _, c := range []struct {
		kind, data string
		ground     run.Ground
		refused    bool
	}{
		{"approval", `{"actions":["accept"]}`, run.Ground{Eligibility: "open"}, false},
		{"approval", `{"approversList":[],"approverGroupRefs":[],"approverRoleRefs":[]}`, run.Ground{Eligibility: "open"}, false},
		{"approval", `{"approversList":["bob","ann"]}`, run.Ground{Eligibility: "listed"}, false},
		{"approval", `{"approversList":["bob"]}`, run.Ground{}, true},
		{"approval", `{"approversList":["Ann"]}`, run.Ground{}, true},
		{"approval", `{"approversList":["urn:test/ann"]}`, run.Ground{Eligibility: "listed"}, false},
		{"approval", `{"approversList":["https://idp.example/ann"]}`, run.Ground{}, true},
		{"approval", `{"approversList":["/ann"]}`, run.Ground{}, true},
		{"approval", `{"approverGroupRefs":["hr","dev"]}`, run.Ground{Eligibility: "group", Ref: "dev", Source: "test"}, false},
		{"approval", `{"approverRoleRefs":["lead"]}`, run.Ground{Eligibility: "role", Ref: "lead", Source: "test"}, false},
		{"approval", `{"approverGroupRefs":["lead"],"approverRoleRefs":["ops"]}`, run.Ground{}, true}, // a role is no group
		{"approval", `{"approversList":["bob"],"approverGroupRefs":["ops"]}`, run.Ground{Eligibility: "group", Ref: "ops", Source: "test"}, false},
		{"approval", `{"approversList":["ann"],"approverGroupRefs":["hr"]}`, run.Ground{Eligibility: "listed"}, false},
		{"approval", `{"approverGroupRefs":[""]}`, run.Ground{}, true},
		{"approval", `{"approversList":["bob"],"audience":{"subjects":["ann"],"groups":["ops"]}}`, run.Ground{}, true}, // told, not eligible
		{"clarification", `{"approversList":["bob"]}`, run.Ground{}, false},
	} {
		ground, err := Approver(ann, of, nil)(gateOf(c.kind, c.data))
		if ground != c.ground || problem.Is(err, problem.Forbidden) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s %s: %+v, %v", c.kind, c.data, ground, err)
		}
	}
}

func TestOverridePrincipals(t *testing.T) {
	ann := claims("", day).Subject
	of := identity.Membership{Groups: []string{"ops"}, Roles: []string{"lead"}, Source: "test"}
	for entry, want := range map[string]bool{
		"ann": true, "urn:test/ann": true, "bob": false, "group:ops": true, "group:lead": false, "role:lead": true,
		"role:ops": false, "role:": false, "group:": false, "ops": false, "lead": false, "urn:other/ann": false, "": false,
	} {
		g, err := Approver(ann, of, Override{entry})(gateOf("approval", `{}`))
		if err != nil || g.Override != want {
			t.Errorf("%q: %+v, %v", entry, g, err)
		}
	}
	// Whoever may not answer does not override, either.
	if g, err := Approver(ann, of, Override{"ann"})(gateOf("approval", `{"approversList":["bob"]}`)); err == nil || g.Override {
		t.Errorf("%+v, %v", g, err)
	}
}

// fakeDirectory answers with what it holds, and counts.
type fakeDirectory struct {
	of    identity.Membership
	err   error
	asked int
}

func (d *fakeDirectory) Memberships(context.Context, event.Subject) (identity.Membership, error) {
	d.asked++
	return d.of, d.err
}

func (d *fakeDirectory) Add(context.Context, string, string, string, identity.Grants, time.Time) (string, error) {
	return "", errors.New("not here")
}

// Where a membership is looked up: with the credential, else in the keys, and in
// the embedder's directory before either. Whoever cannot be looked up gets in by
// nothing that needs it, and by everything that does not.
func TestWhereMembershipsAreLookedUp(t *testing.T) {
	ann := claims("", day).Subject
	keys := &fakeDirectory{of: identity.Membership{Groups: []string{"from-keys"}, Source: identity.KeySource}}
	own := &fakeDirectory{of: identity.Membership{Groups: []string{"from-embedder"}, Source: "embedder"}}
	withKey := identity.Caller{Subject: ann, Membership: identity.Membership{Groups: []string{"from-credential"}, Source: identity.KeySource}}
	byToken := identity.Caller{Subject: ann}
	group := func(h *Host, c identity.Caller) string {
		t.Helper()
		m, err := h.member(t.Context(), c)
		if err != nil || len(m.of.Groups) > 1 {
			t.Fatalf("%+v, %v", m, err)
		}
		if len(m.of.Groups) == 0 {
			return ""
		}
		return m.of.Groups[0]
	}
	h := &Host{cfg: Config{Keys: keys}}
	if g := group(h, withKey); g != "from-credential" || keys.asked != 0 {
		t.Errorf("with a credential: %q, asked %d", g, keys.asked)
	}
	if g := group(h, byToken); g != "from-keys" || keys.asked != 1 {
		t.Errorf("by token: %q, asked %d", g, keys.asked)
	}
	h.cfg.Directory = own
	if g, f := group(h, withKey), group(h, byToken); g != "from-embedder" || f != g || keys.asked != 1 {
		t.Errorf("with a directory: %q and %q, keys asked %d", g, f, keys.asked)
	}
	if g := group(&Host{}, byToken); g != "" {
		t.Errorf("without anybody to ask: %q", g)
	}

	own.err = errors.New("the directory is down")
	m, err := h.member(t.Context(), withKey)
	if err != nil {
		t.Fatal(err)
	}
	judge := m.judge(Override{"group:from-credential"})
	if _, err := judge(gateOf("approval", `{"approverGroupRefs":["from-credential"]}`)); !problem.Is(err, problem.ServiceUnavailable) {
		t.Errorf("a gate that names a group: %v", err)
	}
	if _, err := judge(gateOf("approval", `{"approversList":["bob"]}`)); !problem.Is(err, problem.Forbidden) {
		t.Errorf("a gate that lists somebody else: %v", err)
	}
	for _, data := range []string{`{}`, `{"approversList":["ann"],"approverRoleRefs":["lead"]}`} {
		if g, err := judge(gateOf("approval", data)); err != nil || g.Override {
			t.Errorf("%s: %+v, %v", data, g, err)
		}
	}
	own.err = problem.New(problem.CredentialRevoked, "gone")
	if _, err := h.member(t.Context(), byToken); !problem.Is(err, problem.Forbidden) {
		t.Errorf("a token of a revoked credential: %v", err)
	}
}

func TestKeysArePassedOnWithinBounds(t *testing.T) {
	h := &Host{cfg: Config{Keys: &fakeDirectory{}}, clock: clock.System{}}
	long := make([]string, maxGrants+1)
	for i := range long {
		long[i] = "g"
	}
	admin := asCaller("acme", identity.KeysWrite, "runs:read")
	for name, c := range map[string]struct {
		by   identity.Caller
		want NewKey
		code problem.Code
	}{
		"no scope for it":       {asCaller("acme", "runs:read"), NewKey{Scopes: []string{"runs:read"}}, problem.Forbidden},
		"no caller":             {identity.Caller{}, NewKey{Scopes: []string{"runs:read"}}, problem.Unauthenticated},
		"a scope one lacks":     {admin, NewKey{Scopes: []string{"runs:read", "runs:create"}}, problem.Forbidden},
		"everything":            {admin, NewKey{Scopes: []string{"*"}}, problem.Forbidden},
		"nothing":               {admin, NewKey{}, problem.ValidationError},
		"no scope's spelling":   {admin, NewKey{Scopes: []string{"Runs read"}}, problem.ValidationError},
		"an empty group":        {admin, NewKey{Scopes: []string{"runs:read"}, Groups: []string{""}}, problem.ValidationError},
		"a role of two lines":   {admin, NewKey{Scopes: []string{"runs:read"}, Roles: []string{"a\nb"}}, problem.ValidationError},
		"more groups than fit":  {admin, NewKey{Scopes: []string{"runs:read"}, Groups: long}, problem.ValidationError},
		"a name without an end": {admin, NewKey{Scopes: []string{"runs:read"}, Name: string(make([]byte, maxKeyName+1))}, problem.ValidationError},
	} {
		if _, err := h.CreateKey(t.Context(), c.by, c.want); !problem.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

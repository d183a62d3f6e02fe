package identity_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// memory is a store of keys.
type memory struct{ keys []store.Key }

func (m *memory) Add(_ context.Context, k store.Key) error { m.keys = append(m.keys, k); return nil }
func (m *memory) Count(context.Context) (int, error)       { return len(m.keys), nil }
func (m *memory) ByHash(_ context.Context, h []byte) (store.Key, error) {
	for _, k := range m.keys {
		if bytes.Equal(k.Hash, h) {
			return k, nil
		}
	}
	return store.Key{}, store.ErrNotFound
}

func (m *memory) ByID(_ context.Context, tenant, id string) (store.Key, error) {
	for _, k := range m.keys {
		if k.ID == id && k.Tenant == tenant {
			return k, nil
		}
	}
	return store.Key{}, store.ErrNotFound
}

// What a holder belongs to comes with the key, and can be asked for without it.
func TestMemberships(t *testing.T) {
	ctx := t.Context()
	m := &memory{}
	keys := identity.NewAPIKeys(m)
	key := identity.Generate()
	id, err := keys.Add(ctx, key, "acme", "a key", identity.Grants{Scopes: []string{"runs:read"}, Groups: []string{"ops"}, Roles: []string{"lead"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.Authenticate(ctx, "Bearer "+key)
	if err != nil || c.Subject.SubjectID != id || c.Holds(identity.RunsCreate) || !c.Holds(identity.RunsRead) {
		t.Fatalf("%+v, %v", c, err)
	}
	same := func(of identity.Membership) bool {
		return slices.Equal(of.Groups, []string{"ops"}) && slices.Equal(of.Roles, []string{"lead"}) && of.Source == identity.KeySource
	}
	if of, err := keys.Memberships(ctx, c.Subject); err != nil || !same(of) || !same(c.Membership) {
		t.Errorf("%+v, %+v, %v", of, c.Membership, err)
	}
	for name, change := range map[string]func(*event.Subject){
		"another tenant":  func(s *event.Subject) { s.Tenant = "other" },
		"another issuer":  func(s *event.Subject) { s.Issuer = "https://idp.example" },
		"another subject": func(s *event.Subject) { s.SubjectID = "key-nobody" },
	} {
		s := c.Subject
		change(&s)
		if of, err := keys.Memberships(ctx, s); err != nil || len(of.Groups)+len(of.Roles) > 0 {
			t.Errorf("%s: %+v, %v", name, of, err)
		}
	}
	m.keys[0].RevokedAt = time.Now()
	if _, err := keys.Memberships(ctx, c.Subject); !problem.Is(err, problem.CredentialRevoked) {
		t.Errorf("revoked: %v", err)
	}
}

func TestAuthenticate(t *testing.T) {
	ctx := t.Context()
	m := &memory{}
	keys := identity.NewAPIKeys(m)
	good, gone := identity.Generate(), identity.Generate()
	for _, k := range []string{good, gone} {
		if _, err := keys.Add(ctx, k, "acme", "a key", identity.Grants{}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	m.keys[1].RevokedAt = time.Now()

	c, err := keys.Authenticate(ctx, "Bearer "+good)
	if err != nil || c.Tenant() != "acme" || !c.Holds(identity.RunsCreate) {
		t.Fatalf("a good key: %+v, %v", c, err)
	}
	if _, err := keys.Authenticate(ctx, "bearer "+good); err != nil {
		t.Errorf("a scheme's case matters: %v", err)
	}
	for name, header := range map[string]string{
		"none":          "",
		"no scheme":     good,
		"another":       "Basic " + good,
		"empty":         "Bearer ",
		"short":         "Bearer " + good[:10],
		"cut":           "Bearer " + good[:len(good)-1],
		"longer":        "Bearer " + good + "a",
		"two spaces":    "Bearer  " + good,
		"huge":          "Bearer " + strings.Repeat("a", 100_000),
		"never existed": "Bearer " + identity.Generate(),
	} {
		if _, err := keys.Authenticate(ctx, header); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := keys.Authenticate(ctx, "Bearer "+gone); !problem.Is(err, problem.CredentialRevoked) {
		t.Errorf("a revoked key: %v", err)
	}
}

// The store holds nothing from which a key could be had.
func TestKeysAreStoredAsHashes(t *testing.T) {
	m := &memory{}
	key := identity.Generate()
	if _, err := identity.NewAPIKeys(m).Add(t.Context(), key, "acme", "a key", identity.Grants{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	k := m.keys[0]
	for _, s := range []string{k.ID, k.Name, k.Tenant, string(k.Hash)} {
		if strings.Contains(s, key) || strings.Contains(key, s) && len(s) > 4 {
			t.Errorf("the row holds %q of the key", s)
		}
	}
	if len(k.Hash) != 32 {
		t.Errorf("the hash has %d bytes", len(k.Hash))
	}
}

func TestGeneratedKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := identity.Generate()
		if seen[k] || len(k) < identity.MinKeyLength {
			t.Fatalf("%q", k)
		}
		seen[k] = true
	}
}

func TestShortKeysAreNotAdded(t *testing.T) {
	m := &memory{}
	if _, err := identity.NewAPIKeys(m).Add(t.Context(), "short", "acme", "x", identity.Grants{}, time.Now()); err == nil || len(m.keys) > 0 {
		t.Errorf("%v, %d keys", err, len(m.keys))
	}
}

// The mark of a caller within the process cannot come out of nothing.
func TestCallerOfThisProcess(t *testing.T) {
	if _, ok := identity.FromContext(t.Context()); ok {
		t.Error("a bare context has a caller")
	}
	c, ok := identity.FromContext(identity.WithCaller(t.Context(), identity.Local("acme")))
	if !ok || c.Tenant() != "acme" || !c.Holds(identity.ApprovalsRespond) {
		t.Errorf("%+v, %v", c, ok)
	}
}

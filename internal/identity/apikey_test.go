package identity_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/sqlite"
)

// ring is keys over a store, at a time that only the test moves.
type ring struct {
	*identity.APIKeys
	t  testing.TB
	db store.Store
	mu sync.Mutex
	at time.Time
}

func (r *ring) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

func (r *ring) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = r.at.Add(d)
}

func newRing(t testing.TB) *ring {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r := &ring{t: t, db: db, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	r.open()
	return r
}

// open is what another process, or this one after a restart, would have.
func (r *ring) open() {
	r.t.Helper()
	keys, err := identity.OpenAPIKeys(r.t.Context(), r.db.Keys(), r.db.Secrets(), r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	r.APIKeys = keys
}

func (r *ring) add(g identity.Grants) (key, id string) {
	r.t.Helper()
	key = identity.Generate()
	id, err := r.Add(r.t.Context(), key, "acme", "a key", g, r.now())
	if err != nil {
		r.t.Fatal(err)
	}
	return key, id
}

func (r *ring) row(id string) store.Key {
	r.t.Helper()
	k, err := r.db.Keys().ByID(r.t.Context(), "acme", id)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// opens wants a key to be taken, or refused with a code.
func (r *ring) opens(key string, code problem.Code) identity.Caller {
	r.t.Helper()
	c, err := r.Authenticate(r.t.Context(), "Bearer "+key)
	if code == "" && err != nil || code != "" && !problem.Is(err, code) {
		r.t.Errorf("the key is answered %v, want %q", err, code)
	}
	return c
}

// What a holder belongs to comes with the key, and can be asked for without it.
func TestMemberships(t *testing.T) {
	ctx := t.Context()
	r := newRing(t)
	key, id := r.add(identity.Grants{Scopes: []string{"runs:read"}, Groups: []string{"ops"}, Roles: []string{"lead"}, Kind: "agent", Workspace: "eu"})
	c := r.opens(key, "")
	if c.Subject.SubjectID != id || c.Holds(identity.RunsCreate) || !c.Holds(identity.RunsRead) || c.Subject.Kind != "agent" || c.Workspace != "eu" ||
		c.Owner().Workspace != "eu" {
		t.Fatalf("%+v", c)
	}
	same := func(of identity.Membership) bool {
		return slices.Equal(of.Groups, []string{"ops"}) && slices.Equal(of.Roles, []string{"lead"}) && of.Source == identity.KeySource
	}
	if of, err := r.Memberships(ctx, c.Subject); err != nil || !same(of) || !same(c.Membership) {
		t.Errorf("%+v, %+v, %v", of, c.Membership, err)
	}
	for name, change := range map[string]func(*event.Subject){
		"another tenant":  func(s *event.Subject) { s.Tenant = "other" },
		"another issuer":  func(s *event.Subject) { s.Issuer = "https://idp.example" },
		"another subject": func(s *event.Subject) { s.SubjectID = "key-nobody" },
	} {
		s := c.Subject
		change(&s)
		if of, err := r.Memberships(ctx, s); err != nil || len(of.Groups)+len(of.Roles) > 0 {
			t.Errorf("%s: %+v, %v", name, of, err)
		}
	}
	if err := r.Revoke(ctx, r.row(id), r.now()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Memberships(ctx, c.Subject); !problem.Is(err, problem.CredentialRevoked) {
		t.Errorf("revoked: %v", err)
	}
}

func TestAuthenticate(t *testing.T) {
	ctx := t.Context()
	r := newRing(t)
	good, _ := r.add(identity.Grants{})
	if c := r.opens(good, ""); c.Tenant() != "acme" || !c.Holds(identity.RunsCreate) || c.Holds(identity.HostAdmin) {
		t.Fatalf("a good key: %+v", c)
	}
	if _, err := r.Authenticate(ctx, "bearer "+good); err != nil {
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
		if _, err := r.Authenticate(ctx, header); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A key ends on the next request, not when something forgets it.
func TestKeysEnd(t *testing.T) {
	ctx := t.Context()
	r := newRing(t)
	revoked, id := r.add(identity.Grants{})
	short, _ := r.add(identity.Grants{ExpiresAt: r.now().Add(time.Hour)})
	for range 3 {
		r.opens(revoked, "")
		r.opens(short, "")
	}
	was := r.row(id)
	if err := r.Revoke(ctx, was, r.now()); err != nil {
		t.Fatal(err)
	}
	r.opens(revoked, problem.CredentialRevoked)
	if err := r.Replace(ctx, was, identity.Generate(), r.now().Add(time.Hour)); !errors.Is(err, store.ErrStale) {
		t.Errorf("a revoked key was replaced by somebody who had read it before: %v", err)
	}
	r.opens(revoked, problem.CredentialRevoked)
	r.pass(time.Hour - time.Millisecond)
	r.opens(short, "")
	r.pass(time.Millisecond)
	r.opens(short, problem.Unauthenticated)
}

// While a key is replaced both open, as one holder; then the new one alone.
func TestRotation(t *testing.T) {
	ctx := t.Context()
	r := newRing(t)
	first, id := r.add(identity.Grants{Groups: []string{"ops"}})
	second, third := identity.Generate(), identity.Generate()
	replace := func(key string, overlap time.Duration) {
		t.Helper()
		if err := r.Replace(ctx, r.row(id), key, r.now().Add(overlap)); err != nil {
			t.Fatal(err)
		}
	}
	r.opens(first, "")
	replace(second, time.Hour)
	for _, k := range []string{first, second} {
		if c := r.opens(k, ""); c.Subject.SubjectID != id || !slices.Equal(c.Groups, []string{"ops"}) {
			t.Errorf("%+v", c)
		}
	}
	r.pass(time.Hour)
	r.opens(first, problem.CredentialRevoked)
	r.opens(second, "")
	replace(third, time.Hour)
	r.opens(first, problem.Unauthenticated) // two before: nothing remembers it
	r.opens(second, "")
	r.opens(third, "")
	replace(identity.Generate(), 0)
	r.opens(third, problem.CredentialRevoked)
	r.opens(second, problem.Unauthenticated)
	if err := r.Revoke(ctx, r.row(id), r.now()); err != nil {
		t.Fatal(err)
	}
	r.opens(third, problem.CredentialRevoked)
}

// The store holds nothing from which a key could be had, not even by whoever
// guesses keys: the hash is of no use without the host's secret.
func TestKeysAreStoredAsHashes(t *testing.T) {
	r := newRing(t)
	key, id := r.add(identity.Grants{})
	k := r.row(id)
	for _, s := range []string{k.ID, k.Name, k.Tenant, string(k.Hash)} {
		if strings.Contains(s, key) || strings.Contains(key, s) && len(s) > 4 {
			t.Errorf("the row holds %q of the key", s)
		}
	}
	sum := sha256.Sum256([]byte(key))
	if len(k.Hash) != 32 || !k.Keyed || bytes.Equal(k.Hash, sum[:]) {
		t.Errorf("the hash is %x", k.Hash)
	}
	other := newRing(t)
	if _, err := other.Add(t.Context(), key, "acme", "a key", identity.Grants{}, r.now()); err != nil {
		t.Fatal(err)
	}
	list, err := other.db.Keys().List(t.Context(), "acme", "", 1)
	if err != nil || len(list) != 1 || bytes.Equal(list[0].Hash, k.Hash) || list[0].ID == k.ID {
		t.Errorf("two hosts know one key by the same: %+v, %v", list, err)
	}
}

// Keys of an older version open as before, under hashes of the present form, and
// without the host's secret none is taken for unknown: the host does not start.
func TestOldHashes(t *testing.T) {
	ctx := t.Context()
	r := newRing(t)
	var old []string
	for i := range 600 { // more than one batch
		key := identity.Generate()
		sum := sha256.Sum256([]byte(key))
		err := r.db.Keys().Add(ctx, store.Key{ID: "key-" + key[10:20] + string(rune('a'+i%26)), Hash: sum[:], Tenant: "acme", Scopes: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, key)
	}
	r.opens(old[0], problem.Unauthenticated) // the store has them, in no form that is looked for
	r.open()
	for _, key := range old {
		if c := r.opens(key, ""); c.Subject.Kind != "user" {
			t.Fatalf("%+v", c)
		}
	}
	if left, err := r.db.Keys().Unkeyed(ctx, 9); err != nil || len(left) > 0 {
		t.Errorf("%d left, %v", len(left), err)
	}
	r.open()
	r.opens(old[0], "")

	list, err := r.db.Secrets().List(ctx, "api-key-pepper")
	if err != nil || len(list) != 1 {
		t.Fatalf("%d secrets, %v", len(list), err)
	}
	if err := r.db.Secrets().Drop(ctx, "api-key-pepper", list[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.OpenAPIKeys(ctx, r.db.Keys(), r.db.Secrets(), r.now); err == nil {
		t.Error("keys were opened without the secret they are hashed with")
	}
	if list, err := r.db.Secrets().List(ctx, "api-key-pepper"); err != nil || len(list) > 0 {
		t.Errorf("another secret was made beside the one that is gone: %d, %v", len(list), err)
	}
}

// touches counts what a store is told of uses.
type touches struct {
	store.Keys
	mu   sync.Mutex
	told []store.Used
}

func (x *touches) Touch(ctx context.Context, used []store.Used) error {
	x.mu.Lock()
	x.told = append(x.told, used...)
	x.mu.Unlock()
	return x.Keys.Touch(ctx, used)
}

// A use costs a request no write, and a key one a minute at most.
func TestUses(t *testing.T) {
	ctx := t.Context()
	r := newRing(t)
	x := &touches{Keys: r.db.Keys()}
	var err error
	if r.APIKeys, err = identity.OpenAPIKeys(ctx, x, r.db.Secrets(), r.now); err != nil {
		t.Fatal(err)
	}
	key, id := r.add(identity.Grants{})
	idle, _ := r.add(identity.Grants{})
	flush := func(want int) {
		t.Helper()
		if err := r.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if len(x.told) != want {
			t.Fatalf("%d uses written, want %d", len(x.told), want)
		}
	}
	first := r.now()
	for range 1000 {
		r.opens(key, "")
	}
	flush(1)
	for range 3 {
		r.pass(15 * time.Second)
		r.opens(key, "")
		flush(1)
	}
	if at := r.row(id).UsedAt; !at.Equal(first) {
		t.Errorf("last used at %v, want %v", at, first)
	}
	r.pass(15 * time.Second)
	r.opens(key, "")
	r.opens(idle, "")
	flush(3)
	if at := r.row(id).UsedAt; !at.Equal(r.now()) {
		t.Errorf("last used at %v, want %v", at, r.now())
	}
	// What was refused is no use.
	r.pass(time.Hour)
	if err := r.Revoke(ctx, r.row(id), r.now()); err != nil {
		t.Fatal(err)
	}
	r.opens(key, problem.CredentialRevoked)
	flush(3)
}

func TestGeneratedKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := identity.Generate()
		if seen[k] || identity.CheckKey(k) != nil {
			t.Fatalf("%q", k)
		}
		seen[k] = true
	}
}

func TestKeysThatAreNotAdded(t *testing.T) {
	r := newRing(t)
	for _, k := range []string{"short", strings.Repeat("a", 513), strings.Repeat("a ", 20), strings.Repeat("é", 40), strings.Repeat("a", 40) + "\n"} {
		if _, err := r.Add(t.Context(), k, "acme", "x", identity.Grants{}, r.now()); err == nil {
			t.Errorf("%.20q was added", k)
		}
	}
	if _, err := r.Add(t.Context(), identity.Generate(), "a/b", "x", identity.Grants{}, r.now()); err == nil {
		t.Error("a key of no tenant was added")
	}
	if any, err := r.Any(t.Context()); err != nil || any {
		t.Errorf("%v, %v", any, err)
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

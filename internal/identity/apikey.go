package identity

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// KeyRealm is the trust root of API keys (spec v2 identity.md §2.2).
const KeyRealm = "urn:fermata:api-key"

// KeySource names API keys as the place where a membership was looked up.
const KeySource = "api-key"

// MinKeyLength is the least length of an API key, in characters. A key is hashed
// with a fast hash, which is sound only for keys nobody can guess.
const MinKeyLength = 32

// maxKeyLength keeps a hostile header from being hashed at length.
const maxKeyLength = 512

// APIKeys authenticates bearer API keys. Only their hashes are known. What it
// answers is as the store is at that moment: nothing is remembered here but uses.
type APIKeys struct {
	store  store.Keys
	pepper []byte
	now    func() time.Time
	uses   uses
}

// OpenAPIKeys makes the lane over a store. It makes the host's secret in the hashes
// where there is none, and brings hashes of an older form into the present one.
func OpenAPIKeys(ctx context.Context, keys store.Keys, secrets store.Secrets, now func() time.Time) (*APIKeys, error) {
	pepper, err := findPepper(ctx, keys, secrets, now())
	if err == nil {
		err = modernize(ctx, keys, pepper)
	}
	if err != nil {
		return nil, err
	}
	return &APIKeys{store: keys, pepper: pepper, now: now}, nil
}

// Generate makes a new key of 256 random bits.
func Generate() string {
	b := make([]byte, 32)
	rand.Read(b)
	return "fermata_" + base64.RawURLEncoding.EncodeToString(b)
}

// NewKeyID mints the id by which the holder of a key is known.
func NewKeyID() string {
	b := make([]byte, 12)
	rand.Read(b)
	return "key-" + base64.RawURLEncoding.EncodeToString(b)
}

func (k *APIKeys) hash(key string) []byte { return keyed(k.pepper, plain(key)) }

// Grants is what comes with a key.
type Grants struct {
	ID        string   // minted if empty
	Scopes    []string // nil for every scope of the tenant
	Groups    []string
	Roles     []string
	Kind      string    // user if empty
	Workspace string    // empty for the whole tenant
	ExpiresAt time.Time // zero for never
}

// CheckKey reports whether a key that somebody has chosen can be one.
func CheckKey(key string) error {
	if len(key) < MinKeyLength || len(key) > maxKeyLength || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("an API key has 32 to 512 characters of printable ASCII and no spaces")
	}
	return nil
}

// Add stores a key's hash for a tenant, and returns the id by which the key's
// holder is known: the subjectId of everything done with it. The key can be
// replaced; the id stays.
func (k *APIKeys) Add(ctx context.Context, key, tenant, name string, g Grants, now time.Time) (id string, err error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	if !ids.ValidTenant(tenant) {
		return "", errors.New("not a tenant id: " + tenant)
	}
	if g.Scopes == nil {
		g.Scopes = []string{allScopes}
	}
	if g.Kind == "" {
		g.Kind = "user"
	}
	if g.ID == "" {
		g.ID = NewKeyID()
	}
	row := store.Key{
		ID: g.ID, Hash: k.hash(key), Keyed: true, Tenant: tenant, Name: name, Kind: g.Kind, Workspace: g.Workspace,
		Scopes: g.Scopes, Groups: g.Groups, Roles: g.Roles, CreatedAt: now, ExpiresAt: g.ExpiresAt,
	}
	return row.ID, k.store.Add(ctx, row)
}

// Replace gives a key another secret. The one before opens until the given time,
// and one before that no more. It fails with store.ErrStale if the key has changed
// since it was read.
func (k *APIKeys) Replace(ctx context.Context, was store.Key, key string, until time.Time) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	was.OldHash, was.OldUntil = was.Hash, until
	was.Hash, was.Keyed = k.hash(key), true
	return k.store.Update(ctx, was)
}

// Revoke ends a key, and whatever it has been replaced for.
func (k *APIKeys) Revoke(ctx context.Context, was store.Key, now time.Time) error {
	was.RevokedAt = now
	return k.store.Update(ctx, was)
}

// Memberships looks up what the holder of a key belongs to now. A key that is
// revoked or gone belongs to nothing, and is told from one that is in no group:
// the error is CredentialRevoked.
func (k *APIKeys) Memberships(ctx context.Context, s event.Subject) (Membership, error) {
	row, err := k.store.ByID(ctx, s.Tenant, s.SubjectID)
	if s.Issuer != KeyRealm || errors.Is(err, store.ErrNotFound) {
		return Membership{Source: KeySource}, nil
	}
	if err != nil {
		return Membership{}, err
	}
	if !row.RevokedAt.IsZero() || k.expired(&row) {
		return Membership{}, problem.New(problem.CredentialRevoked, "the API key is not valid any more")
	}
	return membershipOf(row), nil
}

func membershipOf(row store.Key) Membership {
	return Membership{Groups: row.Groups, Roles: row.Roles, Source: KeySource}
}

// Any reports whether there is a key at all.
func (k *APIKeys) Any(ctx context.Context) (bool, error) {
	n, err := k.store.Count(ctx)
	return n > 0, err
}

func (k *APIKeys) expired(row *store.Key) bool {
	return !row.ExpiresAt.IsZero() && !k.now().Before(row.ExpiresAt)
}

// Authenticate turns the value of an Authorization header into a caller. It
// fails closed: whatever is not a valid key is refused.
func (k *APIKeys) Authenticate(ctx context.Context, header string) (Caller, error) {
	scheme, key, ok := strings.Cut(header, " ")
	if header == "" {
		return Caller{}, problem.New(problem.Unauthenticated, "a credential is required: send Authorization: Bearer <API key>")
	}
	invalid := problem.New(problem.Unauthenticated, "the credential is not a valid API key")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(key) < MinKeyLength || len(key) > maxKeyLength {
		return Caller{}, invalid
	}
	hash := k.hash(key)
	row, err := k.store.ByHash(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return Caller{}, invalid
	}
	if err != nil {
		return Caller{}, err
	}
	// Only whoever has the key gets here: to hear what has become of it tells
	// nobody else anything.
	now := k.now()
	switch {
	case !row.RevokedAt.IsZero():
		return Caller{}, problem.New(problem.CredentialRevoked, "the API key has been revoked")
	case k.expired(&row):
		return Caller{}, problem.New(problem.Unauthenticated, "the API key has expired").With("reason", "key-expired")
	case !bytes.Equal(hash, row.Hash) && !now.Before(row.OldUntil):
		return Caller{}, problem.New(problem.CredentialRevoked, "the API key has been replaced")
	}
	k.uses.note(row.Tenant, row.ID, now)
	return Caller{
		Subject: event.Subject{Issuer: KeyRealm, SubjectID: row.ID, Tenant: row.Tenant, Lane: "api-key", Kind: row.Kind},
		Scopes:  row.Scopes, Membership: membershipOf(row), Workspace: row.Workspace,
	}, nil
}

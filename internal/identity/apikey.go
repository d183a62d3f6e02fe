package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
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
// with one round of SHA-256, which is sound only for keys nobody can guess.
const MinKeyLength = 32

// maxKeyLength keeps a hostile header from being hashed at length.
const maxKeyLength = 512

// APIKeys authenticates bearer API keys. Only their hashes are known.
type APIKeys struct{ store store.Keys }

// NewAPIKeys makes the lane over a store.
func NewAPIKeys(s store.Keys) *APIKeys { return &APIKeys{s} }

// Generate makes a new key of 256 random bits.
func Generate() string {
	b := make([]byte, 32)
	rand.Read(b)
	return "fermata_" + base64.RawURLEncoding.EncodeToString(b)
}

func hash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// KeyID is the id by which a key's holder is known. The key does not follow from it.
func KeyID(key string) string { return idOf(hash(key)) }

func idOf(hash []byte) string { return "key-" + base64.RawURLEncoding.EncodeToString(hash[:9]) }

// Grants is what comes with a key.
type Grants struct {
	Scopes []string // nil for every scope
	Groups []string
	Roles  []string
}

// Add stores a key's hash for a tenant, and returns the id by which the key's
// holder is known: the subjectId of everything done with it.
func (k *APIKeys) Add(ctx context.Context, key, tenant, name string, g Grants, now time.Time) (id string, err error) {
	if len(key) < MinKeyLength || len(key) > maxKeyLength || strings.ContainsAny(key, " \t\r\n") {
		return "", errors.New("an API key has 32 to 512 characters and no spaces")
	}
	if !ids.ValidTenant(tenant) {
		return "", errors.New("not a tenant id: " + tenant)
	}
	if g.Scopes == nil {
		g.Scopes = []string{allScopes}
	}
	h := hash(key)
	row := store.Key{
		ID: idOf(h), Hash: h, Tenant: tenant, Name: name,
		Scopes: g.Scopes, Groups: g.Groups, Roles: g.Roles, CreatedAt: now,
	}
	return row.ID, k.store.Add(ctx, row)
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
	if !row.RevokedAt.IsZero() {
		return Membership{}, problem.New(problem.CredentialRevoked, "the API key has been revoked")
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

// Authenticate turns the value of an Authorization header into a caller. It
// fails closed: whatever is not a valid key is refused.
func (k *APIKeys) Authenticate(ctx context.Context, header string) (Caller, error) {
	scheme, key, ok := strings.Cut(header, " ")
	if header == "" {
		return Caller{}, problem.New(problem.Unauthenticated, "a credential is required: send Authorization: Bearer <API key>")
	}
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(key) < MinKeyLength || len(key) > maxKeyLength {
		return Caller{}, problem.New(problem.Unauthenticated, "the credential is not a valid API key")
	}
	row, err := k.store.ByHash(ctx, hash(key))
	if errors.Is(err, store.ErrNotFound) {
		return Caller{}, problem.New(problem.Unauthenticated, "the credential is not a valid API key")
	}
	if err != nil {
		return Caller{}, err
	}
	if !row.RevokedAt.IsZero() {
		return Caller{}, problem.New(problem.CredentialRevoked, "the API key has been revoked")
	}
	return Caller{
		Subject: event.Subject{Issuer: KeyRealm, SubjectID: row.ID, Tenant: row.Tenant, Lane: "api-key", Kind: "user"},
		Scopes:  row.Scopes, Membership: membershipOf(row),
	}, nil
}

package host

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// KeyRing keeps API keys.
type KeyRing interface {
	Directory
	// Add stores a key and returns the id its holder is known by.
	Add(ctx context.Context, key, tenant, name string, g identity.Grants, now time.Time) (id string, err error)
	// Replace gives a key that has been read another secret; the one before opens
	// until the given time. store.ErrStale if the key has changed since.
	Replace(ctx context.Context, was store.Key, key string, until time.Time) error
	// Revoke ends a key that has been read. store.ErrStale likewise.
	Revoke(ctx context.Context, was store.Key, now time.Time) error
}

// Bounds of a key's life.
const (
	maxKeyLife    = 100 * 365 * 24 * time.Hour
	maxKeyOverlap = 30 * 24 * time.Hour
	keyOverlap    = 24 * time.Hour
)

// NewKey is the request for an API key of the caller's tenant.
type NewKey struct {
	Name      string
	Kind      string   // user if empty
	Workspace string   // empty for the whole tenant, or the caller's own
	Scopes    []string // at least one
	Groups    []string
	Roles     []string
	Seconds   int64 // to live; 0 for ever
}

// KeyInfo describes a key. It holds nothing of the key itself.
type KeyInfo struct {
	ID           string   `json:"keyId"` // the subjectId of its holder; what an approversList names
	Issuer       string   `json:"issuer"`
	SubjectID    string   `json:"subjectId"`
	Tenant       string   `json:"tenant"`
	Workspace    string   `json:"workspace,omitzero"`
	Name         string   `json:"name,omitzero"`
	Kind         string   `json:"kind"`
	Scopes       []string `json:"scopes"`
	Groups       []string `json:"groups"`
	Roles        []string `json:"roles"`
	State        string   `json:"state"` // active, expired or revoked
	CreatedAt    string   `json:"createdAt"`
	ExpiresAt    string   `json:"expiresAt,omitzero"`
	RevokedAt    string   `json:"revokedAt,omitzero"`
	LastUsedAt   string   `json:"lastUsedAt,omitzero"`           // to about a minute
	ReplacedEnds string   `json:"previousKeyExpiresAt,omitzero"` // while the key it was replaced for still opens
}

// IssuedKey is a new API key. The key itself is shown this once and kept nowhere.
type IssuedKey struct {
	Key string `json:"key"`
	KeyInfo
}

// KeyPage is one page of a tenant's keys.
type KeyPage struct {
	Keys       []KeyInfo `json:"keys"`
	NextCursor string    `json:"nextCursor,omitzero"`
}

func (h *Host) keyInfo(k store.Key) KeyInfo {
	now := h.clock.Now()
	out := KeyInfo{
		ID: k.ID, Issuer: identity.KeyRealm, SubjectID: k.ID, Tenant: k.Tenant, Workspace: k.Workspace, Name: k.Name, Kind: k.Kind,
		Scopes: append([]string{}, k.Scopes...), Groups: append([]string{}, k.Groups...), Roles: append([]string{}, k.Roles...),
		State: "active", CreatedAt: run.Stamp(k.CreatedAt), ExpiresAt: run.Stamp(k.ExpiresAt), RevokedAt: run.Stamp(k.RevokedAt),
		LastUsedAt: run.Stamp(k.UsedAt),
	}
	switch {
	case !k.RevokedAt.IsZero():
		out.State = "revoked"
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		out.State = "expired"
	case now.Before(k.OldUntil):
		out.ReplacedEnds = run.Stamp(k.OldUntil)
	}
	return out
}

// CreateKey makes an API key in the caller's tenant. It carries no scope that the
// caller does not hold. Groups and roles are for the caller to give: whoever may
// make keys says who is who. They are names that gates ask for; scopes come with
// the roles of members alone.
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
	now := h.clock.Now()
	g := identity.Grants{Scopes: r.Scopes, Groups: r.Groups, Roles: r.Roles, Kind: r.Kind, Workspace: r.Workspace}
	if r.Seconds > 0 {
		g.ExpiresAt = now.Add(time.Duration(r.Seconds) * time.Second)
	}
	g.ID = identity.NewKeyID()
	d := onKey("key.create", g.ID).with("name", r.Name).with("scopes", words(r.Scopes)).with("groups", words(r.Groups)).with("roles", words(r.Roles))
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (IssuedKey, error) {
		return h.issue(ctx, c.Tenant(), r.Name, g, now)
	})
}

func onKey(action, id string) deed {
	return deed{action: action, target: audit.Target{Type: "key", ID: id}}
}

func words(list []string) string { return strings.Join(list, " ") }

func (h *Host) issue(ctx context.Context, tenant, name string, g identity.Grants, now time.Time) (IssuedKey, error) {
	key := identity.Generate()
	id, err := h.cfg.Keys.Add(ctx, key, tenant, name, g, now)
	if err != nil {
		return IssuedKey{}, err
	}
	row, err := h.store.Keys().ByID(ctx, tenant, id)
	if err != nil {
		return IssuedKey{}, err
	}
	return IssuedKey{Key: key, KeyInfo: h.keyInfo(row)}, nil
}

// ListKeys reads a page of the keys of the caller's tenant, revoked ones too.
func (h *Host) ListKeys(ctx context.Context, c identity.Caller, cursor string, limit int) (KeyPage, error) {
	if err := h.allow(c, identity.KeysRead); err != nil {
		return KeyPage{}, err
	}
	p, err := h.page("keys", c.Tenant(), cursor, limit)
	if err != nil {
		return KeyPage{}, err
	}
	rows, err := h.store.Keys().List(ctx, c.Tenant(), p.after, p.limit+1)
	if err != nil {
		return KeyPage{}, err
	}
	out := KeyPage{Keys: []KeyInfo{}}
	rows, out.NextCursor = cutPage(p, rows, func(k store.Key) string { return k.ID })
	for _, k := range rows {
		out.Keys = append(out.Keys, h.keyInfo(k))
	}
	return out, nil
}

// Key reads one key of the caller's tenant.
func (h *Host) Key(ctx context.Context, c identity.Caller, id string) (KeyInfo, error) {
	if err := h.allow(c, identity.KeysRead); err != nil {
		return KeyInfo{}, err
	}
	row, err := h.key(ctx, c, id)
	if err != nil {
		return KeyInfo{}, err
	}
	return h.keyInfo(row), nil
}

func (h *Host) key(ctx context.Context, c identity.Caller, id string) (store.Key, error) {
	if !ids.ValidKeyID(id) {
		return store.Key{}, problem.Invalid("keyId", "want 1 to 128 of A-Z a-z 0-9 . _ ~ -")
	}
	row, err := h.store.Keys().ByID(ctx, c.Tenant(), id)
	if errors.Is(err, store.ErrNotFound) {
		err = problem.New(problem.NotFound, "no such API key")
	}
	return row, err
}

// change lets do have a key of the caller's tenant that carries nothing the caller
// does not hold: else a key could end, or become, one with more rights.
func (h *Host) change(ctx context.Context, c identity.Caller, id string, do func(k store.Key) (done bool, err error)) (KeyInfo, error) {
	for range 10 {
		row, err := h.key(ctx, c, id)
		if err != nil {
			return KeyInfo{}, err
		}
		if scope, ok := c.HoldsAll(row.Scopes); !ok {
			h.denials.note(c, "key.change", "more-than-its-own", h.clock.Now())
			return KeyInfo{}, problem.New(problem.Forbidden, "the key carries the scope %s, which the caller does not hold", scope).With("requiredScope", scope)
		}
		done, err := do(row)
		if errors.Is(err, store.ErrStale) {
			continue
		}
		if err != nil || done {
			return h.keyInfo(row), err
		}
		row, err = h.key(ctx, c, id)
		return h.keyInfo(row), err
	}
	return KeyInfo{}, problem.New(problem.ServiceUnavailable, "the key is being changed by somebody else; try again")
}

// RevokeKey ends a key of the caller's tenant, from the next request on. To revoke
// one that is revoked changes nothing.
func (h *Host) RevokeKey(ctx context.Context, c identity.Caller, id string) (KeyInfo, error) {
	if err := h.allow(c, identity.KeysWrite); err != nil {
		return KeyInfo{}, err
	}
	return audited(ctx, h, c, onKey("key.revoke", id), func(ctx context.Context, _ *store.Draft) (KeyInfo, error) {
		return h.change(ctx, c, id, func(k store.Key) (bool, error) {
			if !k.RevokedAt.IsZero() {
				return true, nil
			}
			return false, h.cfg.Keys.Revoke(ctx, k, h.clock.Now())
		})
	})
}

// RotateKey replaces a key of the caller's tenant. Its holder stays who it was, with
// the same rights; the key before opens for as long as overlap says, in seconds, nil
// for a day. Of a key that is still being replaced, the first one ends at once.
func (h *Host) RotateKey(ctx context.Context, c identity.Caller, id string, overlap *int64) (IssuedKey, error) {
	if err := h.allow(c, identity.KeysWrite); err != nil {
		return IssuedKey{}, err
	}
	wait := keyOverlap
	if overlap != nil {
		if *overlap < 0 || *overlap > int64(maxKeyOverlap/time.Second) {
			return IssuedKey{}, problem.Invalid("overlapSeconds", "want a whole number from 0 to %d", int64(maxKeyOverlap/time.Second))
		}
		wait = time.Duration(*overlap) * time.Second
	}
	key := identity.Generate()
	d := onKey("key.rotate", id).with("overlap", wait.String())
	info, err := audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (KeyInfo, error) {
		return h.change(ctx, c, id, func(k store.Key) (bool, error) {
			if s := h.keyInfo(k).State; s != "active" {
				return true, problem.New(problem.VersionConflict, "the key is %s; make another one", s).With("state", s)
			}
			return false, h.cfg.Keys.Replace(ctx, k, key, h.clock.Now().Add(wait))
		})
	})
	if err != nil {
		return IssuedKey{}, err
	}
	return IssuedKey{Key: key, KeyInfo: info}, nil
}

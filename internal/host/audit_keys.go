package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// The signing key of the audit log, and every key there ever was as it is
// published: what an old key has signed verifies for ever, and nobody can sign with
// it any more.
const (
	auditPurpose  = "audit"
	publicPurpose = "audit-public"
	maxAuditKeys  = 1000 // in all time; each is published for ever
)

// Shown reports whether what store.Secrets keeps under a purpose is no secret, but
// lies there because it belongs to one: it is there to be read by everybody.
func Shown(purpose string) bool { return purpose == publicPurpose || purpose == hostPurpose }

// auditKeys are the keys of checkpoints.
type auditKeys struct {
	store store.Secrets

	mu      sync.RWMutex
	current audit.Signer
	public  map[string]string // base64, by id
}

// published are the keys that verify.
func (k *auditKeys) published() audit.Keys {
	k.mu.RLock()
	defer k.mu.RUnlock()
	out := audit.Keys{}
	for id, p := range k.public {
		if out.Add(p) != nil || out[id] == nil {
			delete(out, id) // an id that is not that of its key proves nothing
		}
	}
	return out
}

// signer is the key that signs; false before the first load.
func (k *auditKeys) signer() (audit.Signer, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.current, k.current.KeyID != ""
}

// load reads the keys, for another replica may have made a newer one.
func (k *auditKeys) load(ctx context.Context) error {
	seeds, err := k.store.List(ctx, auditPurpose)
	if err != nil {
		return fmt.Errorf("read the audit key: %w", err)
	}
	public, err := k.store.List(ctx, publicPurpose)
	if err != nil {
		return fmt.Errorf("read the audit keys: %w", err)
	}
	var current audit.Signer
	if len(seeds) > 0 {
		if current, err = audit.NewSigner(seeds[0].Value); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.public = current, map[string]string{}
	for _, p := range public {
		k.public[p.ID] = string(p.Value)
	}
	if current.KeyID != "" {
		k.public[current.KeyID] = current.Public()
	}
	return nil
}

// make makes a key that signs from now on, and lets go of the ones before: nothing
// can be signed with them any more. Its public half comes first, for without it
// nothing that it signs would verify.
func (h *Host) makeAuditKey(ctx context.Context) (string, error) {
	k := &h.auditKeys
	older, err := k.store.List(ctx, auditPurpose)
	if err != nil {
		return "", err
	}
	seed := make([]byte, audit.SeedSize)
	rand.Read(seed)
	s, err := audit.NewSigner(seed)
	if err != nil {
		return "", err
	}
	at := h.clock.Now()
	if len(older) > 0 && !at.After(older[0].CreatedAt) {
		at = older[0].CreatedAt.Add(time.Millisecond) // the clock may go back, the order may not
	}
	if err := k.store.Add(store.Unaudited(ctx), store.Secret{Purpose: publicPurpose, ID: s.KeyID, Value: []byte(s.Public()), CreatedAt: at}); err != nil {
		return "", err
	}
	if err := k.store.Add(ctx, store.Secret{Purpose: auditPurpose, ID: s.KeyID, Value: seed, CreatedAt: at}); err != nil {
		return "", err
	}
	for _, o := range older {
		if err := k.store.Drop(ctx, auditPurpose, o.ID); err != nil {
			return "", err
		}
	}
	return s.KeyID, k.load(ctx)
}

// OpenAudit makes the audit log ready: its key is there. Before it, checkpoints are
// not signed and discovery does not claim any.
func (h *Host) OpenAudit(ctx context.Context) error {
	if err := h.auditKeys.load(ctx); err != nil {
		return err
	}
	if _, ok := h.auditKeys.signer(); ok {
		return nil
	}
	draft := h.fact(audit.HostChain, "audit-key.create", audit.Target{Type: "audit-key"}, nil)
	_, err := h.makeAuditKey(store.Audited(ctx, draft))
	return err
}

// texts are the published keys, as text, in the order of their ids.
func (k *auditKeys) texts() (out []string) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(k.public)) {
		out = append(out, k.public[id])
	}
	return out
}

// AuditKey is a published key of checkpoints.
type AuditKey struct {
	KeyID     string `json:"keyId"`
	PublicKey string `json:"publicKey"`
	Signs     bool   `json:"signs"` // from now on
}

// AuditKeys lists every key that has signed checkpoints, for whoever verifies them
// elsewhere.
func (h *Host) AuditKeys(ctx context.Context, c identity.Caller) ([]AuditKey, error) {
	if err := h.allow(c, identity.AuditRead); err != nil {
		return nil, err
	}
	if err := h.auditKeys.load(ctx); err != nil {
		return nil, err
	}
	k := &h.auditKeys
	k.mu.RLock()
	defer k.mu.RUnlock()
	out := []AuditKey{}
	for _, id := range slices.Sorted(maps.Keys(k.public)) {
		out = append(out, AuditKey{id, k.public[id], id == k.current.KeyID})
	}
	return out, nil
}

// RotateAuditKey signs checkpoints with a new key from now on. The one before is
// destroyed; its public half stays published.
func (h *Host) RotateAuditKey(ctx context.Context, c identity.Caller) (string, error) {
	if err := h.allowHost(c, identity.AuditManage); err != nil {
		return "", err
	}
	d := deed{chain: audit.HostChain, action: "audit-key.rotate", target: audit.Target{Type: "audit-key"}}
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (string, error) {
		if len(h.auditKeys.published()) >= maxAuditKeys {
			return "", problem.New(problem.StorageLimitExceeded, "there have been %d audit keys already", maxAuditKeys).With("limit", maxAuditKeys)
		}
		return h.makeAuditKey(ctx)
	})
}

// allowHost admits a caller to what belongs to the host and to no tenant: it takes
// the scope, and the operator's tenant.
func (h *Host) allowHost(c identity.Caller, scope string) error {
	if err := h.allow(c, scope); err != nil {
		return err
	}
	if c.Tenant() != h.cfg.Audit.Operator {
		h.denials.note(c, "authorization.denied", "not-the-operator", h.clock.Now())
		return problem.New(problem.Forbidden, "the host's own chain is for the operator's tenant").With("reason", "not-the-operator")
	}
	return nil
}

// chain resolves which chain a caller wants to see: its tenant's, or the host's.
func (h *Host) chain(c identity.Caller, which string) (string, error) {
	if err := h.allow(c, identity.AuditRead); err != nil {
		return "", err
	}
	switch which {
	case "", "tenant":
		return c.Tenant(), nil
	case "host":
		return audit.HostChain, h.allowHost(c, identity.AuditManage)
	}
	return "", problem.Invalid("chain", "%q is not tenant or host", which)
}

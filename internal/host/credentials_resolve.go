package host

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/vault"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
)

// ResolveCredential finds the credential that a node's config names, on behalf of
// the run's owner. A ref resolves to the newest material; with @ and a version to
// that one, as long as it counts.
func (h *Host) ResolveCredential(ctx context.Context, owner event.Owner, id ids.Run, ref node.CredentialRef) (engine.Credential, error) {
	if ref.Scope != "" && !h.resolves(ref.Scope) {
		return engine.Credential{}, problem.New(problem.CredentialScopeUnsupported, "this host keeps no credentials of scope %s", ref.Scope).With("scope", ref.Scope)
	}
	name, version, pinned := strings.Cut(ref.Ref, "@")
	absent := problem.New(problem.CredentialNotFound, "the credential is not there, or not any more").With("ref", ref.Ref)
	v, err := h.store.Credentials().Get(ctx, id.Tenant, name)
	if errors.Is(err, store.ErrNotFound) {
		return engine.Credential{}, absent
	}
	var m credentialMeta
	if err == nil {
		err = json.Unmarshal(v.Meta, &m)
	}
	if err != nil {
		return engine.Credential{}, err
	}
	if ref.Scope != "" && ref.Scope != m.Scope {
		return engine.Credential{}, absent // of two that might be meant, none is
	}
	if !m.resolvesFor(owner, id, v.Run) {
		return engine.Credential{}, problem.New(problem.CredentialForbidden, "the credential is not for this run").With("ref", ref.Ref)
	}
	sealed, at := v.Sealed, v.Version
	if pinned {
		n, err := strconv.ParseInt(version, 10, 64)
		switch {
		case err == nil && n == v.Version:
		case err == nil && n == v.Version-1 && len(v.Previous) > 0 && h.clock.Now().Before(v.PreviousUntil):
			sealed, at = v.Previous, n
		default:
			return engine.Credential{}, absent
		}
	}
	mat, err := h.openMaterial(ctx, v, m, sealed, at)
	if errors.Is(err, vault.ErrAbsent) {
		return engine.Credential{}, absent
	}
	if err != nil {
		return engine.Credential{}, err
	}
	h.heard(id.Tenant, v.Ref, m.Kind, mat)
	out := engine.Credential{
		Ref: v.Ref, Kind: m.Kind, Audiences: m.Provenance.Audiences, Downgrade: m.Downgrade,
		AuditCorrelationID: m.Provenance.AuditCorrelationID, Material: node.Material{Username: mat.Username, Secret: mat.Secret},
	}
	if m.Provenance.ExpiresAt != "" {
		if out.ExpiresAt, err = time.Parse(event.TimeLayout, m.Provenance.ExpiresAt); err != nil {
			out.Audiences = nil // what cannot be evaluated is denied
		}
	}
	return out, nil
}

// resolvesFor reports whether a run may use a credential. Whatever is not known is
// refused.
func (m *credentialMeta) resolvesFor(owner event.Owner, id ids.Run, of string) bool {
	switch m.Scope {
	case scopeTenant:
		return owner.Tenant == id.Tenant
	case scopeUser:
		return owner.Tenant == id.Tenant && m.Subject != "" && m.sameParty(owner)
	case scopeWorkspace:
		return owner.Tenant == id.Tenant && m.Workspace != "" && m.Workspace == owner.Workspace
	case scopeRun:
		return of == id.Opaque
	}
	return false
}

// openMaterial reads the material, from the vault or from the store outside where it stays.
func (h *Host) openMaterial(ctx context.Context, v store.Credential, m credentialMeta, sealed []byte, version int64) (material, error) {
	b, err := h.cfg.Credentials.Vault.OpenMaterial(ctx, v.Tenant, v.Ref, version, sealed)
	if err != nil {
		return material{}, err
	}
	defer clear(b)
	var mat material
	if err := json.Unmarshal(b, &mat); err != nil {
		return material{}, errors.New("the material of a credential cannot be read")
	}
	if m.Source == nil {
		return mat, nil
	}
	src, ok := h.cfg.Credentials.Sources[m.Source.Store]
	if !ok {
		return material{}, vault.ErrAbsent
	}
	raw, err := src.Read(ctx, v.Tenant, m.Source.Name)
	if err != nil {
		return material{}, err
	}
	if len(raw) < redact.MinLength || len(raw) > vault.MaxMaterial {
		return material{}, problem.New(problem.CredentialNotFound, "what the store holds has not %d to %d bytes", redact.MinLength, vault.MaxMaterial)
	}
	mat.Secret = string(raw)
	return mat, nil
}

// RotateVault wraps the data keys by the master key that is in use now, and with
// data makes new ones and seals everything anew. Nothing stands still meanwhile. The
// keys are the host's.
func (h *Host) RotateVault(ctx context.Context, c identity.Caller, data bool) (vault.Rotated, error) {
	if err := h.allow(c, identity.VaultOperate); err != nil {
		return vault.Rotated{}, err
	}
	d := deed{action: "vault.rotate", target: audit.Target{Type: "vault", ID: "vault"}}
	if data {
		d = d.with("dataKeys", "true")
	}
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (vault.Rotated, error) {
		out, err := h.cfg.Credentials.Vault.RotateMaster(ctx)
		if err == nil && data {
			out, err = h.cfg.Credentials.Vault.RotateData(ctx)
		}
		return out, err
	})
}

// holdsSecret refuses a text that holds the material of a credential, where masking
// it would change what the text means.
func (h *Host) holdsSecret(tenant, field, text string) error {
	if h.cfg.Redact.Known(tenant, text) == text {
		return nil
	}
	return problem.Invalid(field, "holds the material of a credential; a workflow names a credential by its ref and never holds it")
}

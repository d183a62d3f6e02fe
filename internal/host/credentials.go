package host

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/vault"
	"github.com/go-json-experiment/json"
)

// Credentials is what the host needs to keep credentials. With the zero value it
// keeps none.
type Credentials struct {
	Vault   *vault.Vault
	Sources map[string]vault.Source // stores of secrets outside, by name
}

// ServesCredentials reports whether credentials can be had.
func (h *Host) ServesCredentials() bool { return h.cfg.Credentials.Vault != nil }

// Scopes in which a credential resolves (spec v2 oauth.md §Credentials). A run's own
// are beyond the protocol: no reference on its wire can name that scope.
const (
	scopeUser      = "user"
	scopeWorkspace = "workspace"
	scopeTenant    = "tenant"
	scopeRun       = "run"
)

// Kinds of credentials.
const (
	kindSecret = "secret"
	kindBasic  = "basic" // a user name with a password
)

// Bounds.
const (
	maxCredentials     = 1000 // of one tenant
	defaultOverlap     = 24 * time.Hour
	maxOverlap         = 30 * 24 * time.Hour
	credentialRotation = "two-key-overlap"
)

// Provenance is what decides where a credential may go (spec v2 schemas:
// credential-provenance).
type Provenance struct {
	CredentialID       string   `json:"credentialId"`
	Issuer             string   `json:"issuer"`
	Audiences          []string `json:"audiences"`
	Scopes             []string `json:"scopes,omitzero"`
	ExpiresAt          string   `json:"expiresAt,omitzero"`
	RedactionPolicy    string   `json:"redactionPolicy"`
	AuditCorrelationID string   `json:"auditCorrelationId"`
}

// SourceRef names a secret that stays in a store outside.
type SourceRef struct {
	Store string `json:"store"`
	Name  string `json:"name"`
}

// CredentialInfo is what anybody is ever shown of a credential.
type CredentialInfo struct {
	Ref           string     `json:"ref"`
	Scope         string     `json:"scope"`
	Name          string     `json:"name,omitzero"`
	Kind          string     `json:"kind"`
	Version       int64      `json:"version"`
	RunID         string     `json:"runId,omitzero"`
	Workspace     string     `json:"workspace,omitzero"`
	Source        *SourceRef `json:"source,omitzero"`
	OutOfAudience string     `json:"outOfAudience"`
	Provenance    Provenance `json:"provenance"`
	CreatedAt     string     `json:"createdAt"`
	RotatedAt     string     `json:"rotatedAt,omitzero"`
	PreviousUntil string     `json:"previousUntil,omitzero"`
}

// CredentialPage is one page of credentials, by ref.
type CredentialPage struct {
	Credentials []CredentialInfo `json:"credentials"`
	NextCursor  string           `json:"nextCursor,omitzero"`
}

// credentialMeta is what is stored beside the sealed material.
type credentialMeta struct {
	Name       string     `json:"name,omitzero"`
	Scope      string     `json:"scope"`
	Kind       string     `json:"kind"`
	Issuer     string     `json:"ownerIssuer,omitzero"` // of a user's
	Subject    string     `json:"ownerSubject,omitzero"`
	Workspace  string     `json:"workspace,omitzero"`
	Source     *SourceRef `json:"source,omitzero"`
	Downgrade  bool       `json:"downgrade,omitzero"`
	Provenance Provenance `json:"provenance"`
}

// material is what is sealed.
type material struct {
	Username string `json:"username,omitzero"`
	Secret   string `json:"secret,omitzero"`
}

// NewCredential is the request for a credential.
type NewCredential struct {
	Name, Scope, Kind string
	RunID             string
	Workspace         string // with its scope; by default the caller's own
	Username, Secret  string
	Source            *SourceRef
	Audiences, Scopes []string
	ExpiresAt         time.Time
	RedactionPolicy   string
	OutOfAudience     string // deny or downgrade
}

// CreateCredential keeps a credential. Its material is never shown again.
func (h *Host) CreateCredential(ctx context.Context, c identity.Caller, r NewCredential) (CredentialInfo, error) {
	if err := h.allow(c, identity.CredentialsWrite); err != nil {
		return CredentialInfo{}, err
	}
	ref := newCredentialRef("cred_")
	h.heard(c.Tenant(), ref, r.Kind, material{r.Username, r.Secret}) // before anything can quote it
	if err := h.checkCredential(c, &r); err != nil {
		return CredentialInfo{}, err
	}
	id, workspace, err := h.credentialRun(ctx, c, r)
	if err != nil {
		return CredentialInfo{}, err
	}
	v := store.Credential{Tenant: c.Tenant(), Ref: ref, Run: id.Opaque, Version: 1, CreatedAt: h.clock.Now()}
	m := credentialMeta{
		Name: r.Name, Scope: r.Scope, Kind: r.Kind, Source: r.Source, Downgrade: r.OutOfAudience == "downgrade",
		Provenance: Provenance{
			CredentialID: v.Ref, Issuer: "host", Audiences: r.Audiences, Scopes: r.Scopes,
			RedactionPolicy: r.RedactionPolicy, AuditCorrelationID: newCredentialRef("audit_"),
		},
	}
	if !r.ExpiresAt.IsZero() {
		m.Provenance.ExpiresAt = run.Stamp(r.ExpiresAt)
	}
	switch r.Scope {
	case scopeUser:
		m.Issuer, m.Subject = c.Subject.Issuer, c.Subject.SubjectID
		m.Provenance.Issuer = c.Subject.Issuer + "/" + c.Subject.SubjectID
	case scopeWorkspace:
		m.Workspace = r.Workspace
	case scopeRun:
		m.Workspace = workspace
	}
	if v.Meta, err = json.Marshal(m); err != nil {
		return CredentialInfo{}, err
	}
	if v.Sealed, err = h.seal(ctx, v.Tenant, v.Ref, 1, material{r.Username, r.Secret}); err != nil {
		return CredentialInfo{}, err
	}
	err = h.audits(ctx, c, onCredential("credential.create", v.Tenant, v.Ref).with("scope", m.Scope), func(ctx context.Context) error {
		return h.store.Credentials().Add(ctx, v, maxCredentials)
	})
	if err != nil {
		if errors.Is(err, store.ErrFull) {
			return CredentialInfo{}, problem.New(problem.StorageLimitExceeded, "a tenant has at most %d credentials", maxCredentials).With("limit", maxCredentials)
		}
		return CredentialInfo{}, err
	}
	return infoOfCredential(v, m), nil
}

// onCredential is a deed on a credential.
func onCredential(action, tenant, ref string) deed {
	return deed{action: action, target: audit.Target{Type: "credential", ID: tenant + "/" + ref}}
}

func newCredentialRef(prefix string) string {
	var id [15]byte
	rand.Read(id[:])
	return prefix + base64.RawURLEncoding.EncodeToString(id[:])
}

// credentialRun finds the run that a run's own credential is for, and its workspace.
func (h *Host) credentialRun(ctx context.Context, c identity.Caller, r NewCredential) (id ids.Run, workspace string, err error) {
	if r.Scope != scopeRun {
		return id, "", nil
	}
	if id, err = ids.ParseRun(r.RunID); err != nil {
		return id, "", problem.Invalid("runId", "is not the id of a run")
	}
	if err := h.own(ctx, c, id); err != nil {
		return ids.Run{}, "", err
	}
	row, err := h.store.Runs().Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return ids.Run{}, "", problem.New(problem.NotFound, "no such run").With("runId", r.RunID)
	}
	if err == nil && run.Terminal(row.Status) {
		err = problem.New(problem.RunTerminal, "the run is over").With("runStatus", row.Status)
	}
	return id, row.Workspace, err
}

func (h *Host) seal(ctx context.Context, tenant, ref string, version int64, m material) ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	defer clear(b)
	return h.cfg.Credentials.Vault.SealMaterial(ctx, tenant, ref, version, b)
}

// heard tells the redactor of material, in the forms in which it leaves.
func (h *Host) heard(tenant, ref, kind string, m material) {
	h.cfg.Redact.Know(tenant, ref, m.Secret)
	if kind == kindBasic && len(m.Secret) >= redact.MinLength {
		h.cfg.Redact.Know(tenant, ref, base64.StdEncoding.EncodeToString([]byte(m.Username+":"+m.Secret)))
	}
}

func infoOfCredential(v store.Credential, m credentialMeta) CredentialInfo {
	out := CredentialInfo{
		Ref: v.Ref, Scope: m.Scope, Name: m.Name, Kind: m.Kind, Version: v.Version, Source: m.Source, OutOfAudience: "deny",
		Provenance: m.Provenance, CreatedAt: run.Stamp(v.CreatedAt),
	}
	if m.Downgrade {
		out.OutOfAudience = "downgrade"
	}
	if v.Run != "" {
		out.RunID = ids.Run{Tenant: v.Tenant, Opaque: v.Run}.String()
	}
	if m.Scope == scopeWorkspace {
		out.Workspace = m.Workspace
	}
	if !v.RotatedAt.IsZero() {
		out.RotatedAt, out.PreviousUntil = run.Stamp(v.RotatedAt), run.Stamp(v.PreviousUntil)
	}
	return out
}

// credential reads one that the caller may manage. What is not for him is not there.
func (h *Host) credential(ctx context.Context, c identity.Caller, scope, ref string) (v store.Credential, m credentialMeta, err error) {
	if err = h.allow(c, scope); err != nil {
		return v, m, err
	}
	v, err = h.store.Credentials().Get(ctx, c.Tenant(), ref)
	if err == nil {
		err = json.Unmarshal(v.Meta, &m)
	}
	if errors.Is(err, store.ErrNotFound) || err == nil && !manages(c, m) {
		return v, m, problem.New(problem.CredentialNotFound, "no such credential").With("ref", ref)
	}
	return v, m, err
}

// manages reports whether a caller may see and change a credential: a user's are for
// the user, and for whoever may do everything. Whoever is bound to a workspace manages
// what is its own, and what belongs to its runs.
func manages(c identity.Caller, m credentialMeta) bool {
	if c.Workspace != "" && m.Scope != scopeUser {
		return m.Scope != scopeTenant && m.Workspace == c.Workspace
	}
	return m.Scope != scopeUser || m.Issuer == c.Subject.Issuer && m.Subject == c.Subject.SubjectID || c.Holds(identity.CredentialsAdmin)
}

// Credential shows what may be known of a credential.
func (h *Host) Credential(ctx context.Context, c identity.Caller, ref string) (CredentialInfo, error) {
	v, m, err := h.credential(ctx, c, identity.CredentialsRead, ref)
	if err != nil {
		return CredentialInfo{}, err
	}
	return infoOfCredential(v, m), nil
}

// ListCredentials lists the caller's and his tenant's credentials.
func (h *Host) ListCredentials(ctx context.Context, c identity.Caller, cursor string, limit int) (CredentialPage, error) {
	if err := h.allow(c, identity.CredentialsRead); err != nil {
		return CredentialPage{}, err
	}
	if limit <= 0 {
		limit = h.cfg.Limits.MaxPageSize
	}
	p, err := h.page("credentials", c.Tenant(), cursor, limit)
	if err != nil {
		return CredentialPage{}, err
	}
	rows, err := h.store.Credentials().List(ctx, c.Tenant(), p.after, p.limit+1)
	if err != nil {
		return CredentialPage{}, err
	}
	page := CredentialPage{Credentials: []CredentialInfo{}}
	rows, page.NextCursor = cutPage(p, rows, func(v store.Credential) string { return v.Ref })
	for _, v := range rows {
		var m credentialMeta
		if err := json.Unmarshal(v.Meta, &m); err != nil {
			return CredentialPage{}, err
		}
		if manages(c, m) {
			page.Credentials = append(page.Credentials, infoOfCredential(v, m))
		}
	}
	return page, nil
}

// RotateCredential is the request for new material.
type RotateCredential struct {
	Username, Secret string
	Overlap          *time.Duration // for which both count; nil for a day
}

// RotateCredential gives a credential new material. For a while the old one still
// resolves, by a ref that names its version (spec v2 oauth.md §Credentials).
func (h *Host) RotateCredential(ctx context.Context, c identity.Caller, ref string, r RotateCredential) (CredentialInfo, error) {
	v, m, err := h.credential(ctx, c, identity.CredentialsWrite, ref)
	if err != nil {
		return CredentialInfo{}, err
	}
	h.heard(v.Tenant, ref, m.Kind, material{r.Username, r.Secret})
	overlap := defaultOverlap
	if r.Overlap != nil {
		overlap = *r.Overlap
	}
	switch {
	case m.Source != nil:
		return CredentialInfo{}, problem.Invalid("ref", "names a credential of the store %s, which is rotated there", m.Source.Store)
	case overlap < 0 || overlap > maxOverlap:
		return CredentialInfo{}, problem.Invalid("overlapSeconds", "must be from 0 to %d", int(maxOverlap.Seconds()))
	}
	if err := checkMaterial(m.Kind, r.Username, r.Secret); err != nil {
		return CredentialInfo{}, err
	}
	sealed, err := h.seal(ctx, v.Tenant, ref, v.Version+1, material{r.Username, r.Secret})
	if err != nil {
		return CredentialInfo{}, err
	}
	now := h.clock.Now()
	err = h.audits(ctx, c, onCredential("credential.rotate", v.Tenant, ref), func(ctx context.Context) error {
		return h.store.Credentials().Rotate(ctx, store.Rotation{
			Tenant: v.Tenant, Ref: ref, From: v.Version, Sealed: sealed, At: now, Until: now.Add(overlap),
		})
	})
	switch {
	case errors.Is(err, store.ErrStale):
		return CredentialInfo{}, problem.New(problem.VersionConflict, "the credential was rotated meanwhile").With("ref", ref)
	case errors.Is(err, store.ErrNotFound):
		return CredentialInfo{}, problem.New(problem.CredentialNotFound, "no such credential").With("ref", ref)
	case err != nil:
		return CredentialInfo{}, err
	}
	v.Version, v.RotatedAt, v.PreviousUntil = v.Version+1, now, now.Add(overlap)
	return infoOfCredential(v, m), nil
}

// DeleteCredential forgets a credential. From then on nothing resolves it.
func (h *Host) DeleteCredential(ctx context.Context, c identity.Caller, ref string) error {
	v, _, err := h.credential(ctx, c, identity.CredentialsWrite, ref)
	if err == nil {
		err = h.audits(ctx, c, onCredential("credential.delete", v.Tenant, ref), func(ctx context.Context) error {
			return h.store.Credentials().Remove(ctx, v.Tenant, ref)
		})
	}
	if errors.Is(err, store.ErrNotFound) {
		err = problem.New(problem.CredentialNotFound, "no such credential").With("ref", ref)
	}
	if attemptIn(ctx).again && problem.Is(err, problem.CredentialNotFound) {
		return nil // an earlier try came through
	}
	return err
}

// credentialScopes are the scopes of the protocol that references resolve in here.
func (h *Host) credentialScopes() []string { return []string{scopeUser, scopeWorkspace, scopeTenant} }

func (h *Host) resolves(scope string) bool {
	return scope == scopeRun || slices.Contains(h.credentialScopes(), scope)
}

// sameParty reports whether a run belongs to whom a credential belongs to.
func (m *credentialMeta) sameParty(o event.Owner) bool {
	return m.Issuer == o.Subject.Issuer && m.Subject == o.Subject.SubjectID
}

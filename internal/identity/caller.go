package identity

import (
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/event"
)

// Scopes of the protocol (spec v2 runs.md §Surface) and of this host.
const (
	ManifestRead     = "manifest:read"
	RunsCreate       = "runs:create"
	RunsRead         = "runs:read"
	RunsCancel       = "runs:cancel"
	ApprovalsRespond = "approvals:respond"
	WebhooksManage   = "webhooks:manage"
	WorkflowsWrite   = "fermata:workflows:write"
	Seams            = "fermata:seams"
	KeysWrite        = "fermata:keys:write"
	CredentialsRead  = "fermata:credentials:read"
	CredentialsWrite = "fermata:credentials:write"

	// CredentialsAdmin shows whoever holds it the credentials of other users, never
	// their material. VaultOperate is about the host's own keys.
	CredentialsAdmin = "fermata:credentials:admin"
	VaultOperate     = "fermata:vault:operate"
	AuditRead        = "audit:read"
	// AuditManage is for the operator: the host's own chain, and the audit key.
	AuditManage = "fermata:audit:manage"

	// CompensationOperate is not implied by any other: who may start or end a run
	// may not for that reason decide how its effects are undone.
	CompensationOperate = "fermata:compensation:operate"
	allScopes           = "*"
)

// Scopes are those a credential can carry, as this host enforces them.
func Scopes() []string {
	return []string{
		ManifestRead, RunsCreate, RunsRead, RunsCancel, ApprovalsRespond, WebhooksManage, WorkflowsWrite, KeysWrite,
		CompensationOperate, AuditRead, AuditManage, Seams, CredentialsRead, CredentialsWrite, CredentialsAdmin, VaultOperate,
	}
}

// hostWide are the scopes that reach beyond the tenant of who holds them. An issuer
// vouches for a tenant: its tokens carry one only if the operator has said so.
var hostWide = []string{AuditManage, Seams, VaultOperate}

// Caller is an authenticated party. Its memberships are those of the moment at
// which its credential was looked at.
type Caller struct {
	Subject event.Subject
	Scopes  []string
	Membership

	// Assurance is how strongly the request was tied to who made it: bearer,
	// sender-constrained or key-bound. It is what was proved, not what was asked for.
	Assurance string

	// Expires is when the credential must be looked at again, at the latest. Zero
	// if its lane looks at every request anyway.
	Expires time.Time
}

// Membership is what a party belongs to, in its own tenant. Names are opaque: a
// gate names a group, and either the party is in it or not.
type Membership struct {
	Groups []string
	Roles  []string
	Source string // where it was looked up; recorded with every decision that rests on it
}

// Tenant is the tenant the caller acts for.
func (c Caller) Tenant() string { return c.Subject.Tenant }

// Holds reports whether the caller's credential carries a scope.
func (c Caller) Holds(scope string) bool {
	return slices.Contains(c.Scopes, scope) || slices.Contains(c.Scopes, allScopes)
}

// AtMost shortens a wait so that it ends with the credential it is granted to.
func (c Caller) AtMost(d time.Duration, now time.Time) time.Duration {
	if c.Expires.IsZero() {
		return d
	}
	return max(min(d, c.Expires.Sub(now)), 0)
}

// Owner is the owner block of what the caller creates.
func (c Caller) Owner() event.Owner {
	return event.Owner{Tenant: c.Subject.Tenant, Subject: c.Subject}
}

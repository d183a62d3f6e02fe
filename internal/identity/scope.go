package identity

import (
	"slices"
	"strings"
)

// Scopes of the protocol (spec v2 runs.md §Surface) and of this host. None implies
// another.
const (
	ManifestRead     = "manifest:read"
	RunsCreate       = "runs:create"
	RunsRead         = "runs:read"
	RunsCancel       = "runs:cancel"
	ApprovalsRespond = "approvals:respond"
	WebhooksManage   = "webhooks:manage"
	WorkflowsWrite   = "fermata:workflows:write"
	Seams            = "fermata:seams"

	KeysRead     = "fermata:keys:read"
	KeysWrite    = "fermata:keys:write"
	MembersRead  = "fermata:members:read" // and the roles there are
	MembersWrite = "fermata:members:write"
	RolesWrite   = "fermata:roles:write"

	// CompensationOperate is not implied by any other: who may start or end a run
	// may not for that reason decide how its effects are undone.
	CompensationOperate = "fermata:compensation:operate"

	CredentialsRead  = "fermata:credentials:read"
	CredentialsWrite = "fermata:credentials:write"

	// CredentialsAdmin shows whoever holds it the credentials of other users, never
	// their material. VaultOperate is about the host's own keys.
	CredentialsAdmin = "fermata:credentials:admin"
	VaultOperate     = "fermata:vault:operate"

	AuditRead = "audit:read"
	// AuditManage is for the operator: the host's own chain, and the audit key.
	AuditManage = "fermata:audit:manage"

	// HostAdmin is for what concerns every tenant. No wildcard stands for it: the
	// owner of a tenant has every right there is in it, and none over the others.
	HostAdmin = "fermata:host:admin"

	// Vouch lets whoever holds it cast the votes of others on the wire of v1, where one
	// credential brings the answers of many people. No wildcard stands for it: a quorum
	// is there to bind those who have every other right.
	Vouch = "fermata:host:vouch"

	allScopes  = "*"
	hostPrefix = "fermata:host:"
)

// Scopes are those a credential can carry, as this host enforces them.
func Scopes() []string {
	return []string{
		ManifestRead, RunsCreate, RunsRead, RunsCancel, ApprovalsRespond, WebhooksManage, WorkflowsWrite, KeysRead, KeysWrite,
		MembersRead, MembersWrite, RolesWrite, CredentialsRead, CredentialsWrite, CredentialsAdmin, VaultOperate,
		CompensationOperate, AuditRead, AuditManage, Seams, HostAdmin, Vouch,
	}
}

// hostWide are the scopes that reach beyond the tenant of who holds them. An issuer
// vouches for a tenant: its tokens carry one only if the operator has said so.
var hostWide = []string{AuditManage, VaultOperate, Seams, HostAdmin, Vouch}

// Covers reports whether a scope that is held stands for one that is wanted. A *
// stands for any one segment, and at the end for any number of them but none. What
// is wanted may hold wildcards itself: then each scope it stands for must be
// covered.
func Covers(held, wanted string) bool {
	if held == wanted {
		return true
	}
	if strings.HasPrefix(wanted, hostPrefix) {
		return false
	}
	for {
		h, hs, hMore := strings.Cut(held, ":")
		w, ws, wMore := strings.Cut(wanted, ":")
		if h == allScopes && !hMore {
			return true
		}
		if h != allScopes && h != w || hMore != wMore {
			return false
		}
		if !hMore {
			// At its end a * is any number of segments, and h is one.
			return w != allScopes || h == allScopes
		}
		held, wanted = hs, ws
	}
}

func coveredBy(scopes []string, wanted string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return Covers(s, wanted) })
}

// inWorkspace are the scopes that mean something within one workspace of a tenant.
// What they are not listed for is the whole tenant's, and out of reach of whoever is
// bound to a workspace.
var inWorkspace = []string{
	ManifestRead, RunsCreate, RunsRead, RunsCancel, ApprovalsRespond, CompensationOperate, "artifacts:read",
	CredentialsRead, CredentialsWrite, // of the workspace and of oneself: see host.manages
}

// InWorkspace reports whether a scope can be used within a workspace.
func InWorkspace(scope string) bool { return slices.Contains(inWorkspace, scope) }

package identity

import "slices"

// Role is a name for a set of scopes, as discovery shows it (spec v2 identity.md
// §2.1, authorization.roles).
type Role struct {
	Role   string   `json:"role"`
	Scopes []string `json:"scopes"`
}

// Roles that every tenant has.
const (
	Owner       = "owner"
	Admin       = "admin"
	Editor      = "editor"
	ApproverFor = "approver"
	Viewer      = "viewer"
)

var catalogue = []Role{
	{Owner, []string{allScopes}},
	{Admin, []string{
		ManifestRead, "runs:*", "artifacts:*", ApprovalsRespond, WebhooksManage, "audit:*", WorkflowsWrite, "fermata:keys:*",
		"fermata:members:*", "fermata:credentials:*", CompensationOperate,
	}},
	{Editor, []string{ManifestRead, RunsCreate, RunsRead, RunsCancel, "artifacts:read", WebhooksManage, WorkflowsWrite}},
	{ApproverFor, []string{ManifestRead, RunsRead, "artifacts:read", ApprovalsRespond}},
	{Viewer, []string{ManifestRead, RunsRead, "artifacts:read"}},
}

// Catalogue are the roles that every tenant has. A tenant adds its own.
func Catalogue() []Role {
	out := make([]Role, len(catalogue))
	for i, r := range catalogue {
		out[i] = Role{r.Role, slices.Clone(r.Scopes)}
	}
	return out
}

// RoleScopes are the scopes of a role of the catalogue; false if there is none of
// that name.
func RoleScopes(name string) ([]string, bool) {
	i := slices.IndexFunc(catalogue, func(r Role) bool { return r.Role == name })
	if i < 0 {
		return nil, false
	}
	return catalogue[i].Scopes, true
}

package host

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/vault"
)

// checkCredential refuses what could not be used later, and fills in what is left
// out. No refusal quotes the material.
func (h *Host) checkCredential(c identity.Caller, r *NewCredential) error {
	if r.Scope == "" {
		if r.Scope = scopeTenant; c.Workspace != "" {
			r.Scope = scopeWorkspace
		}
	}
	if r.Scope == scopeWorkspace && r.Workspace == "" {
		r.Workspace = c.Workspace
	}
	if r.Kind == "" {
		r.Kind = kindSecret
	}
	if r.RedactionPolicy == "" {
		r.RedactionPolicy = "always"
	}
	if r.OutOfAudience == "" {
		r.OutOfAudience = "deny"
	}
	switch {
	case !slices.Contains([]string{scopeUser, scopeWorkspace, scopeTenant, scopeRun}, r.Scope):
		return problem.Invalid("scope", "must be user, workspace, tenant or run")
	case !h.resolves(r.Scope):
		return problem.New(problem.CredentialScopeUnsupported, "this host keeps no credentials of scope %s", r.Scope).With("field", "scope")
	case (r.Workspace != "") != (r.Scope == scopeWorkspace):
		return problem.Invalid("workspace", "goes with the scope workspace, and only with it")
	case r.Workspace != "" && !ids.ValidWorkspace(r.Workspace):
		return problem.Invalid("workspace", "is not the id of a workspace")
	case c.Workspace != "" && (r.Scope == scopeTenant || r.Workspace != "" && r.Workspace != c.Workspace):
		return problem.New(problem.Forbidden, "the caller is bound to a workspace and keeps credentials there").With("field", "scope")
	case (r.RunID != "") != (r.Scope == scopeRun):
		return problem.Invalid("runId", "goes with the scope run, and only with it")
	case r.Kind != kindSecret && r.Kind != kindBasic:
		return problem.Invalid("kind", "must be secret or basic")
	case len(r.Name) > maxKeyName || hasControl(r.Name):
		return problem.Invalid("name", "has more than %d bytes, or control characters", maxKeyName)
	case !slices.Contains([]string{"always", "hash", "host-policy"}, r.RedactionPolicy):
		return problem.Invalid("redactionPolicy", "must be always, hash or host-policy")
	case r.OutOfAudience != "deny" && r.OutOfAudience != "downgrade":
		return problem.Invalid("outOfAudience", "must be deny or downgrade")
	case !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(h.clock.Now()):
		return problem.Invalid("expiresAt", "is over already")
	}
	for _, text := range append([]string{r.Name, r.Username}, r.Scopes...) { // what is shown to everybody
		if err := h.holdsSecret(c.Tenant(), "name", text); err != nil {
			return err
		}
	}
	if err := checkAudiences(r.Audiences); err != nil {
		return err
	}
	if err := checkGrantedScopes(r.Scopes); err != nil {
		return err
	}
	if r.Source == nil {
		return checkMaterial(r.Kind, r.Username, r.Secret)
	}
	return h.checkSource(c, r)
}

func (h *Host) checkSource(c identity.Caller, r *NewCredential) error {
	src, ok := h.cfg.Credentials.Sources[r.Source.Store]
	switch {
	case r.Secret != "":
		return problem.Invalid("secret", "cannot be given together with a source")
	case !ok:
		return problem.Invalid("source.store", "this host has no store of that name")
	}
	if err := src.Check(c.Tenant(), r.Source.Name); err != nil {
		return problem.Invalid("source.name", "%s", err)
	}
	return checkUsername(r.Kind, r.Username)
}

// checkMaterial refuses material that is too short to be kept out of anything: what
// is shorter than the redactor looks for would be shown.
func checkMaterial(kind, username, secret string) error {
	switch {
	case len(secret) < redact.MinLength || len(secret) > vault.MaxMaterial:
		return problem.Invalid("secret", "must have %d to %d bytes", redact.MinLength, vault.MaxMaterial)
	case hasControl(secret) && kind == kindBasic:
		return problem.Invalid("secret", "must hold no control characters")
	}
	return checkUsername(kind, username)
}

func checkUsername(kind, username string) error {
	switch {
	case (username != "") != (kind == kindBasic):
		return problem.Invalid("username", "goes with the kind basic, and only with it")
	case len(username) > maxGrantName || hasControl(username) || strings.Contains(username, ":"):
		return problem.Invalid("username", "must have at most %d bytes, no colon and no control characters", maxGrantName)
	}
	return nil
}

func checkGrantedScopes(scopes []string) error {
	if len(scopes) > maxGrants {
		return problem.Invalid("scopes", "has more than %d entries", maxGrants)
	}
	for i, s := range scopes {
		if s == "" || len(s) > maxGrantName || hasControl(s) || slices.Contains(scopes[:i], s) {
			return problem.Invalid("scopes", "holds an entry that is empty, too long or there twice")
		}
	}
	return nil
}

// checkAudiences wants the hosts a credential is for: names, addresses, or *. and a
// domain. A domain has a dot: *.com would be everybody.
func checkAudiences(list []string) error {
	if len(list) == 0 || len(list) > maxGrants {
		return problem.Invalid("audiences", "name 1 to %d hosts the credential may be sent to", maxGrants)
	}
	for _, a := range list {
		name, wild := strings.CutPrefix(a, "*.")
		_, err := netip.ParseAddr(a)
		if err != nil && (!hostName(name) || wild && !strings.Contains(name, ".")) {
			return problem.Invalid("audiences", "%q is neither a host in lower case nor *. and a domain", a)
		}
	}
	return nil
}

func hostName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
	}
	return true
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

package door

import (
	"net/http"
	"strings"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// Challenge adds WWW-Authenticate to a refusal that is a 401 or 403 already (spec
// v2 identity.md §2.5). It never changes a status, and it says of a resource
// nothing at all: insufficient_scope goes out only where a scope is what the
// credential lacks, which was decided before any resource was looked at.
func (d *Door) Challenge(h http.Header, r *http.Request, e *problem.Error) {
	if d.Resource == nil {
		return
	}
	at := `Bearer resource_metadata="` + d.Resource.URL() + `"`
	switch status := e.Status(); {
	case status == http.StatusUnauthorized && (identity.Presented(r) || e.Code != problem.Unauthenticated):
		h.Set("WWW-Authenticate", at+`, error="invalid_token"`)
	case status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", at)
	case status == http.StatusForbidden && e.Code == problem.Forbidden:
		if scope := lacking(e); scope != "" {
			h.Set("WWW-Authenticate", at+`, error="insufficient_scope", scope="`+scope+`"`)
		}
	}
}

// lacking names the scopes an operation requires, if they are what it was refused
// for.
func lacking(e *problem.Error) string {
	scope, _ := e.Details["requiredScope"].(string)
	if strings.ContainsFunc(scope, func(r rune) bool { return r < '!' || r > '~' || r == '"' || r == '\\' }) {
		return ""
	}
	return scope
}

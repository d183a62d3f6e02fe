package host

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
)

// How much one key, member or role may carry. Every name travels with every request.
const (
	maxGrants    = 100
	maxGrantName = 256
	maxKeyName   = 256
)

var (
	scopeGrammar = regexp.MustCompile(`^(\*|([a-z][a-z0-9-]*|\*)(:([a-z0-9-]+|\*))+)$`)
	roleGrammar  = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,63}$`)
	// A new tenant's id holds no letter that another could differ from it by in case
	// only, no ~, which would have to be projected, and is no dot segment.
	tenantGrammar = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,126}[a-z0-9])?$`)
)

func (r *NewKey) check(c identity.Caller) error {
	switch r.Kind {
	case "", "user", "agent", "workload":
	default:
		return problem.Invalid("kind", "%q is not user, agent or workload", r.Kind)
	}
	if r.Seconds < 0 || r.Seconds > int64(maxKeyLife.Seconds()) {
		return problem.Invalid("expiresInSeconds", "want a whole number from 1 to %d", int64(maxKeyLife.Seconds()))
	}
	if len(r.Scopes) == 0 {
		return problem.Invalid("scopes", "name at least one; * stands for all")
	}
	if err := checkNames(r.Name, r.Workspace, named{"scopes", r.Scopes}, named{"groups", r.Groups}, named{"roles", r.Roles}); err != nil {
		return err
	}
	return checkScopes(c, r.Scopes, "a key cannot carry the scope %s, which yours does not hold")
}

type named struct {
	field string
	names []string
}

func checkNames(name, workspace string, lists ...named) error {
	if len(name) > maxKeyName || strings.ContainsFunc(name, control) {
		return problem.Invalid("name", "is not a text of at most %d bytes without control characters", maxKeyName)
	}
	if workspace != "" && !ids.ValidWorkspace(workspace) {
		return problem.Invalid("workspace", "want 1 to 128 of A-Z a-z 0-9 . _ ~ -")
	}
	for _, list := range lists {
		if len(list.names) > maxGrants {
			return problem.Invalid(list.field, "has more than %d entries", maxGrants)
		}
		for _, n := range list.names {
			if n == "" || len(n) > maxGrantName || strings.ContainsFunc(n, control) {
				return problem.Invalid(list.field, "%q is not a name of 1 to %d bytes without control characters", n, maxGrantName)
			}
		}
	}
	return nil
}

// control finds what a terminal may obey: the control characters of ASCII, and those
// beside them (C1).
func control(r rune) bool { return unicode.IsControl(r) }

// checkScopes lets a caller pass on what it holds, and nothing else.
func checkScopes(c identity.Caller, scopes []string, refusal string) error {
	for _, s := range scopes {
		if !scopeGrammar.MatchString(s) {
			return problem.Invalid("scopes", "%q is not a scope", s)
		}
	}
	if s, ok := c.HoldsAll(scopes); !ok {
		return problem.New(problem.Forbidden, refusal, s).With("requiredScope", s)
	}
	return nil
}

// listPage is where a page of a list begins, and how long it is.
type listPage struct {
	key, after string
	limit      int
}

// page reads a cursor of a list of a tenant; one of another list, or of another
// tenant, is none.
func (h *Host) page(list, tenant, cursor string, limit int) (listPage, error) {
	p := listPage{key: list + "\x00" + tenant, limit: limit}
	if cursor != "" {
		var ok bool
		if p.after, ok = readCursor(cursor, p.key); !ok {
			return p, problem.Invalid("cursor", "is not a cursor of this list")
		}
	}
	if p.limit == 0 {
		p.limit = defaultPage
	}
	p.limit = min(p.limit, h.cfg.Limits.MaxPageSize)
	return p, nil
}

// cutPage takes off the row that only says that there is more.
func cutPage[T any](p listPage, rows []T, id func(T) string) ([]T, string) {
	if len(rows) <= p.limit {
		return rows, ""
	}
	rows = rows[:p.limit]
	return rows, makeCursor(id(rows[p.limit-1]), p.key)
}

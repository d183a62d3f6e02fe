package host

import (
	"strings"
	"testing"
)

// A new tenant's id can be told from every other, and is plain in every path.
func TestTenantIDs(t *testing.T) {
	for _, s := range []string{"a", "acme", "a1", "a.b_c-d", strings.Repeat("a", 128)} {
		if !tenantGrammar.MatchString(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", ".", "..", "Acme", "acmE", "a~b", "a/b", "a b", "-a", "a-", ".a", "a.", "anon:x", "a%2F", "é", "a\n", strings.Repeat("a", 129)} {
		if tenantGrammar.MatchString(s) {
			t.Errorf("%q is taken", s)
		}
	}
}

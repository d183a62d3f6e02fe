package host

import (
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
)

// TestNamesHoldNothingThatATerminalObeys: whatever a name is of.
func TestNamesHoldNothingThatATerminalObeys(t *testing.T) {
	for name, fine := range map[string]bool{
		"": true, "deploy": true, "Büro 7, 朝": true, strings.Repeat("a", maxKeyName): true, strings.Repeat("a", maxKeyName+1): false,
		"a\x00": false, "a\nb": false, "\x1b[2J": false, "a\x7f": false, "a\u009b2J": false, "a\u0085b": false,
	} {
		if err := checkNames(name, ""); fine != (err == nil) || err != nil && !problem.Is(err, problem.ValidationError) {
			t.Errorf("name %q: %v", name, err)
		}
		if name == "" {
			continue
		}
		if err := checkNames("", "", named{"groups", []string{name}}); fine != (err == nil) {
			t.Errorf("group %q: %v", name, err)
		}
	}
}

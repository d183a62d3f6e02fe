package fermata_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every line of a threat model names what guards it, and that exists.
func TestThreatsAreGuarded(t *testing.T) {
	var code strings.Builder
	err := filepath.WalkDir(".", func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || p == "docs_security_test.go" {
			return err
		}
		if !strings.HasSuffix(p, "_test.go") && !strings.HasPrefix(filepath.ToSlash(p), "conformance/") {
			return nil
		}
		b, err := os.ReadFile(p)
		code.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	files, err := filepath.Glob("docs/security/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no threat model: %v", err)
	}
	guard := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+|[a-z]+\\.[a-z-]+)`")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		table := false
		for i, line := range strings.Split(string(b), "\n") {
			cells := strings.Split(line, "|")
			if table = strings.HasSuffix(line, "| Guarded by |") || table && len(cells) == 5; !table || strings.Contains(line, "|---") || strings.HasSuffix(line, "| Guarded by |") {
				continue
			}
			rows++
			names := guard.FindAllStringSubmatch(cells[3], -1)
			if len(names) == 0 {
				t.Errorf("%s:%d: nothing guards it", f, i+1)
			}
			for _, m := range names {
				if !strings.Contains(code.String(), "func "+m[1]+"(") && !strings.Contains(code.String(), `("`+m[1]+`"`) {
					t.Errorf("%s:%d: there is no %s", f, i+1, m[1])
				}
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d threats were found", rows)
	}
}

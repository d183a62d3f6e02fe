package fermata_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const threatFolder = "docs/security"

// guards knows what a line of a threat model may name: tests, checks of the suite,
// cases of storetest, golden scripts, packages.
type guards struct{ code, cases string }

func readGuards(t *testing.T) (g guards) {
	t.Helper()
	var code, cases strings.Builder
	err := filepath.WalkDir(".", func(p string, d os.DirEntry, err error) error {
		p = filepath.ToSlash(p)
		inStore, inSuite := strings.HasPrefix(p, "internal/store/storetest/"), strings.HasPrefix(p, "conformance/")
		if err != nil || d.IsDir() || p == "docs_security_test.go" || !strings.HasSuffix(p, ".go") ||
			!strings.HasSuffix(p, "_test.go") && !inStore && !inSuite {
			return err
		}
		b, err := os.ReadFile(p)
		if code.Write(b); inStore {
			cases.Write(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return guards{code.String(), cases.String()}
}

var (
	testName  = regexp.MustCompile(`^(Test|Fuzz|Benchmark)\w+$`)
	checkName = regexp.MustCompile(`^[a-z]+\.[a-z0-9-]+$`)
)

// has reports whether there is a guard of that name, and whether it guards anything:
// a package only says where a test is.
func (g guards) has(name string) (there, guards bool) {
	exists := func(p string) bool { _, err := os.Stat(p); return err == nil }
	switch {
	case testName.MatchString(name):
		return strings.Contains(g.code, "\nfunc "+name+"("), true
	case strings.HasSuffix(name, ".txt"):
		return exists("internal/run/testdata/" + name), true
	case checkName.MatchString(name):
		return strings.Contains(g.code, `("`+name+`", `), true
	case strings.HasPrefix(name, "internal/"):
		return exists(name), false
	}
	return strings.Contains(g.cases, `{"`+name+`", `), true
}

// threats are the rows of a page's tables of threats, by line.
func threats(text string) map[int]string {
	rows, within := map[int]string{}, false
	for i, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) > 1 && strings.EqualFold(strings.TrimSpace(cells[1]), "threat"):
			within = true
		case !strings.HasPrefix(line, "|"):
			within = false
		case within && !strings.HasPrefix(line, "|---"):
			rows[i+1] = cells[len(cells)-2]
		}
	}
	return rows
}

// Every line of every threat model names what guards it, and that exists. A page
// without such lines is none, and one that nothing leads to is not read.
func TestThreatsAreGuarded(t *testing.T) {
	g := readGuards(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	files, err := filepath.Glob(threatFolder + "/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("threat models: %v %v", files, err)
	}
	for _, f := range files {
		f = filepath.ToSlash(f)
		if filepath.Base(f) == "README.md" {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rows := threats(string(b))
		if len(rows) < 5 {
			t.Errorf("%s has %d threats", f, len(rows))
		}
		for line, cell := range rows {
			guarded := false
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				there, counts := g.has(m[1])
				if guarded = guarded || counts; !there {
					t.Errorf("%s:%d: there is no %s", f, line, m[1])
				}
			}
			if !guarded {
				t.Errorf("%s:%d: nothing guards it", f, line)
			}
		}
	}
	threatModelsAreLinked(t, files)
}

func threatModelsAreLinked(t *testing.T, files []string) {
	t.Helper()
	for index, prefix := range map[string]string{"SECURITY.md": threatFolder + "/", threatFolder + "/README.md": ""} {
		b, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		var linked, there []string
		for _, m := range regexp.MustCompile(`\]\(`+regexp.QuoteMeta(prefix)+`([a-z]+\.md)\)`).FindAllStringSubmatch(string(b), -1) {
			linked = append(linked, m[1])
		}
		for _, f := range files {
			if name := filepath.Base(f); name != "README.md" {
				there = append(there, name)
			}
		}
		slices.Sort(linked)
		if linked, there = slices.Compact(linked), slices.Compact(there); !slices.Equal(linked, there) {
			t.Errorf("%s links %q, and there are %q", index, linked, there)
		}
	}
}

package fermata_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/fermata-run/fermata"

// layers lists every package that is not a test suite of its own, bottom
// first. A package may import only packages of a lower or of its own row
// (Go itself refuses cycles inside a row); the exceptions are spelled out
// in narrower below. docs/architecture.md explains each row.
var layers = [][]string{
	{"node", "internal/problem", "internal/clock", "internal/ids", "internal/relax", "internal/limit", "internal/redact", "internal/schedule"},
	{"internal/expr", "internal/jsonschema", "internal/event", "internal/event/v1wire", "internal/flow", "internal/run", "internal/diff", "internal/token", "internal/effect", "internal/audit", "schema"},
	{"internal/store", "internal/store/segment"},
	{"internal/store/storetest", "internal/store/sqlite", "internal/store/postgres", "internal/engine", "internal/identity", "internal/identity/idptest", "internal/egress", "internal/builtin", "internal/webhook", "internal/vault", "internal/archive"},
	{"internal/host"},
	{"internal/api", "internal/api/openapi", "internal/api/sse", "internal/api/stream", "internal/api/bundle", "internal/api/edge", "internal/api/gate", "internal/api/door", "internal/api/overlap", "internal/api/v1", "internal/api/v2", "internal/api/seams", "internal/config", "internal/telemetry"},
	{"", "client", "conformance"},
	{"internal/cli"},
	{"cmd/fermata"},
}

// narrower states who alone may import a package, or what alone a package
// may import, where the row is too generous.
var narrower = []struct {
	pkg      string
	onlyBy   []string // importers allowed; nil: any
	onlyFrom []string // module packages it may import; nil: by row
}{
	{pkg: "internal/problem", onlyFrom: []string{}},
	{pkg: "internal/clock", onlyFrom: []string{}},
	{pkg: "internal/ids", onlyFrom: []string{}},
	{pkg: "internal/relax", onlyFrom: []string{}},
	{pkg: "internal/limit", onlyFrom: []string{}},
	{pkg: "internal/redact", onlyFrom: []string{}},
	{pkg: "internal/schedule", onlyBy: []string{"internal/flow", "internal/host"}, onlyFrom: []string{}},
	{pkg: "internal/vault", onlyBy: []string{"", "internal/host"}, onlyFrom: []string{"internal/clock", "internal/store"}},
	{pkg: "node", onlyFrom: []string{}},
	{pkg: "client", onlyFrom: []string{}},
	{pkg: "conformance", onlyFrom: []string{"schema"}},
	{pkg: "internal/expr", onlyFrom: []string{}},
	{pkg: "internal/event", onlyFrom: []string{"internal/ids"}},
	{pkg: "internal/event/v1wire", onlyFrom: []string{"internal/event", "internal/ids", "internal/redact"}},
	{pkg: "internal/effect", onlyFrom: []string{"node"}},
	{pkg: "internal/token", onlyFrom: []string{"internal/event", "internal/ids"}},
	{pkg: "internal/audit", onlyFrom: []string{}},
	{pkg: "internal/store", onlyFrom: []string{"internal/audit", "internal/event", "internal/ids"}},
	{pkg: "internal/store/sqlite", onlyBy: []string{""}},
	{pkg: "internal/store/postgres", onlyBy: []string{""}},
	{pkg: "internal/archive", onlyBy: []string{"", "internal/cli"}, onlyFrom: []string{"internal/audit", "internal/store"}},
	{pkg: "internal/engine", onlyBy: []string{"", "internal/host"}},
	{pkg: "internal/builtin", onlyBy: []string{""}, onlyFrom: []string{"internal/egress", "node"}},
	{pkg: "internal/api/edge", onlyFrom: []string{"internal/api", "internal/problem"}},
	{pkg: "internal/api/gate", onlyBy: []string{"", "internal/api/door"}},
	{pkg: "internal/api/door", onlyBy: []string{"", "internal/api/overlap", "internal/api/v1", "internal/api/v2"}},
	{pkg: "internal/api/overlap", onlyBy: []string{"", "internal/api/v1"}, onlyFrom: []string{"internal/api", "internal/api/door", "internal/webhook"}},
	{pkg: "internal/api/v1", onlyBy: []string{""}},
	{pkg: "internal/api/v2", onlyBy: []string{""}},
	{pkg: "internal/api/seams", onlyBy: []string{""}},
	{pkg: "internal/cli", onlyBy: []string{"cmd/fermata"}},
}

// runtimes names outside modules with one importer: whoever else needs one
// goes through that package.
var runtimes = map[string][]string{
	"cel.dev/cel-go/":                          {"internal/expr"},
	"github.com/ncruces/go-sqlite3":            {"internal/store/sqlite"},
	"github.com/jackc/pgx/v5":                  {"internal/store/postgres", "internal/pgtest"},
	"github.com/santhosh-tekuri/jsonschema/v6": {"internal/jsonschema", "schema"},
	"github.com/robfig/cron/":                  {"internal/schedule"},
	"github.com/spf13/cobra":                   {"internal/cli"},
	"database/sql":                             {},
}

// pure packages may not see time, disk, network or goroutine tools.
var pure = []string{"internal/run", "internal/flow", "internal/event", "internal/event/v1wire", "internal/token", "internal/audit"}

var impure = []string{"os", "net", "net/http", "sync", "sync/atomic", "context", "math/rand", "math/rand/v2", "crypto/rand"}

type source struct {
	pkg     string
	file    string
	imports []string
	doc     bool
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && p != "." || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(p))
		if pkg == "." {
			pkg = ""
		}
		s := source{pkg: pkg, file: p, doc: f.Doc != nil}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			s.imports = append(s.imports, name)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func rowOf(pkg string) int {
	return slices.IndexFunc(layers, func(row []string) bool { return slices.Contains(row, pkg) })
}

// outside tells packages that live beside the layers: programs, examples and
// black-box suites may import whatever a user of the module could.
func outside(pkg string) bool {
	return strings.HasPrefix(pkg, "examples") || strings.HasPrefix(pkg, "tools/") ||
		pkg == "internal/kill" || pkg == "internal/bench" || pkg == "internal/pgtest"
}

func local(imp string) (string, bool) {
	if imp == module {
		return "", true
	}
	return strings.CutPrefix(imp, module+"/")
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		if outside(s.pkg) {
			continue
		}
		row := rowOf(s.pkg)
		if row < 0 {
			t.Errorf("%s: package %q has no row in layers; give it its place", s.file, s.pkg)
			continue
		}
		for _, imp := range s.imports {
			dep, ok := local(imp)
			if !ok {
				continue
			}
			if r := rowOf(dep); r < 0 || r > row {
				t.Errorf("%s: %q (row %d) imports %q (row %d), which is above it", s.file, s.pkg, row, dep, r)
			}
		}
	}
}

func TestNarrowImportRules(t *testing.T) {
	for _, s := range sources(t) {
		for _, rule := range narrower {
			for _, imp := range s.imports {
				dep, ok := local(imp)
				if !ok {
					continue
				}
				if dep == rule.pkg && rule.onlyBy != nil && !slices.Contains(rule.onlyBy, s.pkg) && !outside(s.pkg) {
					t.Errorf("%s: only %q may import %q", s.file, rule.onlyBy, dep)
				}
				if s.pkg == rule.pkg && rule.onlyFrom != nil && !slices.Contains(rule.onlyFrom, dep) {
					t.Errorf("%s: %q may import only %q of this module, not %q", s.file, s.pkg, rule.onlyFrom, dep)
				}
			}
		}
		for _, imp := range s.imports {
			for prefix, allowed := range runtimes {
				if strings.HasPrefix(imp+"/", strings.TrimSuffix(prefix, "/")+"/") && !slices.Contains(allowed, s.pkg) && !outside(s.pkg) {
					t.Errorf("%s: %s is for %q alone", s.file, imp, allowed)
				}
			}
			if slices.Contains(pure, s.pkg) && slices.Contains(impure, imp) {
				t.Errorf("%s: %q is pure and may not import %s", s.file, s.pkg, imp)
			}
		}
	}
}

// A rule about a package that is gone guards nothing, so it must go too.
func TestLayoutRulesNameExistingPackages(t *testing.T) {
	exists := func(pkg string) bool {
		matches, err := filepath.Glob(filepath.Join(filepath.FromSlash(pkg), "*.go"))
		return err == nil && len(matches) > 0
	}
	check := func(where string, pkgs ...string) {
		for _, pkg := range pkgs {
			if !exists(pkg) {
				t.Errorf("%s names package %q, which does not exist", where, pkg)
			}
		}
	}
	for _, row := range layers {
		check("layers", row...)
	}
	for _, rule := range narrower {
		check("narrower", rule.pkg)
		check("narrower", rule.onlyBy...)
		check("narrower", rule.onlyFrom...)
	}
	for _, pkgs := range runtimes {
		check("runtimes", pkgs...)
	}
	check("pure", pure...)
}

func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if seen[s.pkg] || s.pkg == "" || strings.HasPrefix(s.pkg, "cmd/") || strings.HasPrefix(s.pkg, "examples/") || strings.HasPrefix(s.pkg, "tools/") {
			continue
		}
		seen[s.pkg] = true
		if _, err := os.Stat(filepath.Join(filepath.FromSlash(s.pkg), "doc.go")); err != nil {
			t.Errorf("package %q has no doc.go", s.pkg)
		}
	}
}

// The page that says which test keeps which fault out names tests that exist.
func TestDocumentedTestsExist(t *testing.T) {
	b, err := os.ReadFile("docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllSubmatch(b, -1) {
		missing[string(m[1])] = true
	}
	if len(missing) < 20 {
		t.Fatalf("only %d tests are named", len(missing))
	}
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		src, err := os.ReadFile(p)
		for name := range missing {
			if strings.Contains(string(src), "\nfunc "+name+"(") {
				delete(missing, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range missing {
		t.Errorf("%s does not exist", name)
	}
}

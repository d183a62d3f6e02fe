package run_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every type the host declares to emit is emitted by some script, and so has
// been held against the schema of its payload.
func TestScriptsEmitEveryType(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../event/types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Type" {
			for _, v := range spec.Values {
				s, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				declared[s] = true
			}
		}
		return true
	})
	if len(declared) < 20 {
		t.Fatalf("only %d types found", len(declared))
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\d+ ([a-z.-]+) \{`)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, events, _ := strings.Cut(string(b), "-- events --")
		for _, m := range line.FindAllStringSubmatch(events, -1) {
			delete(declared, m[1])
		}
	}
	for typ := range declared {
		t.Errorf("no script emits %s", typ)
	}
}

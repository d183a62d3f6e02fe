package fermata_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The wire of v1 goes with its folder and one line: what is left builds, and nothing
// else names it.
func TestBuildsWithoutV1(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the module")
	}
	const line = `import _ "` + module + `/internal/api/v1"`
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	gone, err := filepath.Glob(filepath.Join(root, "internal", "api", "v1", "*.go"))
	if err != nil || len(gone) == 0 {
		t.Fatalf("%d files of v1: %v", len(gone), err)
	}
	for _, f := range gone {
		replace[f] = "" // as if it were not there
	}
	found := 0
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") || !strings.Contains(string(b), "internal/api/v1\"") {
			continue
		}
		var kept []string
		for l := range strings.SplitSeq(string(b), "\n") {
			if strings.HasPrefix(l, line) {
				found++
				continue
			}
			kept = append(kept, l)
		}
		cut := filepath.Join(t.TempDir(), filepath.Base(f))
		if err := os.WriteFile(cut, []byte(strings.Join(kept, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[f] = cut
	}
	if found != 1 {
		t.Fatalf("%d lines name v1, want one", found)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", at, "./...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
	list := exec.Command("go", "list", "-overlay", at, "-deps", "./...")
	out, err := list.CombinedOutput()
	if err != nil {
		t.Errorf("go list: %v\n%s", err, out)
	}
	if strings.Contains(string(out), module+"/internal/api/v1\n") {
		t.Error("something still imports v1")
	}
}

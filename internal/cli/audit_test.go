package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var anchorShown = regexp.MustCompile(`--anchor (\d+=[0-9a-f]{64})`)

// What an operator does with the audit log: look, export, verify with and without
// the host, and find out that a file was changed.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	w.server()
	w.must("workflows", "apply", w.file("gate.json", gate()))
	contains(t, w.must("audit", "list"), "SEQ", "workflow.register", "workflow gate", "key.bootstrap", "done", "version=")
	contains(t, w.must("audit", "list", "--json", "--limit", "1"), `"action": "workflow.register"`)
	contains(t, w.must("audit", "list", "--host"), "audit-key.create")
	contains(t, w.must("audit", "keys"), "au-", "yes", "MCowBQYDK2VwAyEA")

	file := filepath.Join(t.TempDir(), "audit.ndjson")
	out := w.must("audit", "export", "--out", file)
	contains(t, out, "holds the chain default from 1 to", "Keep its last checkpoint elsewhere")
	m := anchorShown.FindStringSubmatch(out)
	if m == nil {
		t.Fatal(out)
	}
	contains(t, w.must("audit", "verify"), "The audit log holds.", m[1])
	if code := w.run("audit", "export", "--out", file); code == 0 {
		t.Error("a file that is there is written over")
	}
	key := ""
	for _, f := range strings.Fields(w.must("audit", "keys")) {
		if strings.HasPrefix(f, "MCow") {
			key = f
		}
	}
	contains(t, w.must("audit", "verify", "--offline", file), "holds from 1 to", "give the host's by --key")
	contains(t, w.must("audit", "verify", "--offline", file, "--key", key, "--anchor", m[1], "--json"), `"valid": true`)

	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	for name, text := range map[string]string{
		"edited":    strings.Replace(string(b), `"workflow.register"`, `"workflow.delete"`, 1),
		"truncated": strings.Join(lines[:len(lines)-3], ""),
		"reordered": strings.Join(append(append(append([]string{}, lines[:2]...), lines[4], lines[3], lines[2]), lines[5:]...), ""),
		"deleted":   strings.Join(append(append([]string{}, lines[:2]...), lines[3:]...), ""),
	} {
		bad := w.file(name+".ndjson", text)
		if code := w.run("audit", "verify", "--offline", bad); code != 1 {
			t.Errorf("%s: exit %d\n%s", name, code, w.out.String())
		}
		contains(t, w.err.String(), "the audit log does not hold")
	}
	another := "MCowBQYDK2VwAyEA6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw="
	if code := w.run("audit", "verify", "--offline", file, "--key", another); code != 1 {
		t.Errorf("another key: exit %d", code)
	}
	if code := w.run("audit", "verify", "--offline", file, "--anchor", "1="+strings.Repeat("0", 64)); code != 1 {
		t.Errorf("an anchor that is not there: exit %d", code)
	}
	for _, args := range [][]string{
		{"audit", "verify", "--key", key}, {"audit", "verify", "--offline", file, "--from", "3"}, {"audit", "verify", "--offline", file, "--key", "x"},
		{"audit", "verify", "--offline", file, "--anchor", "3"}, {"audit", "verify", "--offline", file + "x"}, {"audit", "list", "--limit", "0"},
	} {
		if code := w.run(args...); code != 2 {
			t.Errorf("%v: exit %d, %s", args, code, w.err.String())
		}
	}
	contains(t, w.must("audit", "rotate-key"), "are signed with au-")
	contains(t, w.must("audit", "keys"), "no more")
	contains(t, w.must("audit", "verify"), "The audit log holds.")
}

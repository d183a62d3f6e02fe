package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A key made beside a stopped host is of its tenant, and of no other.
func TestKeysCreate(t *testing.T) {
	w := newWorld(t)
	data := filepath.Join(w.home, "data")
	w.vars["FERMATA_BOOTSTRAP_KEY"] = testKey
	done := w.start("serve", "--listen", "127.0.0.1:0", "--data", data)
	w.serving()
	w.signals <- os.Interrupt
	w.wait(done)

	other := newWorld(t)
	made := strings.Fields(other.must("keys", "create", "--tenant", "second", "--name", "suite", "--data", data))
	if len(made) != 5 || made[4] != "second" {
		t.Fatalf("%q", made)
	}
	second := made[2]

	w = newWorld(t)
	flows := filepath.Join(w.home, "flows")
	w.file("flows/echo.json", echo("1"))
	done = w.start("serve", "--listen", "127.0.0.1:0", "--data", data, "--workflows", flows)
	url := w.serving()
	w.saw(w.out, "1 workflow from "+flows)
	for key, want := range map[string]int{testKey: ExitOK, second: ExitFailed} {
		other = newWorld(t)
		other.vars["FERMATA_SERVER"], other.vars["FERMATA_API_KEY"] = url, key
		if code := other.run("workflows", "show", "echo"); code != want {
			t.Errorf("exit %d, want %d: %s %s", code, want, other.out, other.err)
		}
	}
	w.signals <- os.Interrupt
	w.wait(done)
}

func TestKeysCreateRefusals(t *testing.T) {
	w := newWorld(t)
	if code := w.run("keys", "create", "--tenant", "acme", "--data", filepath.Join(w.home, "none")); code != ExitFailed {
		t.Errorf("without data: exit %d", code)
	}
	contains(t, w.err.String(), "there is no host's data")
	if _, err := os.Stat(filepath.Join(w.home, "none")); err == nil {
		t.Error("a folder was made")
	}
	for _, args := range [][]string{{"keys", "create"}, {"keys", "create", "--tenant", "acme", "more"}} {
		if code := newWorld(t).run(args...); code != ExitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}

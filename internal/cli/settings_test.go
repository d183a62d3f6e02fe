package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestServeRefusesMisspelledVariables(t *testing.T) {
	w := newWorld(t)
	w.vars["FERMATA_LISTENN"] = "127.0.0.1:0"
	if code := w.run("serve"); code != ExitUsage {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "FERMATA_LISTENN: there is no such setting; did you mean FERMATA_LISTEN?")
}

func TestServeWarnsOfItsSurroundings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders have no such modes")
	}
	w := newWorld(t)
	w.vars["FERMATA_SERVICE_HOST"] = "10.0.0.1"
	f := &fakeHost{handler: http.NotFoundHandler()}
	w.open = f.open
	data := filepath.Join(w.home, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for mode, warns := range map[os.FileMode]bool{0o777: true, 0o750: true, 0o700: false} {
		if err := os.Chmod(data, mode); err != nil {
			t.Fatal(err)
		}
		done := w.start("serve", "--listen", "127.0.0.1:0", "--data", data)
		w.saw(w.out, "is listening on")
		w.signals <- os.Interrupt
		w.wait(done)
		if got := strings.Contains(w.err.String(), "others on this machine can reach the data folder"); got != warns {
			t.Errorf("%o: %s", mode, w.err)
		}
		contains(t, w.err.String(), "FERMATA_SERVICE_HOST")
	}
	if err := os.Chmod(data, 0o777); err != nil {
		t.Fatal(err)
	}
	w.run("doctor", "--data", data)
	contains(t, w.out.String(), "others may write into "+data+" (mode 0777)", "chmod 700")
}

func TestServeSaysThatABootstrapKeyIsNotUsed(t *testing.T) {
	w := newWorld(t)
	start := func(key string) string {
		t.Helper()
		w.vars["FERMATA_BOOTSTRAP_KEY"] = key
		done := w.start("serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(w.home, "data"))
		w.saw(w.out, "is listening on")
		w.signals <- os.Interrupt
		w.wait(done)
		return w.err.String()
	}
	const said = "the bootstrap key was not used"
	for i, key := range []string{testKey, testKey, ""} { // made with it; the same again; none
		if out := start(key); strings.Contains(out, said) {
			t.Errorf("start %d: %s", i, out)
		}
	}
	other := strings.Repeat("other", 8)
	if out := start(other); !strings.Contains(out, said) || strings.Contains(out, other) {
		t.Errorf("%s", out)
	}
}

const asks = `{"id":"w","name":"w","version":"1","nodes":[{"id":"ok","typeId":"core.approvalGate","name":"ok","position":{"x":0,"y":0},
"config":{"title":"Go on?","actions":["accept"]},"inputs":{}}],"edges":[],"triggers":[],
"variables":[{"name":"size","type":"string"}],"metadata":{},"settings":{}}`

func TestRunRefusesUnknownNames(t *testing.T) {
	w := newWorld(t)
	f := filepath.Join(w.home, "flows", "w.json")
	write(t, f, asks)
	write(t, filepath.Join(w.home, "in.json"), `{"size":"l","colour":"red"}`)
	for want, args := range map[string][]string{
		`input "sise": the workflow has no such variable; it has size`:                        {"--input", "sise=l"},
		`input "colour": the workflow has no such variable; it has size`:                      {"--inputs", filepath.Join(w.home, "in.json")},
		`--answer okay: neither the workflow nor one beside it has such a node; there are ok`: {"--answer", "okay=accept"},
	} {
		if code := w.run(append([]string{"run", f}, args...)...); code != ExitUsage {
			t.Errorf("%v: exit %d", args, code)
		}
		contains(t, w.err.String(), want)
	}
	w.must("run", f, "--input", "size=l", "--answer", "ok=accept")
}

func TestRunsPrune(t *testing.T) {
	w := newWorld(t)
	data := filepath.Join(w.home, "data")
	f := filepath.Join(w.home, "flows", "w.json")
	write(t, f, asks)
	if code := w.run("runs", "prune", "--data", data); code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "no host has kept anything in")
	if _, err := os.Stat(data); err == nil {
		t.Error("the folder was made")
	}
	for range 3 {
		w.must("run", f, "--data", data, "--answer", "ok=accept")
	}
	contains(t, w.must("runs", "prune", "--data", data), "0 runs expired, by")
	contains(t, w.must("runs", "prune", "--data", data, "--keep", "1", "--dry-run"), "default  2 runs", "2 runs would expire")
	contains(t, w.must("runs", "prune", "--data", data, "--older-than", "0s", "--tenant", "other", "--json"), `"runs": 0`)
	contains(t, w.must("runs", "prune", "--data", data, "--keep", "1"), "2 runs expired, by")
	contains(t, w.must("runs", "prune", "--data", data, "--older-than", "0s"), "1 run expired, by")
	for want, args := range map[string][]string{
		"--older-than": {"--older-than", "soon"}, "retention-max-age": {"--retention-max-age", "1h"},
		"--keep": {"--keep", "-1"}, "`fermata runs prune` cannot use": {"all"},
	} {
		if code := w.run(append([]string{"runs", "prune", "--data", data}, args...)...); code != ExitUsage {
			t.Errorf("%v: exit %d: %s", args, code, w.err)
		}
		contains(t, w.err.String(), want)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

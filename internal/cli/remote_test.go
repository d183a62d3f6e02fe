package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestWorkflows(t *testing.T) {
	w := newWorld(t)
	w.server()
	good, bad := w.file("f/echo.json", echo("1")), w.file("f/bad.json", "{\n\"id\": \"x\"\n}")
	if code := w.run("workflows", "apply", filepath.Join(w.home, "f")); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.out.String(), "WORKFLOW  VERSION  RESULT   FILE", "echo      1        created  "+good, "x         -        refused  "+bad)
	contains(t, w.err.String(), bad+":1: name: is required", "error: 1 definition of 2 refused")
	contains(t, w.must("workflows", "apply", good), "unchanged")
	// A version never changes.
	w.file("f/echo.json", strings.ReplaceAll(echo("1"), "OUT", "OTHER"))
	if code := w.run("workflows", "apply", good, "--json"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.out.String(), `"result": "refused"`, "another definition")
	w.file("f/echo.json", echo("2"))
	w.must("workflows", "apply", good)
	contains(t, w.must("workflows", "list"), "WORKFLOW  VERSION  REGISTERED", "echo      2 ")
	contains(t, w.must("workflows", "list", "--json"), `"workflowId": "echo"`)
	contains(t, w.must("workflows", "show", "echo"), `"version": "2"`)
	contains(t, w.must("workflows", "show", "echo", "--version", "1"), `"version": "1"`)
	contains(t, w.must("workflows", "delete", "echo"), "echo is hidden")
	if code := w.run("workflows", "show", "echo"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), `error: no workflow "echo" (not_found)`)
}

func TestSchedules(t *testing.T) {
	w := newWorld(t)
	w.server()
	contains(t, w.must("schedules", "list"), "There are no schedules.")
	def := strings.Replace(echo("1"), `"triggers":[]`, `"triggers":[{"id":"leap","type":"schedule","config":{"cron":"0 3 29 2 *","timezone":"Europe/Berlin","inputs":{"n":1}}}]`, 1)
	w.must("workflows", "apply", w.file("echo.json", def))
	contains(t, w.must("schedules", "list"), "WORKFLOW  TRIGGER  WHEN        ZONE           NEXT", "echo      leap     0 3 29 2 *  Europe/Berlin  20", "-02-29 0")
	contains(t, w.must("schedules", "list", "--json"), `"triggerId": "leap"`)
}

func TestValidate(t *testing.T) {
	w := newWorld(t)
	good := w.file("good.json", echo("1"))
	bad := w.file("bad.json", strings.ReplaceAll(strings.ReplaceAll(echo("1"), "core.identity", "core.unheardof"), `"nodes"`, "\n\"nodes\""))
	for _, where := range []string{"here", "there"} {
		if where == "there" {
			w.catalog = false
			w.server()
		}
		contains(t, w.must("workflows", "validate", good), good+": valid (echo 1)")
		if code := w.run("workflows", "validate", good, bad); code != 1 {
			t.Errorf("%s: exit %d", where, code)
		}
		contains(t, w.out.String(), bad+":2: nodes[0].typeId: ")
		contains(t, w.err.String(), "error: 1 of 2 definitions not valid")
		if code := w.run("workflows", "validate", w.file("no.json", "{\n  \"id\":\n  oops\n}"), "--json"); code != 1 {
			t.Errorf("%s: exit %d", where, code)
		}
		contains(t, w.out.String(), `"result": "invalid"`, "no.json:3: ")
	}
	if code := w.run("workflows", "validate", filepath.Join(w.home, "none")); code != 2 {
		t.Errorf("exit %d", code)
	}
}

func TestRunsEffects(t *testing.T) {
	w := newWorld(t)
	w.server()
	w.must("workflows", "apply", w.file("call.json", workflow("call", "1", "",
		aNode("out", "core.http.request", `{"url":"http://169.254.169.254/","method":"POST"}`, "{}"), "")))
	w.must("runs", "start", "call")
	var list struct{ Runs []struct{ RunID string } }
	for range 2000 {
		if err := json.Unmarshal([]byte(w.must("runs", "list", "--status", "failed", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Runs) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if len(list.Runs) != 1 {
		t.Fatal("the run does not fail")
	}
	id := list.Runs[0].RunID
	contains(t, w.must("runs", "effects", id), "EFFECT", "released", "activity-recipe")
	bundleOf(t, w, id)
	contains(t, w.must("runs", "effects", id, "--json"), `"state": "released"`, `"providerKey"`)
	if code := w.run("runs", "effects", "default/0123456789abcdef"); code != 1 {
		t.Errorf("exit %d", code)
	}
}

func TestRuns(t *testing.T) {
	w := newWorld(t)
	w.server()
	w.must("workflows", "apply", w.file("gate.json", gate()), w.file("echo.json", echo("1")))
	contains(t, w.must("runs", "list"), "There are no such runs.")
	contains(t, w.must("runs", "start", "echo", "--input", "n=1", "--tag", "a", "--tag", "b", "--watch"), `"n": 1`)
	if code := w.run("runs", "start", "echo", "--input", "n=x"); code != 2 {
		t.Errorf("exit %d", code)
	}
	over, _, _ := strings.Cut(strings.TrimPrefix(w.must("runs", "list", "--status", "completed"), "RUN"), "echo")
	over = strings.Fields(over)[len(strings.Fields(over))-1]
	contains(t, w.must("runs", "show", over), "status     completed", "\noutputs\n", `"n": 1`)
	id, _, _ := strings.Cut(w.must("runs", "start", "gate"), " ")
	contains(t, w.must("runs", "list"), "RUN  ", id, "gate ", "echo      completed", "a,b")
	if out := w.must("runs", "list", "--workflow", "gate"); strings.Contains(out, "echo") {
		t.Errorf("the filter is ignored: %s", out)
	}
	contains(t, w.must("runs", "list", "--limit", "1"), id)
	contains(t, w.err.String(), "There are more")
	contains(t, w.must("runs", "list", "--status", "completed", "--json"), `"workflowId": "echo"`)
	if code := w.run("runs", "list", "--status", "odd"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), `error: status: "odd" is no run status (validation_error)`)

	contains(t, w.must("runs", "show", id), "status     waiting-approval", "ask   suspended", "waits: Send it?")
	contains(t, w.must("runs", "show", strings.Replace(id, "/", "~2F", 1), "--json"), `"nodeStates"`)
	contains(t, w.must("runs", "events", id), "run.started", "interrupt.requested     ask ", "Send it?")
	if out := w.must("runs", "events", id, "--after", "2", "--json"); strings.Count(out, "\n") != 1 {
		t.Errorf("events: %s", out)
	}
	contains(t, w.must("runs", "pause", id, "--reason", "lunch"), "paused")
	contains(t, w.must("runs", "resume", id, "--json"), `"resumedAt"`)
	fork := w.must("runs", "fork", id, "--mode", "branch", "--from", "1", "--tag", "second", "--metadata", `{"k":1}`)
	contains(t, fork, "branch of "+id+" from 1")
	other, _, _ := strings.Cut(fork, " ")
	contains(t, w.must("runs", "show", other, "--json"), `"second"`, `"k": 1`)
	contains(t, w.must("runs", "diff", id, other), "the runs differ from sequence", "removed", "(there may be more)")
	contains(t, w.must("runs", "diff", id, id), "the runs do not differ")
	contains(t, w.must("runs", "diff", id, other, "--json"), `"divergedAtSeq"`)
	contains(t, w.must("runs", "ancestry", other), other)
	contains(t, w.must("runs", "ancestry", other, "--json"), `"parent": null`)
	contains(t, w.must("runs", "fork", id, "--json"), `"mode": "replay"`)
	if code := w.run("runs", "fork", id, "--mode", "branch", "--from", "9999"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "(fork_point_invalid)")
	if code := w.run("runs", "fork", id, "--mode", "branch", "--from", "1", "--metadata", "{"); code != 2 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.must("runs", "cancel", id, "--reason", "enough"), id+"  cancelled")
	contains(t, w.must("runs", "events", id, "--follow", "--mode", "updates"), "run.cancelled", "enough")
	if code := w.run("runs", "cancel", id, id); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.out.String(), "(run_terminal)")
	contains(t, w.err.String(), "error: 2 runs not cancelled")
	if code := w.run("runs", "events", id, "--mode", "debug"); code != 2 {
		t.Errorf("exit %d", code)
	}
}

func TestRunsListFollowsPages(t *testing.T) {
	w := newWorld(t)
	asked := []string{}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		rw.Header().Set("Content-Type", "application/json")
		next := map[string]string{"": "two", "two": "three"}[r.URL.Query().Get("cursor")]
		if next != "" {
			next = `,"nextCursor":"` + next + `"`
		}
		fmt.Fprintf(rw, `{"runs":[{"runId":"t/%d","workflowId":"w","status":"running","big":1e400}]%s}`, len(asked), next)
	}))
	defer s.Close()
	contains(t, w.must("runs", "list", "--all", "--server", s.URL), "t/1", "t/2", "t/3")
	if fmt.Sprint(asked) != "[ cursor=two cursor=three]" {
		t.Errorf("asked %q", asked)
	}
	asked = nil
	contains(t, w.must("runs", "list", "--limit", "2", "--json", "--server", s.URL), `"t/1"`, `"t/2"`, `"nextCursor": "three"`, "1e400")
	if fmt.Sprint(asked) != "[limit=2 cursor=two&limit=1]" {
		t.Errorf("asked %q", asked)
	}
}

func TestApprovals(t *testing.T) {
	w := newWorld(t)
	w.server()
	w.must("workflows", "apply", w.file("gate.json", gate()))
	contains(t, w.must("approvals", "list"), "Nothing waits")
	begin := func() string {
		id, _, _ := strings.Cut(w.must("runs", "start", "gate"), " ")
		return id
	}
	id := begin()
	contains(t, w.must("approvals", "list"), "RUN ", id, "ask   approval", "Send it?")
	contains(t, w.must("approvals", "list", "--json"), `"artifactData"`)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, "give the answer with --action"},
		"odd action":     {[]string{"--action", "maybe"}, `--action "maybe" is not`},
		"no comment":     {[]string{"--action", "refine"}, "refine needs a comment"},
		"no artifact":    {[]string{"--action", "edit-accept"}, "edit-accept needs the edited artifact"},
		"two values":     {[]string{"--value", "1", "--file", "x"}, "exclude each other"},
		"no JSON":        {[]string{"--value", "{"}, "is not valid JSON"},
		"lonely comment": {[]string{"--comment", "x"}, "--comment goes with --action"},
		"odd artifact":   {[]string{"--action", "accept", "--value", "1"}, "goes with edit-accept only"},
	} {
		if code := w.run(append([]string{"approvals", "resolve", id, "ask"}, tc.args...)...); code != 2 {
			t.Errorf("%s: exit %d", name, code)
		}
		contains(t, w.err.String(), tc.want)
	}
	contains(t, w.must("approvals", "resolve", id, "ask", "--action", "refine", "--comment", "Shorter."), id)
	contains(t, w.must("runs", "events", id, "--json"), `"refineFeedback":{"scope":"whole","text":"Shorter."}`)
	id = begin()
	w.stdin = strings.NewReader(`{"text": "new"}`)
	w.must("approvals", "resolve", id, "ask", "--action", "edit-accept", "--file", "-")
	contains(t, w.must("runs", "events", id, "--json"), `"editedArtifactData":{"text":"new"}`)
	id = begin()
	w.must("approvals", "resolve", id, "ask", "--value", `{"action":"accept"}`)
	if code := w.run("approvals", "resolve", id, "ask", "--action", "accept"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "(interrupt_already_resolved)")
	// In a terminal, the person is asked.
	id = begin()
	in := w.terminal()
	done := w.start("approvals", "resolve", id, "ask")
	w.dialogue(w.err, in, "edit-accept]?", "accept")
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
}

func TestExitCodes(t *testing.T) {
	w := newWorld(t)
	url := w.server().URL
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		code int
		want string
	}{
		"unknown command":   {[]string{"frobnicate"}, nil, 2, `"frobnicate" is not a command of`},
		"unknown below":     {[]string{"runs", "frobnicate"}, nil, 2, `"frobnicate" is not a command of`},
		"unknown flag":      {[]string{"runs", "list", "--x"}, nil, 2, "unknown flag: --x"},
		"missing argument":  {[]string{"runs", "show"}, nil, 2, "needs a run id"},
		"too many":          {[]string{"runs", "show", "a", "b"}, nil, 2, `cannot use "b"`},
		"no node":           {[]string{"approvals", "resolve", "a"}, nil, 2, "needs a node id"},
		"bad number":        {[]string{"runs", "list", "--limit", "x"}, nil, 2, "invalid argument"},
		"bad limit":         {[]string{"runs", "list", "--limit", "0"}, nil, 2, "at least 1"},
		"bad address":       {[]string{"runs", "list", "--server", "nowhere"}, nil, 2, `server: "nowhere": the host's address must begin with`},
		"nobody there":      {[]string{"runs", "list", "--server", "http://127.0.0.1:1"}, nil, 3, "cannot reach the host at http://127.0.0.1:1: "},
		"no key":            {[]string{"runs", "list"}, map[string]string{"FERMATA_API_KEY": ""}, 4, "Set FERMATA_API_KEY"},
		"wrong key":         {[]string{"runs", "list"}, map[string]string{"FERMATA_API_KEY": strings.Repeat("x", 40)}, 4, "(unauthenticated)"},
		"somebody else's":   {[]string{"runs", "show", "other/0123456789abcdef"}, nil, 4, "(id_tenant_mismatch)"},
		"not there":         {[]string{"runs", "show", "default/0123456789abcdef"}, nil, 1, "(not_found)"},
		"unknown profile":   {[]string{"runs", "list", "--profile", "x"}, nil, 2, `there is no profile "x"`},
		"unknown workflow":  {[]string{"runs", "start", "nope"}, nil, 1, `error: no workflow "nope" (not_found)`},
		"no host inside":    {[]string{"serve"}, nil, 1, "carries no host"},
		"no host to run in": {[]string{"run", "x"}, nil, 1, "carries no host"},
	} {
		t.Run(name, func(t *testing.T) {
			w.vars = map[string]string{"HOME": w.home, "FERMATA_SERVER": url, "FERMATA_API_KEY": testKey}
			for k, v := range tc.env {
				w.vars[k] = v
			}
			w.open = nil
			if code := w.run(tc.args...); code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			contains(t, w.err.String(), tc.want)
			if w.out.String() != "" {
				t.Errorf("output: %s", w.out)
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	w := newWorld(t)
	url := w.server().URL
	delete(w.vars, "FERMATA_SERVER")
	delete(w.vars, "FERMATA_API_KEY")
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	path := w.file(".config/fermata/profiles.json", `{"profiles":{"default":{"server":"`+url+`","key":"`+testKey+`"},"odd":{"server":"`+other.URL+`","key":"odd-key"}}}`)
	w.must("runs", "list")
	// The key of a profile stays with the profile's host.
	w.run("runs", "list", "--server", other.URL)
	w.vars["FERMATA_SERVER"] = other.URL
	w.run("runs", "list")
	if fmt.Sprint(leaked) != "[ ]" {
		t.Errorf("keys seen elsewhere: %q", leaked)
	}
	leaked = nil
	w.run("runs", "list", "--profile", "odd")
	w.vars["FERMATA_API_KEY"] = "from-the-environment"
	w.run("runs", "list")
	if fmt.Sprint(leaked) != "[Bearer odd-key Bearer from-the-environment]" {
		t.Errorf("keys: %q", leaked)
	}
	w.must("runs", "list", "--profile", "default") // beats the environment
	w.vars["FERMATA_PROFILE"] = "gone"
	if code := w.run("runs", "list"); code != 2 {
		t.Errorf("exit %d", code)
	}
	delete(w.vars, "FERMATA_PROFILE")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := w.run("runs", "list"); code != 2 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "others may read "+path, "chmod 600")
	w.file(".config/fermata/profiles.json", `{"profile":{}}`)
	os.Chmod(path, 0o600) //nolint:errcheck // the next line tells
	if code := w.run("runs", "list"); code != 2 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "cannot be read")
}

func TestDoctor(t *testing.T) {
	w := newWorld(t)
	w.server()
	contains(t, w.must("doctor"), "✓ settings", "✓ data", "is not there yet", "✓ host       fermata", "✓ ready", "✓ protocol   OpenWOP 2.0", "✓ key", "✓ clock")
	data := filepath.Join(w.home, "d")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if code := w.run("doctor", "--data", data, "--json"); code != 1 {
		t.Errorf("exit %d", code)
	}
	var all []finding
	if err := json.Unmarshal([]byte(w.out.String()), &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.OK == (f.Check == "data") || f.OK == (f.Fix != "") {
			t.Errorf("%+v", f)
		}
	}
	os.Chmod(data, 0o700) //nolint:errcheck // the next lines tell
	contains(t, w.must("doctor", "--data", data), "✓ lock       no host is using")

	// A host at work holds the folder's lock.
	other := newWorld(t)
	done := other.start("serve", "--listen", "127.0.0.1:0", "--data", data)
	other.serving()
	contains(t, w.must("doctor", "--data", data), "✓ lock       a host is using")
	other.signals <- os.Interrupt
	other.wait(done)

	w.vars["FERMATA_API_KEY"] = ""
	w.run("doctor", "--log-level", "loud")
	contains(t, w.out.String(), "✗ settings", `"loud" is not one of`, "✗ key        there is none", "→ Set FERMATA_API_KEY")
	w.run("doctor", "--server", "http://127.0.0.1:1")
	contains(t, w.out.String(), "✗ host", "cannot reach", "→ Start one with `fermata serve`")
}

func TestDoctorOnOddHosts(t *testing.T) {
	w := newWorld(t)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		switch r.URL.Path {
		case "/.well-known/openwop":
			fmt.Fprint(rw, `{"protocolVersions":["1.0"],"preferredVersion":"1.0"}`)
		case "/host/fermata/ready":
			rw.WriteHeader(503)
			fmt.Fprint(rw, `{"error":"service_unavailable","message":"the store does not answer"}`)
		}
	}))
	defer s.Close()
	w.run("doctor", "--server", s.URL)
	contains(t, w.out.String(), "✗ ready      the store does not answer", "✗ protocol   the host speaks 1.0, this program 2.0", "✗ clock")
}

func TestConfigCommand(t *testing.T) {
	w := newWorld(t)
	w.vars["FERMATA_BOOTSTRAP_KEY"] = strings.Repeat("s3cret", 8)
	w.vars["FERMATA_MAX_CALLS"] = "7"
	f := w.file("c.yaml", "log-level: debug\n")
	out := w.must("config", "--config", f, "--allow-egress", "10.0.0.0/8")
	contains(t, out, "SETTING ", "\nmax-calls ", " 7  ", "environment FERMATA_MAX_CALLS", "file "+f+":1", "flag --allow-egress", "(set, hidden)", "note: allow-egress: ")
	contains(t, w.must("config", "--json"), `"name": "listen"`, `"source": "default"`)
	if strings.Contains(out, "s3cret") {
		t.Errorf("the secret is shown:\n%s", out)
	}
	if code := w.run("config", "--max-calls", "no"); code != 2 {
		t.Errorf("exit %d", code)
	}
}

func TestAbout(t *testing.T) {
	w := newWorld(t)
	contains(t, w.must("version"), "fermata 1.2.3 (OpenWOP 2.0)")
	contains(t, w.must("version", "--json"), `"protocolVersion": "2.0"`)
	contains(t, w.must("--version"), "fermata 1.2.3")
	contains(t, w.must(), "On this machine:", "With a running host:", "About the program:")
	for _, cmd := range []string{"run", "serve", "runs", "workflows", "approvals", "doctor", "config"} {
		contains(t, w.must(cmd, "--help"), "Usage:")
	}
	contains(t, w.must("serve", "--help"), "--max-body-bytes number", "--shutdown-grace duration", "--allow-egress list")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		contains(t, w.must("completion", shell), "fermata")
	}
}

// The key must not travel in the clear unnoticed.
func TestExposedKeys(t *testing.T) {
	for server, want := range map[string]bool{
		"http://127.0.0.1:7411": false, "http://localhost:1": false, "http://[::1]:1": false,
		"https://example.org": false, "http://example.org": true, "http://10.0.0.1": true,
	} {
		if got := exposed(server); got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
}

// bundleOf reads a run's debug bundle to the screen and into a file of its owner's.
func bundleOf(t *testing.T, w *world, id string) {
	t.Helper()
	whole := w.must("runs", "bundle", id)
	contains(t, whole, `"bundleVersion": "2"`, `"type": "run.started"`, `"redactionApplied": true`)
	if strings.Contains(w.err.String(), "does not hold everything") {
		t.Errorf("a whole bundle: %s", w.err.String())
	}
	file := filepath.Join(t.TempDir(), "bundle.json")
	contains(t, w.must("runs", "bundle", id, "--out", file, "--max-events", "1"), "Wrote "+file+": 1 events.")
	contains(t, w.err.String(), "does not hold everything: events_truncated_to_size_cap. It has the first 1 events.")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Events []any
		Run    struct{ RunID string }
	}
	if err := json.Unmarshal(b, &doc); err != nil || len(doc.Events) != 1 || doc.Run.RunID != id {
		t.Errorf("%v: %s", err, b)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for args, want := range map[[2]string]int{{"--out", file}: 2, {"--max-events", "-1"}: 2, {"--max-events", "x"}: 2} {
		if code := w.run("runs", "bundle", id, args[0], args[1]); code != want {
			t.Errorf("%v: exit %d", args, code)
		}
	}
	if code := w.run("runs", "bundle", "default/0123456789abcdef"); code != 1 {
		t.Errorf("no such run: exit %d", code)
	}
}

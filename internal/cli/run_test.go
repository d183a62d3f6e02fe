package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRunPrintsOutputs(t *testing.T) {
	w := newWorld(t)
	// The settings of a host that may be running beside it are not its own.
	w.vars["FERMATA_LISTEN"], w.vars["FERMATA_DATA"] = "203.0.113.1:1", "/nowhere"
	f := w.file("echo.json", echo("1"))
	out := w.must("run", f, "--input", "n=12345678901234567890.10")
	if strings.TrimSpace(out) != "{\n  \"n\": 12345678901234567890.10\n}" {
		t.Errorf("got %s", out)
	}
	contains(t, w.err.String(), "running    OUT", "completed  OUT")
}

// A run that is not to be kept leaves nothing behind.
func TestRunRemovesItsData(t *testing.T) {
	w := newWorld(t)
	temp := filepath.Join(w.home, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	w.must("run", w.file("echo.json", echo("1")), "-i", "n=1")
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRunAsEvents(t *testing.T) {
	w := newWorld(t)
	out := w.must("run", w.file("echo.json", echo("1")), "-i", "n=1", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, l := range lines {
		var ev struct {
			Sequence int    `json:"sequence"`
			Type     string `json:"type"`
		}
		if err := json.Unmarshal([]byte(l), &ev); err != nil || ev.Sequence != i {
			t.Errorf("line %d: %s (%v)", i, l, err)
		}
	}
	contains(t, lines[len(lines)-1], `"run.completed"`, `"outputs":{"n":1}`)
}

func TestRunFailures(t *testing.T) {
	w := newWorld(t)
	f := w.file("echo.json", echo("1"))
	broken := w.file("bad/broken.json", "{\n  \"id\": ,\n}")
	wrong := w.file("bad2/wrong.json", strings.ReplaceAll(echo("1"), "core.identity", "core.unheardof"))
	fails := w.file("fails.json", workflow("fails", "1", "", aNode("bang", "core.fail", `{"code":"validation_error","message":"No items.","details":{"field":"items"}}`, "{}"), ""))
	for name, tc := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"no file":         {[]string{"run"}, 2, []string{"error: `fermata run` needs a workflow file"}},
		"missing file":    {[]string{"run", "nowhere.json"}, 2, []string{"nowhere.json"}},
		"missing input":   {[]string{"run", f}, 1, []string{"error: inputs.n: is required (validation_error)"}},
		"wrong input":     {[]string{"run", f, "-i", "n=abc"}, 2, []string{`error: --input n: "abc" is not a number in JSON`}},
		"no pair":         {[]string{"run", f, "-i", "n"}, 2, []string{`--input "n" is not name=value`}},
		"no answer":       {[]string{"run", f, "--answer", "=x"}, 2, []string{"is not node=value"}},
		"broken":          {[]string{"run", broken}, 1, []string{broken + ":2: ", "is not a valid workflow"}},
		"wrong":           {[]string{"run", wrong}, 1, []string{wrong + ":1: nodes[0].typeId: "}},
		"fails":           {[]string{"run", fails}, 1, []string{"error: items: No items. (validation_error)", "node: bang"}},
		"setting":         {[]string{"run", f, "--log-level", "loud"}, 2, []string{`log-level: "loud" is not one of`}},
		"a serve setting": {[]string{"run", f, "--max-calls", "1"}, 2, []string{"unknown flag: --max-calls"}},
	} {
		t.Run(name, func(t *testing.T) {
			if code := w.run(tc.args...); code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			contains(t, w.err.String(), tc.want...)
			if w.out.String() != "" {
				t.Errorf("output: %s", w.out)
			}
		})
	}
}

func TestRunUsesItsNeighbours(t *testing.T) {
	w := newWorld(t)
	f := w.file("w/parent.json", workflow("parent", "1", `{"name":"n","type":"number"}`,
		aNode("call", "core.subWorkflow", `{"workflowId":"echo","inputMapping":{"n":"n"},"outputMapping":{"n":"n"}}`, "{}")+","+
			aNode("out", "core.identity", "{}", `{"n":{"type":"variable","variableName":"n"}}`), anEdge("call", "out")))
	w.file("w/child.json", echo("1"))
	w.file("w/notes.json", `{"any":"thing"}`)
	w.file("w/copy.json", strings.ReplaceAll(workflow("parent", "1", "", aNode("x", "core.noop", "{}", "{}"), ""), "parent", "parent"))
	out := w.must("run", f, "-i", "n=7")
	contains(t, out, `"n": 7`)
	contains(t, w.err.String(), "running    CALL", "  OUT", "runs echo")

	// A neighbour that is needed and does not fit is named.
	w.file("w/child.json", strings.ReplaceAll(echo("1"), "core.identity", "core.unheardof"))
	if code := w.run("run", f, "-i", "n=7"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "not registered: ", "child.json:1: nodes[0].typeId")
}

func TestRunInputs(t *testing.T) {
	w := newWorld(t)
	f := w.file("echo.json", echo("1"))
	contains(t, w.must("run", f, "--inputs", w.file("in.json", `{"n": 1e3}`)), `"n": 1e3`)
	contains(t, w.must("run", f, "--inputs", w.file("in.json", `{"n": 1}`), "-i", "n=2"), `"n": 2`)
	w.stdin = strings.NewReader(`{"n": 5}`)
	contains(t, w.must("run", f, "--inputs", "-"), `"n": 5`)
	if code := w.run("run", f, "--inputs", w.file("in.json", `[1]`)); code != 2 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "are not a JSON object")
}

func TestRunWithPresetAnswer(t *testing.T) {
	w := newWorld(t)
	f := w.file("gate.json", gate())
	contains(t, w.must("run", f, "--answer", "ask=accept"), `"approved": true`)
	contains(t, w.must("run", f, "--answer", `ask={"action":"edit-accept","editedArtifactData":{"text":"ho"}}`), `"text": "ho"`)
	if code := w.run("run", f, "--answer", "ask=reject"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "(approval_rejected)")
}

// Where nobody can answer, the run ends and says why.
func TestRunThatNobodyCanAnswer(t *testing.T) {
	w := newWorld(t)
	if code := w.run("run", w.file("gate.json", gate())); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "ask waits: Send it?", "--answer ask=accept", "nobody can answer ask here", "the run was cancelled")
	// A wrong preset answer is told, and leaves nobody.
	if code := w.run("run", w.file("gate.json", gate()), "--answer", "ask=maybe"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "the answer for ask was not taken", "the run was cancelled")
}

// dialogue types lines when their prompts appear.
func (w *world) dialogue(stream *buffer, in io.Writer, steps ...string) {
	w.t.Helper()
	for i := 0; i+1 < len(steps); i += 2 {
		w.saw(stream, steps[i])
		io.WriteString(in, steps[i+1]+"\n") //nolint:errcheck // a pipe of the test's own
	}
}

func (w *world) terminal() io.Writer {
	r, in := io.Pipe()
	w.tty, w.stdin = true, r
	return in
}

func TestRunAsksAtTheTerminal(t *testing.T) {
	w := newWorld(t)
	in := w.terminal()
	done := w.start("run", w.file("gate.json", gate()))
	w.dialogue(w.err, in, "[a accept, rej reject, ref refine, e edit-accept]?", "nonsense", "Please answer with one of", "edit",
		"The edited artifact", "{oops", "that looks like JSON, but is not", `{"text":"new"}`)
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
	contains(t, w.out.String(), `"text": "new"`)
	contains(t, w.err.String(), "Send it?", "Look twice.", `"text": "hi"`, "✓\x1b[0m ASK", showCursor)
}

func TestRunAsksQuestions(t *testing.T) {
	w := newWorld(t)
	f := w.file("q.json", workflow("q", "1", "", aNode("ask", "core.clarificationGate",
		`{"questions":[{"id":"c","question":"Which colour?","schema":{"enum":["red","blue"]}},{"id":"n","question":"How many?","schema":{"type":"integer","minimum":2}},{"id":"s","question":"Sure?","schema":{"type":"boolean"}},{"id":"t","question":"Anything else?"}]}`, "{}"), ""))
	in := w.terminal()
	done := w.start("run", f)
	w.dialogue(w.err, in, "Which colour? [red/blue]", "green", "Please answer with one of: red, blue.", "blue",
		"How many? (integer)", "1", "Sure? [yes/no]", "yes", "Anything else?", "no, 42 is enough")
	// The host knows the whole schema and refuses one answer: all are asked again.
	w.saw(w.err, "resumeValue.answers.n")
	w.dialogue(w.err, in, "", "red", "", "3", "", "no", "", "fine")
	if code := w.wait(done); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	contains(t, w.out.String(), `"c": "red"`, `"n": 3`, `"s": false`, `"t": "fine"`)
}

func TestRunTakesAnExternalEvent(t *testing.T) {
	w := newWorld(t)
	f := w.file("e.json", workflow("e", "1", "", aNode("paid", "core.interrupt",
		`{"kind":"external-event","data":{"eventType":"payment","correlation":{"order":7}}}`, "{}"), ""))
	in := w.terminal()
	done := w.start("run", f)
	w.dialogue(w.err, in, "to deliver it here:", `{"order":8}`, "does not match the correlation", `{"order":7,"sum":1e2}`)
	if code := w.wait(done); code != 0 {
		t.Fatalf("exit %d: %s", code, w.err)
	}
	contains(t, w.out.String(), `"sum": 1e2`)
}

func TestRunIsAnsweredFromElsewhere(t *testing.T) {
	w := newWorld(t)
	done := w.start("run", w.file("gate.json", gate()), "--listen", "127.0.0.1:0")
	w.saw(w.err, "Answer it with: ")
	w.saw(w.err, "--server http://")
	_, line, _ := strings.Cut(w.err.String(), "Answer it with: ")
	words := strings.Fields(line)
	key, ok := strings.CutPrefix(words[0], "FERMATA_API_KEY=")
	if !ok || words[1] != "fermata" {
		t.Fatalf("not a command: %s", line)
	}
	other := newWorld(t)
	other.vars["FERMATA_API_KEY"] = key
	other.must(words[2:]...)
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
}

func TestRunInterrupted(t *testing.T) {
	sleep := workflow("sleep", "1", "", aNode("wait", "core.delay", `{"delayMs":3600000}`, "{}"), "")
	t.Run("is cancelled", func(t *testing.T) {
		w := newWorld(t)
		done := w.start("run", w.file("sleep.json", sleep))
		w.saw(w.err, "running    WAIT")
		w.signals <- os.Interrupt
		if code := w.wait(done); code != 1 {
			t.Errorf("exit %d", code)
		}
		contains(t, w.err.String(), "interrupted; cancelling the run", "error: the run was cancelled")
	})
	t.Run("stays in its data folder", func(t *testing.T) {
		w := newWorld(t)
		data := filepath.Join(w.home, "data")
		done := w.start("run", w.file("sleep.json", sleep), "--data", data)
		w.saw(w.err, "running    WAIT")
		w.signals <- syscall.SIGTERM
		if code := w.wait(done); code != 1 {
			t.Errorf("exit %d", code)
		}
		contains(t, w.err.String(), "stays in "+data)
	})
	t.Run("by its timeout", func(t *testing.T) {
		w := newWorld(t)
		if code := w.run("run", w.file("sleep.json", sleep), "--timeout", "50ms"); code != 1 {
			t.Errorf("exit %d", code)
		}
		contains(t, w.err.String(), "--timeout is over")
	})
	t.Run("twice ends at once", func(t *testing.T) {
		w := newWorld(t)
		done := w.start("run", w.file("sleep.json", sleep))
		w.saw(w.err, "running    WAIT")
		w.signals <- os.Interrupt
		w.signals <- os.Interrupt
		if code := <-w.exits; code != exitTwice {
			t.Errorf("exit %d", code)
		}
		w.wait(done)
	})
}

func TestRunWatchesItsFile(t *testing.T) {
	w := newWorld(t)
	f := w.file("echo.json", echo("1"))
	done := w.start("run", f, "-i", "n=1", "--watch")
	w.saw(w.err, "Ctrl-C ends it")
	// A file that is wrong is told, and the watch goes on.
	w.file("echo.json", "{ no")
	w.saw(w.err, "is not a valid workflow")
	w.file("echo.json", strings.ReplaceAll(echo("1"), `{"n":{`, `{"again":{`))
	w.saw(w.out, `"again": 1`)
	// A run that is under way gives way to the next.
	w.file("echo.json", workflow("echo", "1", "", aNode("wait", "core.delay", `{"delayMs":3600000}`, "{}"), ""))
	w.saw(w.err, "running    WAIT")
	w.file("echo.json", echo("2"))
	w.saw(w.out, `"n": 1`)
	w.signals <- os.Interrupt
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
}

// What a child run wants to know is asked like everything else.
func TestRunAnswersForItsChildren(t *testing.T) {
	w := newWorld(t)
	f := w.file("w/parent.json", workflow("parent", "1", "", aNode("call", "core.subWorkflow", `{"workflowId":"gate"}`, "{}"), ""))
	w.file("w/gate.json", gate())
	w.must("run", f, "--answer", "ask=accept")
	contains(t, w.err.String(), "waiting      ASK  Send it?", "completed    ASK", "completed  CALL")
	in := w.terminal()
	done := w.start("run", f)
	w.dialogue(w.err, in, "edit-accept]?", "rej")
	if code := w.wait(done); code != 1 {
		t.Errorf("exit %d", code)
	}
}

// More child runs than are followed at the same time, each with a question.
func TestRunOfManyChildren(t *testing.T) {
	w := newWorld(t)
	f := w.file("w/parent.json", workflow("parent", "1", "", aNode("each", "core.flow.map",
		`{"items":"[`+strings.TrimSuffix(strings.Repeat("1,", 2*maxFollowed+5), ",")+`]","workflowId":"gate","concurrency":64}`, "{}"), ""))
	w.file("w/gate.json", gate())
	w.must("run", f, "--answer", "ask=accept")
	if n := strings.Count(w.err.String(), "completed    ASK"); n < 2*maxFollowed {
		t.Errorf("only %d of the children were seen to the end:\n%s", n, w.err)
	}
}

// A vote that does not decide leaves the gate open, and nobody else is here.
func TestRunThatNeedsAnotherVote(t *testing.T) {
	w := newWorld(t)
	in := w.terminal()
	done := w.start("run", w.file("gate.json", strings.ReplaceAll(gate(), `"title"`, `"requiredApprovals":2,"title"`)))
	w.dialogue(w.err, in, "It needs 2 approvals; yours counts once.", "ac")
	if code := w.wait(done); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "nobody can answer ask here")
}

// The input may end while a question is open.
func TestRunWhoseInputEnds(t *testing.T) {
	w := newWorld(t)
	w.tty = true
	if code := w.run("run", w.file("gate.json", gate())); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "ask waits: Send it?", "nobody can answer ask here")
}

// Log lines of the host do not tear the board.
func TestRelay(t *testing.T) {
	out := newBuffer()
	r := newRelay(out)
	io.WriteString(r, "one\n") //nolint:errcheck // a buffer
	detach := r.attach()
	go io.WriteString(r, "two\n") //nolint:errcheck // a buffer
	if got := <-r.lines; got != "two" {
		t.Errorf("got %q", got)
	}
	written := make(chan struct{})
	go func() {
		io.WriteString(r, "three\n") //nolint:errcheck // a buffer
		close(written)
	}()
	detach() // whoever was about to read has gone: the line is not lost
	<-written
	if got := out.String(); got != "one\nthree\n" {
		t.Errorf("got %q", got)
	}
}

// The suite's verb takes the address as the other commands do.
func TestConformanceAddress(t *testing.T) {
	a := newApp(Env{Getenv: func(k string) string {
		if k == "FERMATA_SERVER" {
			return "http://env"
		}
		return ""
	}})
	for _, c := range []struct{ in, want string }{
		{"", "--base-url http://env"},
		{"--server http://flag --quick", "--base-url http://env --base-url http://flag --quick"},
		{"--server=http://flag", "--base-url http://env --base-url=http://flag"},
	} {
		if got := strings.Join(a.likeTheOthers(strings.Fields(c.in)), " "); got != c.want {
			t.Errorf("%q becomes %q", c.in, got)
		}
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/client"
)

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// screen is as much of a terminal as the board needs: it shows what a person
// would see.
type screen struct {
	t     *testing.T
	lines []string
	row   int
}

func (s *screen) Write(p []byte) (int, error) {
	text := string(p)
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			s.control(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		switch text[0] {
		case '\n':
			s.row++
		case '\r':
		default:
			s.put(text[:1])
		}
		text = text[1:]
	}
	return len(p), nil
}

func (s *screen) control(arg string, verb byte) {
	switch verb {
	case 'A':
		n, _ := strconv.Atoi(arg)
		if s.row -= n; s.row < 0 {
			s.t.Fatalf("the cursor left the screen")
		}
	case 'K':
		s.grow()
		s.lines[s.row] = ""
	case 'J':
		s.lines = s.lines[:min(s.row, len(s.lines))]
	case 'h', 'l', 'm':
	default:
		s.t.Fatalf("unknown control %q", arg+string(verb))
	}
}

func (s *screen) grow() {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, "")
	}
}

func (s *screen) put(b string) {
	s.grow()
	s.lines[s.row] += b
}

// story feeds events of a run to a board and its view.
type story struct {
	b   *board
	v   view
	at  time.Time
	seq int64
}

func (s *story) tell(run, typ, node, payload string) {
	ev := client.Event{RunID: run, Sequence: s.seq, Type: typ, NodeID: node, Time: s.at, Payload: json.RawMessage(payload)}
	ev.Raw = json.RawMessage(fmt.Sprintf(`{"sequence":%d}`, s.seq))
	s.seq++
	s.v.event(run, &ev, s.b.apply(run, &ev))
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func live(t *testing.T, size Size, colour bool) (*story, *screen) {
	b := newBoard("r", map[string]string{"a": "First step"})
	sc := &screen{t: t}
	v := newLiveView(sc, b, func() Size { return size }, colour)
	v.now = noon
	return &story{b: b, v: v, at: noon}, sc
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBoardIsDrawnInPlace(t *testing.T) {
	for _, colour := range []bool{false, true} {
		s, sc := live(t, Size{60, 24}, colour)
		s.tell("r", "node.started", "a", `{"attempt":0}`)
		s.at = s.at.Add(1500 * time.Millisecond)
		s.tell("r", "node.completed", "a", `{}`)
		s.tell("r", "node.skipped", "b", `{"reason":"no way leads here"}`)
		s.tell("r", "node.started", "c", `{"attempt":0}`)
		s.tell("r", "node.retried", "c", `{"attempt":1,"delayMs":2000,"lastError":{"code":"x","message":"Boom."}}`)
		same(t, sc.lines, []string{"✓ First step  1.5s", "– b  no way leads here", "↻ c  0ms  again in 2.0s: Boom. (x)"})
		s.tell("r", "node.started", "c", `{"attempt":1}`)
		s.v.tick(s.at.Add(3 * time.Second))
		same(t, sc.lines, []string{"✓ First step  1.5s", "– b  no way leads here", "⠙ c  3.0s  attempt 2"})
		s.tell("r", "interrupt.requested", "c", `{"kind":"approval","data":{"title":"Really\u001b[31m?"}}`)
		same(t, sc.lines[2:], []string{"? c  3.0s  Really�[31m?"})
		s.v.note("by the way")
		same(t, sc.lines, []string{"by the way", "✓ First step  1.5s", "– b  no way leads here", "? c  3.0s  Really�[31m?"})
		// A question is asked in place of the board, which comes back below it.
		s.v.hold()
		same(t, sc.lines, []string{"by the way"})
		s.v.tick(s.at.Add(4 * time.Second))
		fmt.Fprint(sc, "Really? y\n")
		s.v.release()
		s.tell("r", "node.failed", "c", `{"error":{"code":"approval_rejected","message":"No."}}`)
		s.v.close()
		same(t, sc.lines, []string{"by the way", "Really? y", "✓ First step  1.5s", "– b  no way leads here", "✗ c  0ms  No. (approval_rejected)"})
	}
}

func TestBoardFitsTheTerminal(t *testing.T) {
	s, sc := live(t, Size{30, 5}, false)
	for i := range 6 {
		node := fmt.Sprintf("n%d", i)
		s.tell("r", "node.started", node, `{}`)
		if i < 4 {
			s.tell("r", "node.completed", node, `{}`)
		}
	}
	same(t, sc.lines, []string{"  … 3 nodes not shown", "✓ n3  0ms", "⠋ n4  0ms", "⠋ n5  0ms"})
	s.tell("r", "output.chunk", "n5", `{"chunk":"words that go on and on and on"}`)
	s.tell("r", "output.chunk", "n4", `{"chunk":"漢字漢字漢字漢字漢字漢字漢字漢字"}`)
	for _, l := range sc.lines {
		n := 0
		for _, r := range l {
			n += columnsOf(r)
		}
		if n >= 30 {
			t.Errorf("%q has %d columns", l, n)
		}
	}
	s.v.close()
	if len(sc.lines) != 6 {
		t.Errorf("the whole board is not shown at the end: %q", sc.lines)
	}
	// More at work than fits: the latest are shown.
	s, sc = live(t, Size{30, 4}, false)
	for i := range 6 {
		s.tell("r", "node.started", fmt.Sprintf("n%d", i), `{}`)
	}
	same(t, sc.lines, []string{"  … 4 nodes not shown", "⠋ n4  0ms", "⠋ n5  0ms"})
}

func TestBoardShowsChildRuns(t *testing.T) {
	s, sc := live(t, Size{60, 24}, false)
	s.tell("r", "node.started", "call", `{}`)
	s.tell("r", "node.dispatched", "call", `{"childRunId":"k","childWorkflowId":"ship"}`)
	s.tell("r", "node.started", "z", `{}`)
	s.b.runs["k"].names = map[string]string{"pack": "Pack it"}
	s.tell("k", "node.started", "pack", `{}`)
	s.tell("k", "node.dispatched", "pack", `{"childRunId":"m","childWorkflowId":"tape"}`)
	s.tell("m", "node.started", "cut", `{}`)
	s.tell("k", "node.started", "post", `{}`)
	same(t, sc.lines, []string{"⠋ call  0ms  runs ship", "  ⠋ Pack it  0ms  runs tape", "    ⠋ cut  0ms", "  ⠋ post  0ms", "⠋ z  0ms"})
	s.tell("k", "node.started", "pack", `{"attempt":0}`)
	contains(t, sc.lines[1], "Pack it ×2")
}

func TestLines(t *testing.T) {
	out := newBuffer()
	s := &story{b: newBoard("r", nil), v: &lineView{out: out}, at: noon}
	s.tell("r", "run.started", "", `{}`)
	s.tell("r", "node.started", "a", `{}`)
	s.tell("r", "output.chunk", "a", `{"chunk":"x"}`)
	s.tell("r", "log.appended", "a", `{"level":"info","message":"so far"}`)
	s.tell("r", "log.appended", "a", `{"level":"info","message":"internal","x-fermata":{}}`)
	s.at = s.at.Add(70 * time.Second)
	s.tell("r", "node.completed", "a", `{}`)
	s.tell("r", "run.paused", "", `{"reason":"lunch"}`)
	var got []string
	for l := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "  ")
		got = append(got, rest)
	}
	same(t, got, []string{"running    a", "a: so far", "completed  a  1m10s", "the run is paused: lunch"})
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 7 * time.Millisecond: "7ms", 1250 * time.Millisecond: "1.2s", 61 * time.Second: "1m01s",
		90 * time.Minute: "1h30m", 50 * time.Hour: "2d02h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestTextIsMadeSafe(t *testing.T) {
	if got := plain("a\x1b[2Jb\nc\u202Ed\u0085"); got != "a�[2Jb c�d�" {
		t.Errorf("%q", got)
	}
	if got := string(maskControls([]byte("{\"a\":\"\u009b\u202e\x7f ok ü\"}"))); got != `{"a":"\u009b\u202e\u007f ok ü"}` {
		t.Errorf("%s", got)
	}
	if got := paragraphs("a\r\n\x07b\n", "> "); got != "> a\n> �b\n" {
		t.Errorf("%q", got)
	}
}

func TestInputValues(t *testing.T) {
	for _, tc := range []struct{ text, typ, want string }{
		{"42", "number", "42"}, {"42", "string", `"42"`}, {`"42"`, "string", `"42"`}, {"42", "", "42"}, {"x y", "", `"x y"`},
		{"1e400", "number", "1e400"}, {"true", "boolean", "true"}, {`{"a":1}`, "object", `{"a":1}`}, {"[1]", "array", "[1]"},
		{"null", "number", "null"}, {"null", "string", `"null"`}, {"x", "number", ""}, {"1", "boolean", ""}, {"[1]", "object", ""},
		{"", "string", `""`}, {"", "", `""`}, {"", "number", ""}, {"<&>", "string", `"<&>"`},
	} {
		got, err := inputValue(tc.text, tc.typ)
		if (err != nil) != (tc.want == "") || string(got) != tc.want {
			t.Errorf("%q as %s: %s, %v", tc.text, tc.typ, got, err)
		}
	}
}

func TestShortcuts(t *testing.T) {
	actions := []string{"accept", "reject", "refine", "edit-accept", "ask"}
	keys := shortcuts(actions)
	same(t, keys, []string{"ac", "rej", "ref", "e", "as"})
	for in, want := range map[string]string{"ac": "accept", "ACCEPT": "accept", "a": "", "re": "", "rej": "reject", "edit": "edit-accept", "": "", "x": ""} {
		if got := choose(in, actions, keys); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

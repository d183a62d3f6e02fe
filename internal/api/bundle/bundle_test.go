package bundle

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json/jsontext"
)

func long(n int) jsontext.Value {
	return jsontext.Value(`{"x":"` + strings.Repeat("x", n) + `"}`)
}

func wire(r Run) Wire {
	return Wire{
		Version: "2", Run: func(*host.RunDetail) (Run, error) { return r, nil },
		Event: func(e *event.Event) []byte { return e.Payload }, Clean: func(b []byte) []byte { return b },
	}
}

// A run that would fill the bundle loses what is largest and least needed first, and
// what is left leaves room for events.
func TestRunIsCutToItsHalf(t *testing.T) {
	const max = 10_000
	for name, c := range map[string]struct {
		states, variables, inputs, err int
		left                           string // by first letters
	}{
		"small": {10, 10, 10, 10, "svie"}, "states": {max, 10, 10, 10, "vie"}, "variables": {10, max, 10, 10, "ie"},
		"inputs": {10, 10, max, 10, "e"}, "error": {10, 10, 10, max, ""}, "all together": {2000, 2000, 2000, 10, "vie"},
	} {
		m := maker{most: 100, max: max, nodes: map[string]bool{}, wire: wire(Run{
			RunID: "t/0123456789abcdef", Status: "running",
			NodeStates: long(c.states), Variables: long(c.variables), Inputs: long(c.inputs), Error: long(c.err),
		})}
		if err := m.begin(&host.DebugBundle{}); err != nil {
			t.Fatal(err)
		}
		left := ""
		for _, part := range []string{`"nodeStates":{`, `"variables":{`, `"inputs":{`, `"error":{`} {
			if strings.Contains(string(m.run), part) {
				left += string(map[string]byte{`"nodeStates":{`: 's', `"variables":{`: 'v', `"inputs":{`: 'i', `"error":{`: 'e'}[part])
			}
		}
		d := m.document(&host.DebugBundle{At: time.Unix(0, 0)})
		if left != c.left || len(m.run) > max/2 || d.Truncated != (c.left != "svie") || d.Truncated && d.TruncatedReason != stateCut {
			t.Errorf("%s: %q of %d bytes is left, truncated for %q", name, left, len(m.run), d.TruncatedReason)
		}
	}
}

func TestEventsFillWhatIsLeft(t *testing.T) {
	m := maker{most: 100, max: 1000, nodes: map[string]bool{}, wire: wire(Run{})}
	if err := m.begin(&host.DebugBundle{}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for m.take(&event.Event{NodeID: "a", Payload: long(100)}) {
		n++
	}
	if n == 0 || n > 8 || len(m.events) != n {
		t.Errorf("%d events", n)
	}
	d := m.document(&host.DebugBundle{Partial: true})
	if d.TruncatedReason != eventsCut || d.Metrics.EventCount != n || d.Metrics.NodeCount != 1 {
		t.Errorf("%+v", d.Metrics)
	}
}

// What was masked on the way out counts, whatever the workflow's mode.
func TestMaskedIsNotPassthrough(t *testing.T) {
	w := wire(Run{})
	secret := false
	w.Clean = func(b []byte) []byte {
		if secret {
			return []byte(`{"x":"[REDACTED]"}`)
		}
		return b
	}
	m := maker{most: 100, max: 1000, nodes: map[string]bool{}, wire: w}
	if err := m.begin(&host.DebugBundle{}); err != nil {
		t.Fatal(err)
	}
	b := host.DebugBundle{Mode: "passthrough"}
	if d := m.document(&b); d.RedactionApplied || d.RedactionMode != "passthrough" {
		t.Errorf("%+v", d)
	}
	secret = true
	m.take(&event.Event{Payload: long(3)})
	if d := m.document(&b); !d.RedactionApplied || d.RedactionMode != "mask" {
		t.Errorf("%+v", d)
	}
}

func TestStatus(t *testing.T) {
	for status, want := range map[string]string{
		run.Pending: "pending", run.Running: "running", run.Paused: "running", run.Cancelling: "running",
		run.WaitingApproval: "waiting-approval", run.WaitingInput: "waiting-clarification", run.WaitingExternal: "waiting-approval",
		run.Completed: "completed", run.Failed: "failed", run.Cancelled: "cancelled",
	} {
		if got := Status(status); got != want {
			t.Errorf("%s is %s, want %s", status, got, want)
		}
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	m := maker{wire: Wire{Run: func(*host.RunDetail) (Run, error) { return Run{}, errors.New("no") }}}
	if m.begin(&host.DebugBundle{}) == nil {
		t.Error("no error")
	}
}

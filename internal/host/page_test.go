package host

import (
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/store"
)

// A page calls a run terminal only when it holds the last event, or the cursor
// is behind it.
func TestPageIsTerminalWithTheLastEventOnly(t *testing.T) {
	to := func(last int64) []event.Event { return []event.Event{{Seq: last}} }
	for _, c := range []struct {
		status string
		events []event.Event
		after  int64
		want   bool
	}{
		{"running", to(5), -1, false}, {"completed", to(4), -1, false}, {"completed", to(5), -1, true}, {"completed", nil, 4, false},
		{"completed", nil, 5, true}, {"completed", nil, 9, true}, {"failed", to(5), 3, true}, {"cancelled", to(5), 3, true},
		{"cancelling", to(5), 3, false}, {"paused", to(5), 3, false}, {"waiting-approval", nil, 5, false},
	} {
		p := pageOf(store.Run{Status: c.status, Seq: 5}, c.events, c.after)
		if p.IsTerminal != c.want || p.LastSequence != 5 || p.Status != c.status {
			t.Errorf("%s after %d with %v: %+v", c.status, c.after, c.events, p)
		}
	}
}

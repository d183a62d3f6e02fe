package sse

import (
	"regexp"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
)

// Supported lists the individual stream modes.
var Supported = []string{"values", "updates", "messages", "debug"}

var grammar = regexp.MustCompile(`^(values|(updates|messages|debug)(,(updates|messages|debug))*)$`)

// Mode is what a subscriber wants to see.
type Mode struct {
	Values, Updates, Messages, Debug bool
	mixed                            bool
}

// ParseMode reads a streamMode parameter. The default, for an absent one, is
// updates.
func ParseMode(s string, given bool) (Mode, error) {
	if !given {
		s = "updates"
	}
	if !grammar.MatchString(s) {
		p := problem.New(problem.UnsupportedStreamMode, "the stream mode %q is not supported", s)
		if strings.Contains(s, "values,") || strings.Contains(s, ",values") {
			p.Message = "the stream mode values stands alone: its frames are no events"
		}
		return Mode{}, p.With("supported", Supported)
	}
	var m Mode
	n := 0
	for part := range strings.SplitSeq(s, ",") {
		into := map[string]*bool{"values": &m.Values, "updates": &m.Updates, "messages": &m.Messages, "debug": &m.Debug}[part]
		if !*into {
			n++
		}
		*into = true
	}
	m.mixed = n > 1
	return m, nil
}

// Shows reports whether a mode that sends events shows a type on a wire.
func (m Mode) Shows(w *Wire, t event.Type) bool { return m.admits(w, t) != "" }

// admits names the frame under which an event is sent on a wire; empty if it is not.
func (m Mode) admits(w *Wire, t event.Type) string {
	switch {
	case m.Updates && w.InUpdates(t):
		return m.name(w, "updates", w.Name(t))
	case m.Messages && t.InMessages():
		return m.name(w, "messages", chunkFrame)
	case m.Debug:
		return m.name(w, "debug", w.Name(t))
	}
	return ""
}

func (m Mode) name(w *Wire, mode, single string) string {
	if m.mixed && w.ByMode {
		return mode
	}
	return single
}

// chunkFrame is the frame name of streamed output in the messages mode. Its
// data is the payload alone.
const chunkFrame = "ai.message.chunk"

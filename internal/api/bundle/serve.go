package bundle

import (
	"bytes"
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxBytes is about how large a bundle becomes (spec v1 debug-bundle.md §Bundle size
// limits). The run itself may take half of it, and the events what is left.
const MaxBytes = 8 << 20

// What a bundle leaves out.
const (
	eventsCut = "events_truncated_to_size_cap"
	stateCut  = "state_truncated_to_size_cap"
)

// MaxEvents is the parameter with which a caller asks for a smaller bundle.
var MaxEvents = api.Param{
	Name: "maxEvents", Description: "At most this many events, the first ones; fewer if the bundle becomes too large.",
	Schema: `{"type":"integer","minimum":0}`,
}

// Wire is how a major of the protocol writes a bundle.
type Wire struct {
	Version string // of the bundle
	Run     func(*host.RunDetail) (Run, error)
	Event   func(*event.Event) []byte

	// Clean takes out of a piece of JSON what is not to be shown.
	Clean func([]byte) []byte
}

// Serve answers with a run's bundle.
func Serve(h *host.Host, w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run, wire Wire) error {
	most, err := r.QueryInt("maxEvents", 0, 1<<31-1, 1<<31-1)
	if err != nil {
		return err
	}
	m := maker{wire: wire, most: int(most), max: MaxBytes, nodes: map[string]bool{}}
	b, err := h.DebugBundle(r.Context(), c, id, m.begin, m.take)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, m.document(&b))
}

// maker puts a bundle together.
type maker struct {
	wire Wire
	most int // events
	max  int // bytes

	run     jsontext.Value
	events  []jsontext.Value
	nodes   map[string]bool
	size    int
	cut     string // what of the run had to be left out
	cleaned bool
}

// begin writes the run, without what would leave no room for its events.
func (m *maker) begin(b *host.DebugBundle) error {
	doc, err := m.wire.Run(&b.RunDetail)
	if err != nil {
		return problem.Internal(err)
	}
	for _, part := range []*jsontext.Value{nil, &doc.NodeStates, &doc.Variables, &doc.Inputs, &doc.Error} {
		if part != nil {
			if *part == nil {
				continue
			}
			*part, m.cut = nil, stateCut
		}
		text, err := json.Marshal(doc, json.Deterministic(true), jsontext.PreserveRawStrings(true))
		if err != nil {
			return problem.Internal(err)
		}
		if m.run = m.clean(text); len(m.run) <= m.max/2 {
			break
		}
	}
	m.size = len(m.run)
	return nil
}

// take adds an event, if there is room.
func (m *maker) take(e *event.Event) bool {
	if len(m.events) >= m.most {
		return false
	}
	text := m.clean(m.wire.Event(e))
	if m.size += len(text) + 1; m.size > m.max {
		return false
	}
	m.events = append(m.events, text)
	if e.NodeID != "" {
		m.nodes[e.NodeID] = true
	}
	return true
}

func (m *maker) clean(text []byte) []byte {
	out := m.wire.Clean(text)
	m.cleaned = m.cleaned || !bytes.Equal(out, text)
	return out
}

func (m *maker) document(b *host.DebugBundle) document {
	d := document{
		BundleVersion: m.wire.Version, GeneratedAt: run.Stamp(b.At), Host: program{b.Host.Name, b.Host.Version, b.Host.Name},
		Run: m.run, Events: m.events, Spans: []jsontext.Value{},
		Metrics:          metrics{Cost: jsontext.Value("null"), NodeCount: len(m.nodes), EventCount: len(m.events)},
		RedactionApplied: b.Masked || m.cleaned, RedactionMode: b.Mode, TruncatedReason: m.cut,
	}
	if d.Events == nil {
		d.Events = []jsontext.Value{}
	}
	if d.RedactionApplied && d.RedactionMode == "passthrough" {
		// The workflow masks nothing, but the host did.
		d.RedactionMode = "mask"
	}
	if b.Partial {
		d.TruncatedReason = eventsCut
	}
	d.Truncated = d.TruncatedReason != ""
	return d
}

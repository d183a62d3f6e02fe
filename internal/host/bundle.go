package host

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DebugBundle is what one document says of a run to somebody who looks for a fault in
// it (spec v1 debug-bundle.md). The events are given one by one, so that nobody has to
// hold a long log.
type DebugBundle struct {
	RunDetail
	At      time.Time
	Host    About  // name and version alone
	Mode    string // how sensitive values are masked
	Masked  bool   // whether anything may have been
	Partial bool   // the log goes on behind the last event that was taken
}

// DebugBundle reads a run and its log as they are at one moment, and gives take the
// events in order for as long as it wants them. The state is known first: begin is
// called with it.
//
// A bundle is made to be handed on, so it shows less than the log does: inputs that
// the workflow does not declare are masked like sensitive ones.
func (h *Host) DebugBundle(ctx context.Context, c identity.Caller, id ids.Run, begin func(*DebugBundle) error, take func(*event.Event) (more bool)) (DebugBundle, error) {
	if err := h.admit(ctx, c, identity.RunsRead, id); err != nil {
		return DebugBundle{}, err
	}
	s, err := h.state(ctx, id)
	if err != nil {
		return DebugBundle{}, notFound(err)
	}
	b, err := h.bundleOf(s)
	if err != nil {
		return DebugBundle{}, err
	}
	if err := begin(&b); err != nil {
		return DebugBundle{}, err
	}
	b.Partial, err = h.disclose(ctx, s, take)
	return b, err
}

func (h *Host) bundleOf(s *run.State) (DebugBundle, error) {
	d, err := DetailOf(s)
	if err != nil {
		return DebugBundle{}, err
	}
	b := DebugBundle{RunDetail: d, At: h.cfg.Clock.Now(), Host: About{Name: implementation, Version: h.cfg.Version}, Mode: s.MaskingMode()}
	var in, vars bool
	b.Inputs, in = s.Declared(b.Inputs)
	b.Variables, vars = s.DeclaredVariables(b.Variables)
	b.Masked = in || vars || b.Mode != "passthrough"
	return b, nil
}

// disclose gives out a log up to where a state is the fold of it, and reports whether
// some of it was left.
func (h *Host) disclose(ctx context.Context, s *run.State, take func(*event.Event) bool) (partial bool, err error) {
	for after := int64(-1); after < s.Seq; {
		_, events, err := h.log(ctx, s.ID, after, streamEvents, streamBytes)
		if err != nil {
			return false, err
		}
		if len(events) == 0 {
			return true, nil // it went away meanwhile
		}
		for i := range events {
			e := &events[i]
			if e.Seq > s.Seq {
				return false, nil
			}
			after = e.Seq
			if e.Type == event.RunStarted {
				e = declared(s, e)
			}
			if !take(e) {
				return true, nil
			}
		}
	}
	return false, nil
}

// declared is a run's start without the inputs that nobody has declared.
func declared(s *run.State, e *event.Event) *event.Event {
	var m map[string]jsontext.Value
	if json.Unmarshal(e.Payload, &m) != nil {
		return e
	}
	inputs, hid := s.Declared(m["inputs"])
	if !hid {
		return e
	}
	m["inputs"] = inputs
	return e.Showing(event.Encode(m))
}

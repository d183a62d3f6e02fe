package sse

import (
	"errors"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
)

func TestParseMode(t *testing.T) {
	for s, want := range map[string]Mode{
		"values": {Values: true}, "updates": {Updates: true}, "messages": {Messages: true}, "debug": {Debug: true}, "updates,updates": {Updates: true},
		"updates,messages": {Updates: true, Messages: true, mixed: true}, "debug,messages,updates": {Updates: true, Messages: true, Debug: true, mixed: true},
	} {
		if got, err := ParseMode(s, true); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	if got, err := ParseMode("", false); err != nil || got != (Mode{Updates: true}) {
		t.Errorf("default: %+v, %v", got, err)
	}
	for _, s := range []string{"", "x", "values,updates", "updates,values", "values,values", ",", "updates,", " updates", "updates\n", "UPDATES"} {
		_, err := ParseMode(s, true)
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != problem.UnsupportedStreamMode || p.Details["supported"] == nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// Of every registered type: which modes show it, and under what name.
func TestAdmits(t *testing.T) {
	mode := func(s string) Mode { m, _ := ParseMode(s, true); return m }
	for _, row := range event.Rows() {
		name := string(row.Type)
		up, msg := row.Type.InUpdates(), row.Type.InMessages()
		want := map[string]string{
			"updates": "", "messages": "", "debug": name, "values": "", "updates,messages": "", "updates,debug": "debug", "messages,debug": "debug",
		}
		if up {
			want["updates"], want["updates,messages"], want["updates,debug"] = name, "updates", "updates"
		}
		if msg {
			want["messages"], want["updates,messages"], want["messages,debug"] = "ai.message.chunk", "messages", "messages"
		}
		for m, frame := range want {
			if got := mode(m).admits(Current, row.Type); got != frame {
				t.Errorf("%s in %s: %q, want %q", name, m, got, frame)
			}
		}
	}
	// A vendor's type shows in debug only.
	if v := event.Type("acme.something"); mode("debug").admits(Current, v) != "acme.something" || mode("updates,messages").admits(Current, v) != "" {
		t.Error("a vendor's event")
	}
}

// A wire that names frames by their events does so in combined modes too, and streamed
// output is one kind of frame wherever messages are asked for.
func TestFramesNamedByType(t *testing.T) {
	wire := *Current
	wire.ByMode = false
	wire.Name = func(t event.Type) string { return "old." + string(t) }
	wire.InUpdates = func(t event.Type) bool { return t == event.RunStarted }
	wire.Doc = func(*event.Event) []byte { return []byte("doc") }
	wire.Payload = func(*event.Event) []byte { return []byte("payload") }
	for s, want := range map[string][3]string{ // of run.started, run.completed, output.chunk
		"updates": {"old.run.started"}, "messages": {"", "", "ai.message.chunk"}, "debug": {"old.run.started", "old.run.completed", "old.output.chunk"},
		"updates,messages": {"old.run.started", "", "ai.message.chunk"}, "updates,debug": {"old.run.started", "old.run.completed", "old.output.chunk"},
		"messages,debug": {"old.run.started", "old.run.completed", "ai.message.chunk"},
	} {
		m, err := ParseMode(s, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, typ := range []event.Type{event.RunStarted, event.RunCompleted, event.OutputChunk} {
			got := m.admits(&wire, typ)
			if got != want[i] {
				t.Errorf("%s in %s: %q, want %q", typ, s, got, want[i])
			}
			data := "doc"
			if got == "ai.message.chunk" {
				data = "payload"
			}
			if b := wire.data(m, ev(0, typ, "{}")); got != "" && string(b) != data {
				t.Errorf("%s in %s holds %s", typ, s, b)
			}
		}
	}
}

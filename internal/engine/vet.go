package engine

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// vetCall refuses a result that cannot become part of a log: JSON that is none,
// text that is not UTF-8, values larger than an event may be. Code in Go can
// return anything; the log must always be readable.
func (e *Engine) vetCall(r node.Result, writes []node.Write, w *node.Wake) error {
	v := vetter{max: e.cfg.Limits.MaxPayloadBytes}
	for k, o := range r.Outputs() {
		v.name("an output", k)
		v.value("output "+k, o)
	}
	for _, w := range writes {
		v.name("a variable or channel", w.Variable+w.Channel+w.Reducer)
		v.value("the value of "+w.Variable+w.Channel, w.Value)
	}
	if s := r.State(); len(s) > 0 && (w == nil || !bytes.Equal(s, w.State)) { // what it waited with before is in the log
		v.value("the state kept", s)
	}
	for _, p := range r.Ports() {
		v.name("a port", p)
	}
	for _, c := range r.Children() {
		v.name("a child", c.WorkflowID+c.Key)
		for k, in := range c.Inputs {
			v.name("an input", k)
			v.value("input "+k+" of a child", in)
		}
	}
	if i := r.Interrupt(); i != nil {
		v.name("an interrupt", i.Kind+i.Key)
		if len(i.Data) > 0 {
			v.value("the interrupt's data", i.Data)
		}
		if len(i.ResumeSchema) > 0 {
			v.value("the interrupt's schema", i.ResumeSchema)
		}
	}
	if v.err == nil {
		return nil
	}
	return v.err
}

type vetter struct {
	max int
	err *node.Error
}

func (v *vetter) value(what string, raw []byte) {
	switch {
	case v.err != nil:
	case v.max > 0 && len(raw) > v.max:
		v.err = node.Fail(string(problem.PayloadTooLarge), "%s is larger than %d bytes", what, v.max)
	case event.Depth(raw) > event.MaxDepth:
		v.err = node.Fail(node.CodeConfig, "%s nests deeper than %d levels", what, event.MaxDepth)
	case !jsontext.Value(raw).IsValid():
		v.err = node.Fail(node.CodeInternal, "%s is not JSON", what)
	}
}

func (v *vetter) name(what, s string) {
	if v.err == nil && !utf8.ValidString(s) {
		v.err = node.Fail(node.CodeInternal, "%s has a name that is not UTF-8", what)
	}
}

// Bounds of what a node says about itself: one text, and one set of fields.
const (
	maxText   = 64 << 10
	maxFields = 256 << 10
)

func cleanText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func shortText(s string) string { return cleanText(s[:min(len(s), maxText)]) }

// cleanFields makes sure that what a node says about itself can be written down.
func cleanFields(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	b, err := json.Marshal(m) // makes text UTF-8 as it goes
	if err != nil || len(b) > maxFields || !jsontext.Value(b).IsValid() {
		return map[string]any{"omitted": "the fields cannot be written as JSON, or are too large"}
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil
	}
	out := make(map[string]any, len(raw))
	for k, v := range raw {
		out[k] = jsontext.Value(v)
	}
	return out
}

func cleanLogs(lines []node.LogLine) []node.LogLine {
	for i := range lines {
		l := &lines[i]
		l.Message, l.Fields = shortText(l.Message), cleanFields(l.Fields)
	}
	return lines
}

package v1wire

import (
	"bytes"
	"regexp"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shapes are the payloads that v1 has in a form of its own.
var shapes = map[event.Type]func(*event.Event, *members){
	event.RunStarted:             started,
	"run.restored-from-snapshot": versionText,
	event.NodeCompleted:          outputs,
	event.RunCompleted:           outputs,
	event.NodeFailed:             failed,
	event.RunFailed:              failed,
	event.NodeRetried:            failed,
	event.ApprovalRequested:      approvalRequested,
	event.ApprovalReceived:       approvalReceived,
	event.ApprovalGranted:        decided,
	event.ApprovalRejected:       decided,
	event.ApprovalOverridden:     decided,
	event.ClarificationRequested: clarificationRequested,
	event.ClarificationResolved:  clarificationResolved,
	event.InterruptResolved:      resolved,
}

// Payload is an event's payload in v1's form (spec v1 run-event-payloads.schema.json).
// What v1 has no other form for is the same bytes. A log in the words of v1 comes out
// as its host wrote it.
func Payload(e *event.Event) jsontext.Value { return redact.KeysJSON(shaped(e)) }

func shaped(e *event.Event) jsontext.Value {
	shape := shapes[e.Type]
	if shape == nil && !named(e.Payload) {
		return e.Payload
	}
	m, ok := open(e.Payload)
	if !ok {
		return e.Payload
	}
	m.drop(event.Extension)
	m.bare(e.Run.Tenant)
	if shape != nil {
		shape(e, &m)
	}
	return m.encode()
}

// named reports whether a payload may hold something that every type has differently.
func named(p jsontext.Value) bool {
	for _, s := range []string{event.Extension, "unId", "interruptId"} {
		if bytes.Contains(p, []byte(s)) {
			return true
		}
	}
	return false
}

func started(e *event.Event, m *members) {
	versionText(e, m)
	m.edit("owner", func(o *members) {
		p := Principal(o.get("subject"))
		o.drop("subject")
		if p != "" && o.text("principal") == "" {
			o.setText("principal", p)
		}
	})
}

// versionText turns a version that is a number into text.
func versionText(_ *event.Event, m *members) {
	if v := m.get("engineVersion"); v.Kind() == '0' {
		m.set("engineVersion", event.Encode(string(v)))
	}
}

// Principal is a subject as v1 names people: by an id alone. It is empty for the one
// whom nobody attested and for what is no subject.
func Principal(subject jsontext.Value) string {
	var s event.Subject
	if subject.Kind() != '{' || json.Unmarshal(subject, &s) != nil || s.Issuer == event.LegacyIssuer && s.SubjectID == "legacy" {
		return ""
	}
	return s.SubjectID
}

// outputs finds the references to runs that nodes give out, and nothing below them:
// there the values are the workflow's own.
func outputs(e *event.Event, m *members) {
	m.edit("outputs", func(o *members) { o.bare(e.Run.Tenant) })
}

func failed(e *event.Event, m *members) {
	for _, name := range []string{"error", "lastError"} {
		m.edit(name, func(x *members) {
			if own := Code(x.text("code"), detail(*x, "reason")); own != "" {
				x.set("code", event.Encode(own))
			}
			x.edit("details", func(d *members) { d.bare(e.Run.Tenant) })
		})
	}
}

func detail(x members, name string) string {
	d, _ := open(x.get("details"))
	return d.text(name)
}

// codeForm is what a code looks like, among the reasons of an internal_error.
var codeForm = regexp.MustCompile(`^[a-z][a-z0-9]*([_.][a-z0-9]+)+$`)

// Code is an error's code in v1, where codes are an open list: one of the workflow's
// own, which in this major is the reason of an internal_error, is itself there.
func Code(code, reason string) string {
	if code == "internal_error" && codeForm.MatchString(reason) {
		return reason
	}
	return code
}

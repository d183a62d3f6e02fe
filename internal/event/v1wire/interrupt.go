package v1wire

import (
	"cmp"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Nobody decided what time has decided.
const system = "system"

// request is what a kind's own request is made of: the interrupt's data, which v1 has
// as members of the payload. It is nil where the payload has v1's form already.
func request(e *event.Event, m members) members {
	data, ok := open(m.get("data"))
	if !ok {
		return nil
	}
	out := members{{"nodeId", event.Encode(e.NodeID)}}
	for _, x := range data {
		out.set(x.name, x.value)
	}
	return out
}

// approvalRequested says what v1 wants of an approval, and names the node where no
// artifact is: a gate without one asks about its own place in the workflow.
func approvalRequested(e *event.Event, m *members) {
	r := request(e, *m)
	if r == nil {
		return
	}
	if r.text("artifactId") == "" {
		r.setText("artifactId", e.NodeID)
	}
	if r.text("artifactType") == "" {
		r.setText("artifactType", "approval")
	}
	*m = r
}

func clarificationRequested(e *event.Event, m *members) {
	if r := request(e, *m); r != nil {
		*m = r
	}
}

// answer is what an answer says by itself.
func answer(m members) members {
	v, _ := open(m.get("resumeValue"))
	return v
}

// person takes the subject out of an answer and says who it was.
func (m *members) person() string {
	p := Principal(m.get("resolvedBy"))
	m.drop("resolvedBy")
	return p
}

// voter is whose vote an answer is, where whoever brought it has vouched for somebody.
func voter(e *event.Event) string {
	p, err := event.Read[struct {
		X event.ResolutionX `json:"x-fermata"`
	}](e.Payload)
	if err != nil {
		return ""
	}
	return p.X.Voter
}

// approvalReceived is what anybody has said to an approval, or what time has.
func approvalReceived(e *event.Event, m *members) {
	if m.get("resolvedBy") == nil && m.get("decision") == nil {
		return
	}
	by, said := cmp.Or(voter(e), m.person()), answer(*m)
	m.drop("resolvedBy")
	if m.text("action") == "" {
		m.setText("action", said.text("action"))
	}
	m.setText("decidedBy", by)
	m.setText("decidedAt", e.Time.UTC().Format(event.TimeLayout))
	m.setText("comment", said.text("comment"))
	m.setText("feedback", said.text("feedback"))
}

// decided is a gate that was granted, rejected or overridden. v1 closes it.
func decided(e *event.Event, m *members) {
	if m.get("gateId") != nil {
		return
	}
	by, reason := cmp.Or(voter(e), m.person(), system), m.text("reason")
	said := answer(*m)
	for _, name := range []string{"reason", "comment", "feedback"} {
		if reason == "" {
			reason = said.text(name)
		}
	}
	out := members{{"gateId", event.Encode(e.NodeID)}, {"principal", event.Encode(by)}}
	switch {
	case e.Type == event.ApprovalGranted: // has no reason
	case e.Type == event.ApprovalOverridden && reason == "":
		out.setText("reason", "released by an override principal")
	default:
		out.setText("reason", reason)
	}
	*m = out
}

func clarificationResolved(e *event.Event, m *members) {
	if m.get("resumeValue") == nil && m.get("resolvedBy") == nil {
		return
	}
	out := members{{"nodeId", event.Encode(e.NodeID)}, {"answers", answers(m.get("resumeValue"))}}
	out.setText("interruptId", m.text("interruptId"))
	out.setText("answeredBy", m.person())
	*m = out
}

// answers is the object of answers by question that v1 wants, whichever of the shapes
// somebody has sent.
func answers(v jsontext.Value) jsontext.Value {
	if m, ok := open(v); ok {
		v = m.get("answers")
	}
	if v.Kind() == '{' {
		return v
	}
	var list []struct {
		ID     string         `json:"id"`
		Answer jsontext.Value `json:"answer"`
	}
	out := members{}
	if v.Kind() == '[' && json.Unmarshal(v, &list) == nil {
		for _, a := range list {
			if len(a.Answer) > 0 {
				out.set(a.ID, a.Answer)
			}
		}
	}
	return out.encode()
}

func resolved(_ *event.Event, m *members) {
	if by := m.get("resolvedBy"); by != nil {
		m.set("resolvedBy", event.Encode(Principal(by)))
	}
}

package v1

import (
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// answer is what of a resume value v1 has other words for than this major (v1
// interrupt.md §kind: approval). The host's rules are for the words of this major.
type answer struct {
	Action   string
	Decision string // from before there were actions
	Feedback string
	Voter    string // whose vote it is, where one credential brings many
}

// readAnswer reads those members that are strings; what else stands there is the
// interrupt's own affair.
func readAnswer(value jsontext.Value) (answer, error) {
	var a answer
	var m map[string]jsontext.Value
	if value.Kind() != '{' || json.Unmarshal(value, &m) != nil {
		return a, nil
	}
	for name, into := range map[string]*string{"action": &a.Action, "decision": &a.Decision, "feedback": &a.Feedback, "voter": &a.Voter} {
		if v := m[name]; v.Kind() == '"' {
			_ = json.Unmarshal(v, into)
		}
	}
	if len(a.Voter) > maxVoter {
		return a, problem.Invalid("resumeValue.voter", "has at most %d bytes", maxVoter)
	}
	return a, nil
}

// maxVoter is the longest name of a voter, in bytes.
const maxVoter = 256

// old reports whether an approval would have to be put in other words.
func (a answer) old() bool {
	return a.Action == "edit" || a.Action == "" && (a.Decision == "approved" || a.Decision == "rejected")
}

// words puts an answer to an approval in the words of this major: edit is edit-accept,
// approved is accept, and rejected is reject or, with feedback, refine. Any other kind is
// answered with what its author wants, whatever that looks like.
func (a answer) words(kind string, value jsontext.Value) jsontext.Value {
	if kind != "approval" && kind != "low-confidence" {
		return value
	}
	var m map[string]jsontext.Value
	if json.Unmarshal(value, &m) != nil {
		return value
	}
	action := "accept"
	switch {
	case a.Action == "edit":
		action = "edit-accept"
	case a.Decision == "rejected" && a.Feedback != "":
		action = "refine"
		if m["refineFeedback"] == nil {
			m["refineFeedback"] = quoted(map[string]string{"scope": "whole", "text": a.Feedback})
		}
	case a.Decision == "rejected":
		action = "reject"
	}
	m["action"] = quoted(action)
	return quoted(m)
}

// quoted encodes what always can be.
func quoted(v any) jsontext.Value {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return jsontext.Value("null")
	}
	return b
}

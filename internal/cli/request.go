package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-run/fermata/client"
)

// approvalData is what an approval asks.
type approvalData struct {
	Title             string          `json:"title"`
	Description       string          `json:"description"`
	ArtifactID        string          `json:"artifactId"`
	ArtifactType      string          `json:"artifactType"`
	ArtifactData      json.RawMessage `json:"artifactData"`
	Actions           []string        `json:"actions"`
	RequiredApprovals int             `json:"requiredApprovals"`
}

// questionsData is what a clarification asks.
type questionsData struct {
	Questions []question `json:"questions"`
}

type question struct {
	ID       string          `json:"id"`
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"schema"`
}

// otherData are the members of the remaining kinds that a person is shown.
type otherData struct {
	EventType     string          `json:"eventType"`
	Correlation   json.RawMessage `json:"correlation"`
	CustomKind    string          `json:"customKind"`
	Payload       json.RawMessage `json:"payload"`
	Title         string          `json:"title"`
	Prompt        string          `json:"prompt"`
	InitialPrompt string          `json:"initialPrompt"`
	AgentID       string          `json:"agentId"`
	Threshold     json.Number     `json:"threshold"`
	Observed      json.Number     `json:"observed"`
	Decision      json.RawMessage `json:"decision"`
}

// titleOf says in one line what a request is about.
func titleOf(r client.Request) string {
	var a approvalData
	var q questionsData
	var o otherData
	_ = json.Unmarshal(r.Data, &a)
	_ = json.Unmarshal(r.Data, &q)
	_ = json.Unmarshal(r.Data, &o)
	switch r.Kind {
	case "approval":
		return a.Title
	case "clarification":
		if len(q.Questions) == 1 {
			return q.Questions[0].Question
		}
		return plural(len(q.Questions), "question")
	case "external-event":
		return strings.TrimSuffix("waits for the event "+o.EventType+" "+string(o.Correlation), " ")
	case "custom":
		return o.CustomKind
	case "low-confidence":
		return fmt.Sprintf("%s is unsure: %s, wants %s", o.AgentID, o.Observed, o.Threshold)
	}
	for _, s := range []string{o.Title, o.Prompt, o.InitialPrompt} {
		if s != "" {
			return s
		}
	}
	return r.Kind
}

// actionsOf are the actions a request can be answered with; nil for kinds that
// are answered otherwise.
func actionsOf(r client.Request) []string {
	switch r.Kind {
	case "approval":
		var a approvalData
		_ = json.Unmarshal(r.Data, &a)
		return a.Actions
	case "low-confidence":
		return []string{"accept", "reject", "refine", "edit-accept"}
	}
	return nil
}

// decision is the answer to a request that offers actions.
type decision struct {
	Action   string          `json:"action"`
	Feedback string          `json:"feedback,omitempty"`
	Refine   *refinement     `json:"refineFeedback,omitempty"`
	Edited   json.RawMessage `json:"editedArtifactData,omitempty"`
}

type refinement struct {
	Scope string `json:"scope"`
	Text  string `json:"text"`
}

// decide makes the answer of an action, with the words and the artifact that go
// with it.
func decide(action, comment string, edited json.RawMessage) (json.RawMessage, error) {
	d := decision{Action: action, Feedback: comment, Edited: edited}
	switch action {
	case "refine":
		if comment == "" {
			return nil, usage("refine needs a comment that says what to change")
		}
		d.Feedback, d.Refine = "", &refinement{"whole", comment}
	case "edit-accept":
		if len(edited) == 0 {
			return nil, usage("edit-accept needs the edited artifact, as JSON")
		}
	}
	if len(edited) > 0 && action != "edit-accept" {
		return nil, usage("an edited artifact goes with edit-accept only, not with %s", action)
	}
	return marshal(d)
}

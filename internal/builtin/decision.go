package builtin

import (
	"encoding/json"
	"slices"

	"github.com/fermata-run/fermata/node"
)

// verdictOutputs are the names decide may put out.
var verdictOutputs = []string{"action", "approved", "decidedBy", "feedback", "refineFeedback", "artifactData", "exchange"}

// verdict is what an approval's resume value may hold. Who decided is the host's
// word first; the value's own is used where the host names nobody.
type verdict struct {
	Action             string          `json:"action"`
	Feedback           json.RawMessage `json:"feedback"`
	RefineFeedback     json.RawMessage `json:"refineFeedback"`
	EditedArtifactData json.RawMessage `json:"editedArtifactData"`
	DecidedBy          json.RawMessage `json:"decidedBy"`
}

// offer is the state an approval waits with: what was offered must not change
// with the run's data while people think.
func offer(actions []string) json.RawMessage {
	return object{{"actions", quotes(actions)}}.raw()
}

func offeredIn(state json.RawMessage) []string {
	var s struct {
		Actions []string `json:"actions"`
	}
	_ = json.Unmarshal(state, &s) // a state that cannot be read offers nothing
	return s.Actions
}

// decide turns the answer to an approval into outputs, or into the failure a
// rejection is. Nothing but an action that was offered opens the gate, and the
// passing of time never does.
func decide(a *node.Answer, offered []string) (map[string]json.RawMessage, error) {
	if a.TimedOut {
		return nil, rejected("timeout", "Nobody decided in time.")
	}
	var v verdict
	if len(a.Value) > 0 {
		_ = json.Unmarshal(a.Value, &v) // what does not fit stays empty
	}
	action := first(a.Action, v.Action)
	if action == "reject" || action == "timeout" {
		return nil, rejected(action, "The approval was rejected.")
	}
	if action == "ask" || !slices.Contains(offered, action) {
		return nil, node.Fail(node.CodeInternal, "the approval was answered with an action that does not end it")
	}
	out := map[string]json.RawMessage{"action": quote(action), "approved": json.RawMessage("true")}
	put := func(name string, v json.RawMessage) {
		if !absent(v) {
			out[name] = v
		}
	}
	switch action {
	case "refine":
		out["approved"] = json.RawMessage("false")
		put("refineFeedback", v.RefineFeedback)
	case "edit-accept":
		if len(v.EditedArtifactData) == 0 {
			return nil, node.Fail(node.CodeInternal, "the approval was answered with edit-accept, but without the edited artifact")
		}
		out["artifactData"] = v.EditedArtifactData
	}
	put("feedback", v.Feedback)
	put("exchange", exchange(a.Exchange))
	put("decidedBy", v.DecidedBy)
	if a.By != "" {
		out["decidedBy"] = quote(a.By)
	}
	return out, nil
}

// exchange lists what was asked before the decision; nothing if nothing was.
func exchange(said []node.Said) json.RawMessage {
	if len(said) == 0 {
		return nil
	}
	list := make([]json.RawMessage, len(said))
	for i, s := range said {
		list[i] = object{{"by", quote(s.By)}, {"at", quote(s.At.UTC().Format("2006-01-02T15:04:05.000Z"))}, {"value", orNull(s.Value)}}.raw()
	}
	return array(list)
}

func rejected(action, message string) *node.Error {
	e := node.Fail("approval_rejected", "%s", message)
	e.Details = map[string]any{"action": action}
	return e
}

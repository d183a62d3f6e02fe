package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// Keys made here are the hands of different people: each has one vote, and a gate
// that names their group opens to them alone.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	w.server()
	admin := w.vars["FERMATA_API_KEY"]
	w.must("workflows", "apply", w.file("gate.json", strings.Replace(gate(), `"title"`, `"requiredApprovals": 2, "approverGroupRefs": ["finance"], "title"`, 1)))
	id, _, _ := strings.Cut(w.must("runs", "start", "gate"), " ")
	contains(t, w.must("keys", "add", "--name", "ann", "--groups", "finance,sales", "--roles", "lead"),
		"API key    fermata_", "shown this once", "subject    key-", "scopes     *", "groups     finance, sales", "roles      lead")
	for i := range 2 {
		var made struct{ Key, SubjectID string }
		if err := json.Unmarshal([]byte(w.must("keys", "add", "--scopes", "approvals:respond,runs:read", "--groups", "finance", "--json")), &made); err != nil {
			t.Fatal(err)
		}
		w.vars["FERMATA_API_KEY"] = made.Key
		want := []string{"waiting-approval", "completed"}[i]
		contains(t, w.must("approvals", "resolve", id, "ask", "--action", "accept"), want)
		if code := w.run("keys", "add"); code != 4 {
			t.Errorf("exit %d", code)
		}
		contains(t, w.err.String(), "fermata:keys:write")
		w.vars["FERMATA_API_KEY"] = admin
	}
	contains(t, w.must("keys", "rotate-tokens"), "Tokens are signed with it-")
	contains(t, w.must("keys", "rotate-tokens", "--json"), `"kid": "it-`)
	if code := w.run("keys", "add", "--scopes", "no scope"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "scopes")
}

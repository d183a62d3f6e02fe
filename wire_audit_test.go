package fermata_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/audit"
)

// auditActions says what each operation that changes something leaves in the audit
// log. A new row in the route table needs a new one here.
var auditActions = map[string]string{
	"createRun":               "", // it is in the run's own log, with who asked for it; see TestWireAuditedRuns
	"cancelRun":               "run.cancel",
	"forkRun":                 "run.fork",
	"bulkCancelRuns":          "run.cancel",
	"pauseRun":                "run.pause",
	"resumeRun":               "run.resume",
	"resolveInterruptByRun":   "interrupt.answer",
	"resolveInterruptByToken": "interrupt.answer",
	"issueInterruptToken":     "interrupt-token.issue",
	"operateCompensation":     "compensation.start",
	"putWorkflow":             "workflow.register",
	"deleteWorkflow":          "workflow.delete",
	"registerWebhook":         "webhook.register",
	"unregisterWebhook":       "webhook.delete",
	"rotateWebhookSecret":     "webhook.rotate-secret",
	"enableWebhook":           "webhook.enable",
	"createKey":               "key.create",
	"revokeKey":               "key.revoke",
	"rotateKey":               "key.rotate",
	"createTenant":            "tenant.create",
	"suspendTenant":           "tenant.suspend",
	"activateTenant":          "tenant.activate",
	"putMember":               "member.put",
	"removeMember":            "member.remove",
	"putRole":                 "role.put",
	"removeRole":              "role.remove",
	"rotateTokenKey":          "token-key.rotate",
	"rotateAuditKey":          "audit-key.rotate",
	"createCredential":        "credential.create", "rotateCredential": "credential.rotate", "deleteCredential": "credential.delete", "rotateVault": "vault.rotate",
}

// notMutations change nothing although their method is not GET.
var notMutations = []string{"validateWorkflow"}

type auditEntry struct {
	Chain    string
	Sequence int64
	Actor    struct{ SubjectID, Lane, Assurance, Kind string }
	Action   string
	Outcome  string
	Target   struct{ Type, ID string }
	Request  string
	Detail   map[string]string
}

// audited reads the newest entries of both chains, by chain.
func (s *server) audited(chain string) (out []auditEntry) {
	s.t.Helper()
	a := s.do("GET", "/host/fermata/audit?limit=200&chain="+chain, nil).want(s.t, 200)
	var page struct {
		Entries []struct {
			Hash  string
			Entry json.RawMessage
		}
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		s.t.Fatal(err)
	}
	for _, e := range page.Entries {
		var x auditEntry
		if err := json.Unmarshal(e.Entry, &x); err != nil || e.Hash != audit.Hash(e.Entry) {
			s.t.Fatal(err, e.Hash)
		}
		out = append(out, x)
	}
	slices.Reverse(out)
	return out
}

// auditedStart waits for the entry that says that the host has started. It is written
// beside everything else that begins then.
func (s *server) auditedStart() {
	s.t.Helper()
	for range 2000 {
		if slices.ContainsFunc(s.audited("host"), func(e auditEntry) bool { return e.Action == "host.start" }) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.t.Fatal("the start of the host is not in the audit log")
}

// Whatever changes something is in the audit log, once, with who did it and to
// what; and nothing is there that must not be kept.
func TestWireEveryMutationIsAudited(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	s.auditedStart()
	s.register(gate("g"))
	calls := maps.Clone(mutations)
	calls["issueInterruptToken"] = func(s *server) (string, any) {
		return "/host/fermata/runs/" + seg(s.run("g")) + "/interrupts/ok/tokens", nil
	}
	calls["createCredential"] = func(*server) (string, any) {
		return "/host/fermata/credentials", map[string]any{"secret": "a-secret-of-this-test", "audiences": []string{"api.example.com"}}
	}
	calls["rotateCredential"] = func(s *server) (string, any) {
		return "/host/fermata/credentials/" + s.credential(map[string]any{"secret": "a-secret-of-this-test"}) + ":rotate", map[string]any{"secret": "another-secret-of-this-test"}
	}
	calls["rotateVault"] = func(*server) (string, any) { return "/host/fermata/vault:rotate", map[string]any{"dataKeys": true} }
	calls["createKey"] = func(*server) (string, any) {
		return "/host/fermata/keys", map[string]any{"name": "n", "scopes": []string{"runs:read"}}
	}
	calls["rotateKey"] = func(s *server) (string, any) {
		made := s.do("POST", "/host/fermata/keys", map[string]any{"scopes": []string{"runs:read"}}).want(s.t, 201)
		return "/host/fermata/keys/" + made.str("keyId") + ":rotate", nil
	}
	calls["createTenant"] = func(*server) (string, any) {
		return "/host/fermata/tenants", map[string]any{"tenantId": "made"}
	}
	var secrets []string
	for _, r := range s.host.Routes() {
		if r.Method == "GET" || slices.Contains(notMutations, r.ID) {
			continue
		}
		action, known := auditActions[r.ID]
		call := calls[r.ID]
		if !known || call == nil {
			t.Errorf("%s: nobody says what it leaves in the audit log", r.ID)
			continue
		}
		path, body := call(s)
		before := map[string]int{"tenant": len(s.audited("tenant")), "host": len(s.audited("host"))}
		a := s.do(r.Method, path, body)
		if a.status >= 300 {
			t.Fatalf("%s: %d %s", r.ID, a.status, a.body)
		}
		for _, member := range []string{"key", "token", "secret"} {
			if v, ok := a.json[member].(string); ok && v != "" {
				secrets = append(secrets, v)
			}
		}
		fresh := append(s.audited("tenant")[before["tenant"]:], s.audited("host")[before["host"]:]...)
		if action == "" {
			if len(fresh) > 0 {
				t.Errorf("%s: %+v", r.ID, fresh)
			}
			continue
		}
		if len(fresh) != 1 {
			t.Errorf("%s: %d entries: %+v", r.ID, len(fresh), fresh)
			continue
		}
		e := fresh[0]
		if e.Action != action || e.Outcome != "done" || e.Target.Type == "" || e.Actor.Lane != "api-key" ||
			!strings.HasPrefix(e.Actor.SubjectID, "key-") || e.Actor.Assurance != "bearer" {
			t.Errorf("%s: %+v", r.ID, e)
		}
	}
	secrets = append(secrets, testKey, standardSecret(2), standardSecret(1), "hooks.example.com/x", "resumeValue")
	for _, chain := range []string{"tenant", "host"} {
		file := s.do("GET", "/host/fermata/audit/export?chain="+chain, nil).want(t, 200).body
		for _, secret := range secrets {
			if bytes.Contains(file, []byte(secret)) {
				t.Errorf("the chain of the %s holds %q", chain, secret)
			}
		}
		if r, err := audit.VerifyExport(bytes.NewReader(file), nil, nil); err != nil || !r.Valid {
			t.Errorf("%s: %+v, %v", chain, r, err)
		}
		if v := s.do("GET", "/audit/verify?fromSeq=0&toSeq=1000000&chain="+chain, nil).want(t, 200); v.json["chainValid"] != true {
			t.Errorf("%s: %s", chain, v.body)
		}
	}
}

// Who approved, who denied, by what right, and by which way.
func TestWireAuditOfAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.BootstrapGroups = []string{"finance"} })
	s.register(gate("open"))
	shut := gate("shut")
	shut["nodes"].([]any)[1].(map[string]any)["config"] = map[string]any{"title": "t", "approverGroupRefs": []string{"finance"}}
	s.register(shut)
	accept, reject := map[string]any{"resumeValue": map[string]any{"action": "accept"}}, map[string]any{"resumeValue": map[string]any{"action": "reject"}}
	runs := []string{s.run("open"), s.run("shut"), s.run("open")}
	s.do("POST", "/runs/"+seg(runs[0])+"/interrupts/ok", accept).want(t, 200)
	s.do("POST", "/runs/"+seg(runs[1])+"/interrupts/ok", reject, keyHeader, idem(1)).want(t, 200)
	s.do("POST", "/interrupts/"+s.token(runs[2], "ok"), accept).want(t, 200)
	// Too late: nothing is changed, nothing is recorded.
	s.do("POST", "/runs/"+seg(runs[0])+"/interrupts/ok", accept).want(t, 409)
	var got []auditEntry
	for _, e := range s.audited("tenant") {
		if e.Action == "interrupt.answer" {
			got = append(got, e)
		}
	}
	if len(got) != 3 {
		t.Fatalf("%d answers: %+v", len(got), got)
	}
	for i, want := range []map[string]string{
		{"decision": "accept", "eligibility": "open", "via": ""},
		{"decision": "reject", "eligibility": "group", "ref": "finance", "via": ""},
		{"decision": "accept", "eligibility": "open", "via": "token"},
	} {
		e := got[i]
		if e.Target.ID != runs[i] || e.Detail["nodeId"] != "ok" || e.Detail["kind"] != "approval" || e.Detail["interruptId"] == "" || (e.Request != "") != (i == 1) {
			t.Errorf("%+v", e)
		}
		for k, v := range want {
			if e.Detail[k] != v {
				t.Errorf("answer %d: %s is %q, want %q", i, k, e.Detail[k], v)
			}
		}
	}
}

// Where the operator wants it, starts of runs are recorded, too.
func TestWireAuditedRuns(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.Audit.Runs = true })
	s.register(gate("g"))
	id := s.run("g")
	all := s.audited("tenant")
	if e := all[len(all)-1]; e.Action != "run.create" || e.Target.ID != id || e.Detail["workflowId"] != "g" {
		t.Errorf("%+v", e)
	}
	s.do("POST", "/runs", map[string]any{"workflowId": "nothing"}).want(t, 404)
	if again := s.audited("tenant"); len(again) != len(all) {
		t.Errorf("%+v", again[len(all):])
	}
}

// What was refused leaves no deed behind, but is counted at the end of the minute,
// or of the host.
func TestWireAuditOfRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	made := s.do("POST", "/host/fermata/keys", map[string]any{"scopes": []string{"runs:read"}}).want(t, 201)
	key := made.json["key"].(string)
	n := len(s.audited("tenant"))
	for range 7 {
		s.do("POST", "/runs", map[string]any{"workflowId": "g"}, "Authorization", "Bearer "+key).want(t, 403)
		s.do("GET", "/runs", nil, "Authorization", "Bearer "+strings.Repeat("x", 40)).want(t, 401)
	}
	s.do("POST", "/runs/"+seg("other/0123456789abcdef")+"/cancel", nil).want(t, 403)
	if got := s.audited("tenant"); len(got) != n {
		t.Errorf("%+v", got[n:])
	}
	s.restart()
	denied := map[string]string{}
	for _, chain := range []string{"tenant", "host"} {
		for _, e := range s.audited(chain) {
			if e.Outcome == "denied" {
				denied[e.Action+" "+e.Detail["reason"]+" "+e.Actor.SubjectID] = e.Detail["count"]
			}
		}
	}
	holder := made.json["subjectId"].(string)
	if denied["authorization.denied scope runs:create "+holder] != "7" || denied["authentication.failed unauthenticated "] != "7" || len(denied) != 3 {
		t.Errorf("%v", denied)
	}
}

// Pages of the log are whole, and the verdict keeps to the range it was asked for.
func TestWireAuditPagesAndRanges(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.Audit.CheckpointEntries, c.Audit.CheckpointInterval = 3, time.Second })
	for i := range 8 {
		s.register(gate(fmt.Sprint("w", i)))
	}
	var seqs []int64
	path := "/host/fermata/audit?limit=3"
	for next := path; next != ""; {
		a := s.do("GET", next, nil).want(t, 200)
		for _, e := range a.json["entries"].([]any) {
			seqs = append(seqs, int64(e.(map[string]any)["entry"].(map[string]any)["sequence"].(float64)))
		}
		next = ""
		if c, ok := a.json["nextCursor"].(string); ok {
			next = path + "&cursor=" + c
		}
	}
	if !slices.Equal(seqs, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1}) {
		t.Errorf("%v", seqs)
	}
	for query, field := range map[string]string{
		"fromSeq=-1": "fromSeq", "fromSeq=x": "fromSeq", "toSeq=1.5": "toSeq", "fromSeq=1&fromSeq=2": "fromSeq", "fromSeq=5&toSeq=4": "toSeq",
		"chain=acme": "chain", "toSeq=99999999999999999999": "toSeq",
	} {
		a := s.do("GET", "/audit/verify?"+query, nil).refused(t, 400, "validation_error")
		if a.json["details"].(map[string]any)["field"] != field {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	s.restart() // its end signs what there is
	a := s.do("GET", "/audit/verify?fromSeq=4&toSeq=6", nil).want(t, 200)
	if a.json["chainValid"] != true || a.json["fromSeq"] != 4.0 || a.json["toSeq"] != 6.0 {
		t.Errorf("%s", a.body)
	}
	facts := s.do("GET", "/.well-known/openwop", nil).json["auditLogIntegrity"].(map[string]any)
	if facts["checkpointIntervalEntries"] != 3.0 || facts["checkpointIntervalSeconds"] != 1.0 {
		t.Errorf("%v", facts)
	}
	keys := audit.Keys{}
	if err := keys.Add(facts["checkpointPublicKey"].(string)); err != nil {
		t.Fatal(err)
	}
	prev := 0.0
	for _, p := range s.do("GET", "/audit/verify", nil).want(t, 200).json["checkpoints"].([]any) {
		c := p.(map[string]any)
		at := c["atSequence"].(float64)
		if at-prev > 3 || at <= prev {
			t.Errorf("a checkpoint at %v after %v", at, prev)
		}
		prev = at
		for id := range keys {
			if !keys.Signed(audit.Checkpoint{KeyID: id, Root: c["merkleRoot"].(string), Signature: c["signature"].(string)}) {
				t.Errorf("the checkpoint at %v does not verify under the key of discovery", at)
			}
		}
	}
	if prev < 9 {
		t.Errorf("the last checkpoint is at %v", prev)
	}
}

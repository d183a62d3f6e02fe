package fermata_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/redact"
)

// answer1 answers by way of v1.
func (s *server) answer1(id, node string, value any, header ...string) answer {
	s.t.Helper()
	return s.do("POST", "/v1/runs/"+id+"/interrupts/"+node, map[string]any{"resumeValue": value}, header...)
}

// use1 answers by token, and by nothing else.
func (s *server) use1(token string, value any) answer {
	s.t.Helper()
	return s.do("POST", "/v1/interrupts/"+token, map[string]any{"resumeValue": value}, "Authorization", "")
}

func (s *server) look1(token string) answer {
	s.t.Helper()
	return s.do("GET", "/v1/interrupts/"+token, nil, "Authorization", "")
}

// offered is what a run's snapshot says of what it waits for.
func (s *server) offered(id string, header ...string) map[string]any {
	s.t.Helper()
	i, _ := s.do("GET", "/v1/runs/"+id, nil, header...).want(s.t, 200).json["interrupt"].(map[string]any)
	return i
}

// offeredToken is the token in a run's snapshot.
func (s *server) offeredToken(id string, header ...string) string {
	s.t.Helper()
	token, _ := s.offered(id, header...)["interruptToken"].(string)
	if strings.Count(token, ".") != 1 || strings.HasPrefix(token, "ow2") {
		s.t.Fatalf("token %q", token)
	}
	return token
}

// waiting1 starts a run of a workflow and waits until it asks.
func (s *server) waiting1(workflow, status string) string {
	s.t.Helper()
	id := s.run1(workflow)
	s.await1(id, status)
	return id
}

// asks is a workflow of one node that asks.
func asks(id, typeID string, config map[string]any) map[string]any {
	return flow(id, []any{step("ok", typeID, config)}, []any{})
}

func paidEvent(id string) map[string]any {
	return asks(id, "core.interrupt", map[string]any{
		"kind": "external-event", "data": map[string]any{"eventType": "paid", "correlation": map[string]any{"orderId": "o-1", "status": "done"}},
	})
}

func TestV1InterruptByRun(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("gate"))
	id := s.waiting1("gate", "waiting-approval")
	if snap := s.snapshot1(id); snap["currentNodeId"] != "ok" {
		t.Errorf("currentNodeId %v", snap["currentNodeId"])
	}
	s.do("POST", "/v1/runs/"+id+"/interrupts/ok", map[string]any{}).refused(t, 400, "validation_error")
	s.do("POST", "/v1/runs/"+id+"/interrupts/ok", map[string]any{"resumeValue": yes, "more": 1}).refused(t, 400, "validation_error")
	s.answer1(id, "ok", "yes").refused(t, 400, "validation_error")
	s.answer1(id, "ok", map[string]any{"action": "refine"}).refused(t, 400, "validation_error")
	s.answer1(id, "ok", map[string]any{"action": "edit-accept"}).refused(t, 400, "validation_error")
	s.answer1(id, "after", yes).refused(t, 404, "interrupt_not_found")
	s.answer1(id, "nowhere", yes).refused(t, 404, "interrupt_not_found")
	s.answer1(id, "a%20b", yes).refused(t, 404, "interrupt_not_found")
	s.answer1("nobody", "ok", yes).refused(t, 404, "not_found")
	s.answer1(id, "ok", yes, "Authorization", "").refused(t, 401, "unauthenticated")
	s.answer1(id, "ok", yes, "Authorization", s.key("reader-reader-reader-reader-reader", "default", "runs:read")).refused(t, 403, "forbidden")
	s.answer1(id, "ok", yes, "Authorization", s.key("stranger-stranger-stranger-stranger", "other", "*")).refused(t, 404, "not_found")

	a := s.answer1(id, "ok", yes).want(t, 200)
	if a.str("runId") != id || a.str("nodeId") != "ok" || a.str("status") == "" {
		t.Errorf("%s", a.body)
	}
	if s.await1(id, "completed")["interrupt"] != nil {
		t.Error("a run that has ended waits for an answer")
	}
	s.answer1(id, "ok", yes).refused(t, 409, "interrupt_already_resolved")
	if got, want := s.types("default/"+id), []string{
		"interrupt.requested", "approval.requested", "node.suspended", "approval.received", "interrupt.resolved", "node.resumed", "node.completed",
	}; !inOrder(got, want) {
		t.Errorf("%v: want %v in this order", got, want)
	}
}

// inOrder reports whether want stands in got, one right behind the other.
func inOrder(got, want []string) bool {
	for i := range got {
		if len(got)-i >= len(want) && slices.Equal(got[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

// What cancellation took along is cancelled on the route of the run and gone for a
// token; what had been answered before has been answered.
func TestV1InterruptOfACancelledRun(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(flow("two", []any{step("ok", "core.approvalGate", nil), step("then", "core.approvalGate", nil)}, []any{edge("ok", "then")}))
	s.register(flow("parent", []any{step("child", "core.subWorkflow", map[string]any{"workflowId": "two"})}, []any{}))
	id := s.waiting1("two", "waiting-approval")
	answered := s.offeredToken(id)
	s.answer1(id, "ok", yes).want(t, 200)
	s.await1(id, "waiting-approval")
	open := s.offeredToken(id)
	older := s.token("default/"+id, "then")
	s.do("POST", "/runs/default~2F"+id+"/cancel", nil).want(t, 200)
	s.await1(id, "cancelled")

	s.answer1(id, "then", yes).refused(t, 422, "interrupt_cancelled")
	s.answer1(id, "ok", yes).refused(t, 409, "interrupt_already_resolved")
	for _, token := range []string{open, older} {
		s.look1(token).refused(t, 410, "interrupt_gone")
		s.use1(token, yes).refused(t, 410, "interrupt_gone")
		s.look(token).refused(t, 409, "interrupt_already_resolved") // this major has one word for both
	}
	s.use1(answered, yes).refused(t, 409, "interrupt_already_resolved")

	parent := s.waiting1("parent", "waiting-approval")
	child := s.snapshot1(parent)["childRuns"].([]any)[0].(map[string]any)["runId"].(string)
	token := s.offeredToken(child)
	s.do("POST", "/runs/default~2F"+parent+"/cancel", nil).want(t, 200)
	s.await1(child, "cancelled")
	s.answer1(child, "ok", yes).refused(t, 422, "interrupt_cancelled")
	s.use1(token, yes).refused(t, 410, "interrupt_gone")
}

// A token of either major is good on either wire, and does what its reader may do.
func TestV1InterruptTokens(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("gate"))
	run := func() string { return s.waiting1("gate", "waiting-approval") }

	id := run()
	token := s.offeredToken(id)
	if again := s.offeredToken(id); again != token {
		t.Error("two tokens within one period") // a snapshot would be another one each time
	}
	if i := s.offered(id); i["kind"] != "approval" || i["nodeId"] != "ok" || i["callbackUrl"] != "/v1/interrupts/"+token ||
		i["data"].(map[string]any)["artifactId"] != "ok" || i["data"].(map[string]any)["artifactType"] != "approval" {
		t.Errorf("%v", i)
	}
	seen := s.look1(token).want(t, 200)
	if seen.json["resolved"] != false || seen.str("expiresAt") == "" || seen.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%v %s", seen.header, seen.body)
	}
	delete(seen.json, "resolved")
	delete(seen.json, "expiresAt")
	payload, _ := json.Marshal(seen.json)
	validV1(t, "suspend-request", payload)
	s.use1(token, map[string]any{"action": "dance"}).refused(t, 400, "validation_error")
	if a := s.use1(token, yes).want(t, 200); a.str("runId") != id || a.str("nodeId") != "ok" || a.str("status") == "" {
		t.Errorf("%s", a.body)
	}
	s.await1(id, "completed")
	s.use1(token, yes).refused(t, 409, "interrupt_already_resolved")
	s.look1(token).refused(t, 409, "interrupt_already_resolved")
	if p := s.receivedOf(id); p["resolvedBy"].(map[string]any)["lane"] != "api-key" || p["x-fermata"].(map[string]any)["via"] != "token" {
		t.Errorf("%v", p)
	}

	id = run() // v1's token on the wire of this major
	s.use(s.offeredToken(id), yes).want(t, 200)
	s.await1(id, "completed")
	id = run() // and the other way round
	newer := s.token("default/"+id, "ok")
	s.look1(newer).want(t, 200)
	s.use1(newer, yes).want(t, 200)
	s.await1(id, "completed")

	id = run()
	reader := s.key("reader-reader-reader-reader-reader", "default", "runs:read")
	looks := s.offeredToken(id, "Authorization", reader)
	s.look1(looks).want(t, 200)
	s.use1(looks, yes).refused(t, 403, "forbidden")
	for name, bad := range map[string]string{
		"of nobody": "b3BlbndvcC1jb25mb3JtYW5jZQ.0123456789abcdef", "cut": looks[:len(looks)-1], "longer": looks + "A", "words": "nothing",
		"another mac": strings.Split(looks, ".")[0] + "." + strings.Split(token, ".")[1],
	} {
		for _, a := range []answer{s.look1(bad), s.use1(bad, yes)} {
			if a.status != 401 || a.json["error"] != "unauthenticated" {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
	}
	if s.snapshot1(id)["status"] != "waiting-approval" {
		t.Error("somebody has answered")
	}
}

// receivedOf is the payload of a run's last approval.received.
func (s *server) receivedOf(id string) map[string]any {
	s.t.Helper()
	var last map[string]any
	for _, e := range s.events("default/" + id) {
		if e["type"] == "approval.received" {
			last = e["payload"].(map[string]any)
		}
	}
	if last == nil {
		s.t.Fatal("no approval.received")
	}
	return last
}

// Who may not answer a gate gets a token that looks; a gate that wants to see a
// credential gives nobody another one, and is opened by none.
func TestV1InterruptTokenOfARestrictedGate(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(asks("listed", "core.approvalGate", map[string]any{"approversList": []string{"somebody-else"}}))
	s.register(asks("attended", "core.approvalGate", map[string]any{"profile": "openwop-interrupt-auth-required"}))
	for _, workflow := range []string{"listed", "attended"} {
		id := s.waiting1(workflow, "waiting-approval")
		token := s.offeredToken(id)
		s.look1(token).want(t, 200)
		s.use1(token, yes).refused(t, 403, "forbidden")
	}
	id := s.waiting1("attended", "waiting-approval")
	s.issue("default/"+id, "ok", nil).refused(t, 403, "forbidden")
	s.issue("default/"+id, "ok", map[string]any{"intent": "inspect"}).want(t, 201)
	s.answer1(id, "ok", yes).want(t, 200)
	s.await1(id, "completed")
}

// No token of v1 gets into a log, whatever becomes of its request.
// Who holds a token is shown no more than who holds a key: a secret that the host has come
// to know after the question was asked is taken out of the question, and out of refusals.
func TestTokensShowNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "till-of-the-shop-8d1f-open-sesame"
	s := start(t, withV1)
	s.register(asks("ask", "core.approvalGate", map[string]any{"title": "May " + secret + " pass?"}))
	id := s.waiting1("ask", "waiting-approval")
	older := s.offeredToken(id)
	newer := s.do("POST", "/host/fermata/runs/"+id+"/interrupts/ok/tokens", map[string]any{"intent": "resolve"}).want(t, 201).str("token")
	for _, path := range []string{"/v1/interrupts/" + older, "/interrupts/" + newer, "/interrupts/" + older, "/v1/interrupts/" + newer} {
		if a := s.do("GET", path, nil, "Authorization", "").want(t, 200); !strings.Contains(string(a.body), secret) {
			t.Fatalf("the question: %s", a.body)
		}
	}
	s.credential(map[string]any{"secret": secret})
	for _, path := range []string{"/v1/interrupts/" + older, "/interrupts/" + newer, "/interrupts/" + older, "/v1/interrupts/" + newer} {
		a := s.do("GET", path, nil, "Authorization", "").want(t, 200)
		if strings.Contains(string(a.body), secret) || !strings.Contains(string(a.body), "pass?") {
			t.Errorf("GET %.20s: %s", path, a.body)
		}
		for _, header := range [][]string{{"Authorization", ""}, {"Authorization", "", "Idempotency-Key", "0123456789012345678901"}} {
			a = s.do("POST", path, map[string]any{"resumeValue": map[string]any{"action": secret}}, header...)
			if a.status != 400 || strings.Contains(string(a.body), secret) {
				t.Errorf("POST %.20s: %d %s", path, a.status, a.body)
			}
		}
		a = s.do("POST", path, map[string]any{"resumeValue": map[string]any{"action": "accept"}, secret: 1}, "Authorization", "")
		if a.status != 400 || strings.Contains(string(a.body), secret) {
			t.Errorf("POST %.20s with more: %d %s", path, a.status, a.body)
		}
	}
}

func TestV1TokenIsNotLogged(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log strings.Builder
	s := start(t, withV1, func(c *fermata.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(writer(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(b)
		}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	s.register(gate("gate"))
	token := s.offeredToken(s.waiting1("gate", "waiting-approval"))
	if hidden := redact.Own("a token " + token + " in words"); strings.Contains(hidden, token[:20]) || strings.Contains(hidden, token[len(token)-20:]) {
		t.Errorf("%s", hidden)
	}
	for _, path := range []string{"/v1/interrupts/" + token + "/more", "/v1/runs/" + token, "/interrupts/" + token + "/more"} {
		s.do("GET", path, nil)
	}
	s.do("DELETE", "/v1/interrupts/"+token, nil).want(t, 405)
	s.use1(token[:len(token)-1], yes).want(t, 401)
	s.use1(token, yes).want(t, 200)
	s.use1(token, yes).refused(t, 409, "interrupt_already_resolved")
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(log.String(), token[:40]) {
		t.Errorf("%s", log.String())
	}
}

// What is said of interrupts in discovery stands beside what the host says of itself.
func TestV1InterruptsAreAdvertised(t *testing.T) {
	t.Parallel()
	s := start(t, both(withV1, withWebhooks))
	doc := s.do("GET", "/.well-known/openwop", nil).want(t, 200).json
	newer := s.do("GET", "/.well-known/openwop", nil, "OpenWOP-Version", "2").want(t, 200).json
	ext := doc["extensions"].(map[string]any)
	i, _ := ext["interrupts"].(map[string]any)
	if profiles, _ := i["profiles"].([]any); len(profiles) != 4 || i["signedCallbackTokens"] != true || newer["extensions"].(map[string]any)["interrupts"] != nil {
		t.Errorf("%v", ext)
	}
	for name := range newer["extensions"].(map[string]any) {
		if ext[name] == nil {
			t.Errorf("%s is missing from v1's document", name)
		}
	}
	if r := doc["interrupt"].(map[string]any)["approverRouting"].(map[string]any); r["supported"] != true || r["audience"] != true || fmt.Sprint(r["refKinds"]) != "[group role]" {
		t.Errorf("%v", r)
	}
	if !slices.Contains(doc["supportedEnvelopes"].([]any), any("clarification.request")) {
		t.Errorf("%v", doc["supportedEnvelopes"])
	}
	if w := doc["webhooks"].(map[string]any); w["supported"] != true || fmt.Sprint(w["signatureAlgorithms"]) != "[v1]" {
		t.Errorf("%v", w)
	}
}

// A validator of a snapshot with a token is good for as long as the token is offered.
func TestV1InterruptSnapshotValidator(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("gate"))
	id := s.waiting1("gate", "waiting-approval")
	for range 3 { // a period may end in between, once
		first := s.do("GET", "/v1/runs/"+id, nil).want(t, 200)
		a := s.do("GET", "/v1/runs/"+id, nil, "If-None-Match", first.header.Get("ETag"))
		if a.status == 304 {
			return
		}
		if a.header.Get("ETag") == first.header.Get("ETag") {
			t.Fatalf("200 for its own validator %s", first.header.Get("ETag"))
		}
	}
	t.Error("no validator holds")
}

// What a snapshot offers is a form of its reader's own right, and ends with the credential
// that he read it with. Another reader's validator is not good for his snapshot, nor is his
// own from before he had another credential.
func TestV1OfferedTokenEndsWithItsCredential(t *testing.T) {
	t.Parallel()
	var ends atomic.Int64 // in milliseconds
	soon := time.Now().Add(10 * time.Minute).UnixMilli()
	ends.Store(soon)
	lane := sessions(time.Time{})
	of := lane.Authenticate
	lane.Authenticate = func(r *http.Request) (fermata.Identity, error) {
		id, err := of(r)
		id.Expires = time.UnixMilli(ends.Load())
		if id.SubjectID != "looker" {
			id.Scopes = append(id.Scopes, "approvals:respond")
		}
		return id, err
	}
	s := start(t, withV1, func(c *fermata.Config) { c.Lanes.Own = []fermata.Lane{lane} })
	s.register(gate("gate"))
	id := s.waiting1("gate", "waiting-approval")
	as := func(who, tag string) answer {
		return s.do("GET", "/v1/runs/"+id, nil, "Authorization", "", "Cookie", "sid="+who, "If-None-Match", tag)
	}
	ann := as("ann", "").want(t, 200)
	for _, who := range []string{"ann", "looker"} {
		token := as(who, "").want(t, 200).json["interrupt"].(map[string]any)["interruptToken"].(string)
		end, err := time.Parse(time.RFC3339, s.look1(token).want(t, 200).str("expiresAt"))
		if err != nil || end.UnixMilli() != soon {
			t.Errorf("%s's token ends at %v, the credential at %v", who, end, time.UnixMilli(soon))
		}
	}
	tag := ann.header.Get("ETag")
	as("ann", tag).want(t, 304)
	as("bob", tag).want(t, 200)
	as("looker", tag).want(t, 200)
	ends.Store(soon + 1000)
	if a := as("ann", tag).want(t, 200); a.json["interrupt"].(map[string]any)["interruptToken"] == ann.json["interrupt"].(map[string]any)["interruptToken"] {
		t.Error("a new credential has the old one's token")
	}
}

func TestV1ExternalEvent(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(paidEvent("paid"))
	id := s.waiting1("paid", "waiting-external")
	token := s.offeredToken(id)
	for _, wrong := range []any{
		map[string]any{"orderId": "another", "status": "done"}, map[string]any{"orderId": "o-1"},
	} {
		if a := s.use1(token, wrong).refused(t, 422, "validation_error"); a.json["details"].(map[string]any)["reason"] != "correlation-mismatch" {
			t.Errorf("%s", a.body)
		}
		s.answer1(id, "ok", wrong).refused(t, 422, "validation_error")
		s.answer("default/"+id, "ok", wrong).refused(t, 400, "validation_error") // as this major has it
	}
	s.use1(token, "paid").refused(t, 400, "validation_error")
	if st := s.snapshot1(id)["status"]; st != "waiting-external" {
		t.Errorf("status %v", st)
	}
	s.use1(token, map[string]any{"orderId": "o-1", "status": "done", "decision": "approved", "action": "edit"}).want(t, 200)
	vars := s.await1(id, "completed")
	if got := s.events("default/" + id); got[len(got)-1]["type"] != "run.completed" || vars["interrupt"] != nil {
		t.Errorf("%v", got)
	}
	// What looks like an approval in other words stays what its sender has written.
	if ev := s.outputOf(id)["event"].(map[string]any); ev["action"] != "edit" || ev["decision"] != "approved" {
		t.Errorf("%v", ev)
	}
}

// outputOf are the outputs of a run that has completed.
func (s *server) outputOf(id string) map[string]any {
	s.t.Helper()
	all := s.events("default/" + id)
	return all[len(all)-1]["payload"].(map[string]any)["outputs"].(map[string]any)
}

// Clients of v1 send answers in several shapes and words.
func TestV1AnswersInEveryShape(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(asks("ask", "core.clarificationGate", map[string]any{"questions": []any{map[string]any{"id": "q1", "question": "Which?"}}}))
	for _, value := range []any{
		map[string]any{"answers": map[string]any{"q1": "blue"}}, map[string]any{"answers": []any{map[string]any{"id": "q1", "answer": "blue"}}},
		[]any{map[string]any{"id": "q1", "answer": "blue"}},
	} {
		id := s.waiting1("ask", "waiting-input")
		s.answer1(id, "ok", map[string]any{"answers": map[string]any{}}).refused(t, 400, "validation_error")
		s.answer1(id, "ok", value).want(t, 200)
		s.await1(id, "completed")
		if got := s.outputOf(id)["answers"].(map[string]any); got["q1"] != "blue" {
			t.Errorf("%v: %v", value, got)
		}
		if got := s.types("default/" + id); !inOrder(got, []string{"interrupt.requested", "clarification.requested", "node.suspended", "clarification.resolved", "interrupt.resolved"}) {
			t.Errorf("%v", got)
		}
	}

	s.register(asks("all", "core.approvalGate", map[string]any{"actions": []string{"accept", "reject", "refine", "edit-accept", "ask"}}))
	for _, c := range []struct {
		value  map[string]any
		action string
		status string
	}{
		{map[string]any{"action": "edit", "editedArtifactData": 1}, "edit-accept", "completed"},
		{map[string]any{"action": "edit-accept", "editedArtifactData": 1}, "edit-accept", "completed"},
		{map[string]any{"action": "refine", "refineFeedback": map[string]any{"scope": "whole", "text": "more"}}, "refine", "completed"},
		{map[string]any{"decision": "approved"}, "accept", "completed"},
		{map[string]any{"decision": "rejected"}, "reject", "failed"},
		{map[string]any{"decision": "rejected", "feedback": "more"}, "refine", "completed"},
		{map[string]any{"action": "reject", "decidedBy": "me"}, "reject", "failed"},
	} {
		for _, byToken := range []bool{false, true} {
			id := s.waiting1("all", "waiting-approval")
			token := s.offeredToken(id)
			for _, bad := range []map[string]any{{"action": "edit"}, {"action": "refine"}, {"decision": "dunno"}} {
				s.answer1(id, "ok", bad).refused(t, 400, "validation_error")
				s.use1(token, bad).refused(t, 400, "validation_error")
			}
			s.answer1(id, "ok", map[string]any{"action": "ask", "question": "why?"}).want(t, 200)
			if st := s.snapshot1(id)["status"]; st != "waiting-approval" {
				t.Fatalf("after a question: %v", st)
			}
			if byToken {
				s.use1(token, c.value).want(t, 200)
			} else {
				s.answer1(id, "ok", c.value).want(t, 200)
			}
			s.await1(id, c.status)
			if p := s.receivedOf(id); p["action"] != c.action {
				t.Errorf("%v: received %v", c.value, p)
			}
		}
	}
}

func TestV1ApprovalsRoute(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("gate"))
	for _, body := range []any{yes, map[string]any{"resumeValue": yes}, map[string]any{"decision": "approved"}} {
		id := s.waiting1("gate", "waiting-approval")
		path := "/v1/runs/" + id + "/approvals/ok"
		s.do("POST", path, map[string]any{"action": "dance"}).refused(t, 400, "validation_error")
		s.do("POST", path, body, "Authorization", "").refused(t, 401, "unauthenticated")
		s.do("POST", path, body).want(t, 200)
		s.await1(id, "completed")
		s.do("POST", path, body).refused(t, 409, "interrupt_already_resolved")
	}
	// Whoever comes behind a cancel meets a conflict here, and on the younger route the
	// word that v1 has for it.
	id := s.waiting1("gate", "waiting-approval")
	s.do("POST", "/v1/runs/"+id+"/cancel", nil).want(t, 200)
	s.await1(id, "cancelled")
	s.do("POST", "/v1/runs/"+id+"/approvals/ok", yes).refused(t, 409, "interrupt_already_resolved")
	s.do("POST", "/v1/runs/"+id+"/interrupts/ok", map[string]any{"resumeValue": yes}).refused(t, 422, "interrupt_cancelled")
}

// One credential brings the votes of several people if it may vouch for them; any other
// has one vote, whatever it calls itself.
func TestV1QuorumByVoter(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(asks("quorum", "core.approvalGate", map[string]any{"requiredApprovals": 3, "rejectionPolicy": "majority", "approversList": []string{}}))
	vote := func(id, action, voter string, header ...string) {
		t.Helper()
		s.answer1(id, "ok", map[string]any{"action": action, "voter": voter}, header...).want(t, 200)
	}
	still := func(id string) {
		t.Helper()
		if st := s.snapshot1(id)["status"]; st != "waiting-approval" {
			t.Fatalf("status %v", st)
		}
	}
	id := s.waiting1("quorum", "waiting-approval")
	vote(id, "accept", "one")
	vote(id, "accept", "one")
	vote(id, "reject", "two")
	vote(id, "accept", "two")
	still(id)
	vote(id, "accept", "three")
	s.await1(id, "completed")

	id = s.waiting1("quorum", "waiting-approval")
	vote(id, "reject", "one")
	still(id)
	vote(id, "reject", "two")
	s.await1(id, "failed")

	owner := s.key("owner-owner-owner-owner-owner-owner", "default", "*")
	id = s.waiting1("quorum", "waiting-approval")
	for i := range 5 {
		vote(id, "accept", fmt.Sprint(i), "Authorization", owner)
	}
	still(id)
	token := s.offeredToken(id)
	for i := range 5 { // a token speaks for its reader, who has one vote by it
		s.use1(token, map[string]any{"action": "accept", "voter": fmt.Sprint(i)}).want(t, 200)
	}
	still(id)
	s.answer1(id, "ok", map[string]any{"action": "accept", "voter": strings.Repeat("x", 300)}).refused(t, 400, "validation_error")

	s.register(asks("listed", "core.approvalGate", map[string]any{"approversList": []string{"somebody-else"}}))
	id = s.waiting1("listed", "waiting-approval")
	s.answer1(id, "ok", map[string]any{"action": "accept", "voter": "somebody-else"}).refused(t, 403, "forbidden")

	var voters []string
	for _, e := range s.audited("tenant") {
		if e.Action == "interrupt.answer" {
			voters = append(voters, e.Detail["voter"])
		}
	}
	if want := []string{"one", "one", "two", "two", "three", "one", "two", "", "", "", "", "", "", "", "", "", ""}; !slices.Equal(voters, want) {
		t.Errorf("the audit log names as voters %q, want %q", voters, want)
	}
}

// Layer 1 of idempotency, as v1 has it.
func TestV1InterruptIdempotency(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	s.register(gate("gate"))
	id, other := s.waiting1("gate", "waiting-approval"), s.waiting1("gate", "waiting-approval")

	// A refused body may be put right under the same key; v1's keys are short.
	s.answer1(id, "ok", map[string]any{"action": "dance"}, keyHeader, "k").refused(t, 400, "validation_error")
	s.answer1(id, "ok", yes, keyHeader, "k", "Authorization", s.key("reader-reader-reader-reader-reader", "default", "runs:read")).refused(t, 403, "forbidden")
	first := s.answer1(id, "ok", yes, keyHeader, "k").fresh(t, 200)
	s.answer1(id, "ok", yes, keyHeader, "k").replays(t, first)
	// Another answer is another request. What stands in the path is part of the operation:
	// the same answer to another run is no repetition, and gets nothing of the first.
	if a := s.answer1(id, "ok", map[string]any{"action": "reject"}, keyHeader, "k").refused(t, 409, "idempotency_key_mismatch"); strings.Contains(string(a.body), id) {
		t.Errorf("%s", a.body)
	}
	if a := s.answer1(other, "ok", yes, keyHeader, "k").fresh(t, 200); a.str("runId") != other {
		t.Errorf("%s", a.body)
	}
	// A final refusal is final, in v1's words.
	s.await1(id, "completed")
	gone := s.answer1(id, "ok", yes, keyHeader, "k2").refused(t, 409, "interrupt_already_resolved")
	s.answer1(id, "ok", yes, keyHeader, "k2").replays(t, gone)
	cancelled := s.waiting1("gate", "waiting-approval")
	s.do("POST", "/runs/default~2F"+cancelled+"/cancel", nil).want(t, 200)
	s.await1(cancelled, "cancelled")
	late := s.answer1(cancelled, "ok", yes, keyHeader, "k3").refused(t, 422, "interrupt_cancelled")
	s.answer1(cancelled, "ok", yes, keyHeader, "k3").replays(t, late)

	// The two majors are two operations: a key of one is free in the other.
	third := s.waiting1("gate", "waiting-approval")
	key := idem(1)
	s.answer1(third, "ok", map[string]any{"action": "edit", "editedArtifactData": 1}, keyHeader, key).fresh(t, 200)
	s.await1(third, "completed")
	s.do("POST", "/runs/default~2F"+third+"/interrupts/ok", map[string]any{"resumeValue": yes}, keyHeader, key).
		refused(t, 409, "interrupt_already_resolved").fresh(t, 409)

	fourth := s.waiting1("gate", "waiting-approval")
	token := s.offeredToken(fourth)
	post := func() answer {
		return s.do("POST", "/v1/interrupts/"+token, map[string]any{"resumeValue": yes}, "Authorization", "", keyHeader, "k")
	}
	once := post().fresh(t, 200)
	post().replays(t, once)

	s.answer1(id, "ok", yes, keyHeader, strings.Repeat("k", 256)).refused(t, 400, "validation_error")
}

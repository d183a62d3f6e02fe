package fermata_test

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata"
)

// issue gets a token for what a node waits for.
func (s *server) issue(id, node string, body any, header ...string) answer {
	s.t.Helper()
	return s.do("POST", "/host/fermata/runs/"+seg(id)+"/interrupts/"+node+"/tokens", body, header...)
}

func (s *server) token(id, node string) string {
	s.t.Helper()
	return s.issue(id, node, nil).want(s.t, 201).str("token")
}

// use answers by token, and by nothing else.
func (s *server) use(token string, value any) answer {
	s.t.Helper()
	return s.do("POST", "/interrupts/"+token, map[string]any{"resumeValue": value}, "Authorization", "")
}

func (s *server) look(token string) answer {
	s.t.Helper()
	return s.do("GET", "/interrupts/"+token, nil, "Authorization", "")
}

var yes = map[string]any{"action": "accept"}

// waiting starts a gate and waits until it asks.
func (s *server) waiting() string {
	s.t.Helper()
	id := s.run("gate")
	s.await(id, "waiting-approval")
	return id
}

func TestWireTokenAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.waiting()
	a := s.issue(id, "ok", nil).want(t, 201)
	if a.header.Get("Cache-Control") != "no-store" || a.str("intent") != "resolve" || a.str("runId") != id || a.str("expiresAt") == "" {
		t.Errorf("%s", a.body)
	}
	token := a.str("token")
	got := s.look(token).want(t, 200) // the harness holds it against the payload's schema
	if got.header.Get("Referrer-Policy") != "no-referrer" || got.str("kind") != "approval" {
		t.Errorf("%v %s", got.header, got.body)
	}
	s.use(token, map[string]any{"action": "dance"}).refused(t, 400, "validation_error")
	s.do("POST", "/interrupts/"+token, "{", "Authorization", "").refused(t, 400, "validation_error")
	s.do("POST", "/interrupts/"+token, `{"resumeValue":{"action":"accept"},"more":1}`, "Authorization", "").refused(t, 400, "validation_error")
	s.do("POST", "/interrupts/"+token, `{}`, "Authorization", "").refused(t, 400, "validation_error")
	if b := s.use(token, yes).want(t, 200); b.str("runId") != id || b.str("nodeId") != "ok" {
		t.Errorf("%s", b.body)
	}
	s.await(id, "completed")
	for _, e := range s.docs(id) {
		if strings.Contains(string(e), "ow2.") {
			t.Errorf("an event shows a token: %s", e)
		}
		if ev := validEvent(t, e); ev.Type == "interrupt.resolved" && !strings.Contains(string(e), `"via":"token"`) {
			t.Errorf("the log does not say how the answer came: %s", e)
		}
	}
	if inbox := s.do("GET", "/host/fermata/interrupts", nil); strings.Contains(string(inbox.body), "ow2.") {
		t.Error("the inbox shows a token")
	}
}

// The statuses of the token surface (spec v2 interrupt.md §Errors, §Tokens).
func TestWireTokenStatuses(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id, other := s.waiting(), s.waiting()
	good := s.token(id, "ok")
	part := strings.Split(good, ".")
	with := func(i int, v string) string {
		p := append([]string(nil), part...)
		p[i] = v
		return strings.Join(p, ".")
	}
	theirs := strings.Split(s.token(other, "ok"), ".")
	body, _ := base64.RawURLEncoding.DecodeString(part[3])
	altered := func(old, new string) string {
		b := strings.Replace(string(body), old, new, 1)
		if b == string(body) {
			t.Fatalf("%s holds no %s", body, old)
		}
		return with(3, base64.RawURLEncoding.EncodeToString([]byte(b)))
	}
	for name, bad := range map[string]string{
		"v1 form": "b3BlbndvcC1jb25mb3JtYW5jZQ.0123456789abcdef", "unknown kid": with(2, "nokid"), "other alg": with(1, "none"),
		"other scheme": with(0, "ow1"), "truncated": good[:len(good)-1], "longer": good + "A", "no mac": strings.Join(part[:4], "."),
		"mac of another": with(4, theirs[4]), "payload of another": with(3, theirs[3]), "line break": good + "%0A",
		"other run": altered(id, other), "other node": altered(`"ok"`, `"no"`), "other intent": altered("resolve", "inspect"),
		"other end": altered(`"expiresAt":"2`, `"expiresAt":"3`), "huge": "ow2.hs256.k." + strings.Repeat("a", 20_000) + ".b", "dots": "....",
	} {
		for _, a := range []answer{s.look(bad), s.use(bad, yes)} {
			if a.status != 401 || a.json["error"] != "interrupt_token_invalid" {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
	}

	inspect := s.issue(id, "ok", map[string]any{"intent": "inspect"}).want(t, 201).str("token")
	s.look(inspect).want(t, 200)
	s.use(inspect, yes).refused(t, 403, "forbidden")

	second := s.token(id, "ok")
	s.use(good, yes).want(t, 200)
	s.await(id, "completed")
	for _, late := range []string{good, second, inspect} {
		s.look(late).refused(t, 409, "interrupt_already_resolved")
	}
	s.use(good, yes).refused(t, 409, "interrupt_already_resolved")
	s.use(second, yes).refused(t, 409, "interrupt_already_resolved")

	cancelled := s.token(other, "ok")
	s.do("POST", "/runs/"+seg(other)+"/cancel", nil).want(t, 200)
	s.look(cancelled).refused(t, 409, "interrupt_already_resolved")
	s.use(cancelled, yes).refused(t, 409, "interrupt_already_resolved")

	by := s.waiting()
	left := s.token(by, "ok")
	s.answer(by, "ok", yes).want(t, 200)
	s.use(left, yes).refused(t, 409, "interrupt_already_resolved")
}

// Who gets a token, for what, and for how long.
func TestWireTokenIssue(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(flow("short", []any{step("ok", "core.approvalGate", map[string]any{"title": "?", "timeoutMs": 600_000})}, []any{}))
	s.register(flow("listed", []any{step("ok", "core.approvalGate", map[string]any{"title": "?", "approversList": []string{"test-ann-key--default"}})}, []any{}))
	id, done := s.waiting(), s.waiting()
	s.answer(done, "ok", yes).want(t, 200)
	s.await(done, "completed")
	reader := s.key("reader-key-reader-key-reader-key-reader", "default", "runs:read")
	s.issue(id, "ok", nil, "Authorization", reader).refused(t, 403, "forbidden")
	s.issue(id, "before", nil).refused(t, 404, "not_found")
	s.issue(id, "nobody", nil).refused(t, 404, "not_found")
	s.issue("default/0123456789abcdef", "ok", nil).refused(t, 404, "not_found")
	s.issue(done, "ok", nil).refused(t, 409, "interrupt_already_resolved")
	for _, bad := range []string{`{"intent":"admin"}`, `{"intent":""}`, `{"expiresInSeconds":0}`, `{"expiresInSeconds":604801}`, `{"expiresInSeconds":1.5}`, `{"subject":"ann"}`} {
		s.issue(id, "ok", bad).refused(t, 400, "validation_error")
	}
	short := s.run("short")
	s.await(short, "waiting-approval")
	entry := s.do("GET", "/host/fermata/interrupts?limit=100", nil).json["interrupts"].([]any)
	end := ""
	for _, e := range entry {
		if e.(map[string]any)["runId"] == short {
			end = e.(map[string]any)["expiresAt"].(string)
		}
	}
	if got := s.issue(short, "ok", nil).want(t, 201).str("expiresAt"); got != end {
		t.Errorf("the token ends at %s, its interrupt at %s", got, end)
	}

	// A gate that lists its approvers gives nobody else a token to answer with,
	// and judges the one who has it again.
	listed := s.run("listed")
	s.await(listed, "waiting-approval")
	s.issue(listed, "ok", nil).refused(t, 403, "forbidden")
	s.answer(listed, "ok", yes).refused(t, 403, "forbidden")
	look := s.issue(listed, "ok", map[string]any{"intent": "inspect"}).want(t, 201).str("token")
	s.look(look).want(t, 200)
	s.use(look, yes).refused(t, 403, "forbidden")
	ann := s.key("ann-key-ann-key-ann-key-ann-key-ann-key", "default", "approvals:respond")
	mine := s.issue(listed, "ok", nil, "Authorization", ann).want(t, 201).str("token")
	s.use(mine, yes).want(t, 200)
	s.await(listed, "completed")
	for _, e := range s.docs(listed) {
		if strings.Contains(string(e), `"type":"interrupt.resolved"`) && !strings.Contains(string(e), `"eligibility":"listed"`) {
			t.Errorf("%s", e)
		}
	}
}

// Tokens outlive the process and the key that signed them stays good after a
// rotation.
func TestWireTokenSurvivesRestartAndRotation(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	one, two, three := s.waiting(), s.waiting(), s.waiting()
	first := s.token(one, "ok")
	s.restart()
	s.look(first).want(t, 200)
	second := s.token(two, "ok")
	if kid(first) != kid(second) {
		t.Error("a restart made another key")
	}
	fresh, err := s.host.RotateTokenKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	third := s.token(three, "ok")
	if kid(third) != fresh || kid(third) == kid(first) {
		t.Errorf("signed with %s after the rotation to %s", kid(third), fresh)
	}
	s.look(second).want(t, 200)
	s.restart()
	for i, id := range []string{one, two, three} {
		s.use([]string{first, second, third}[i], yes).want(t, 200)
		s.await(id, "completed")
	}
	// Another host does not hold the key.
	other := start(t)
	other.look(third).refused(t, 401, "interrupt_token_invalid")
}

func kid(token string) string {
	p := strings.Split(token, ".")
	return strings.Join(p[2:len(p)-2], ".")
}

// A token is for one visit: a loop that comes back asks anew.
func TestWireTokenOfAnotherVisit(t *testing.T) {
	t.Parallel()
	s := start(t)
	when := func(action string) map[string]any {
		return map[string]any{"condition": map[string]any{"type": "expression", "expression": "outputs.action == '" + action + "'"}}
	}
	s.register(flow("two", []any{
		step("draft", "core.noop", nil), step("end", "core.noop", nil),
		step("ok", "core.approvalGate", map[string]any{"title": "?", "actions": []string{"accept", "refine"}}),
	}, []any{edge("draft", "ok"), edge("ok", "end", when("accept")), edge("ok", "draft", when("refine"))},
		map[string]any{"settings": map[string]any{"maxLoopbackIterations": 3}}))
	id := s.run("two")
	s.await(id, "waiting-approval")
	old := s.token(id, "ok")
	s.use(old, map[string]any{"action": "refine", "refineFeedback": map[string]any{"scope": "whole"}}).want(t, 200)
	s.await(id, "waiting-approval")
	s.look(old).refused(t, 409, "interrupt_already_resolved")
	s.use(old, yes).refused(t, 409, "interrupt_already_resolved")
	s.use(s.token(id, "ok"), yes).want(t, 200)
	s.await(id, "completed")
}

// By token and by run at once: one wins, the other is told.
func TestWireTokenAgainstRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for round := range 20 {
		id := s.waiting()
		tokens := []string{s.token(id, "ok"), s.token(id, "ok")}
		got := make([]answer, 4)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				if i%2 == 0 {
					got[i] = s.as(t).use(tokens[i/2], yes)
				} else {
					got[i] = s.as(t).answer(id, "ok", yes)
				}
			})
		}
		wg.Wait()
		won := 0
		for _, a := range got {
			if a.status == 200 {
				won++
			} else {
				a.refused(t, 409, "interrupt_already_resolved")
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d answers won", round, won)
		}
		s.await(id, "completed")
	}
}

// No token gets into a log, whatever becomes of its request.
func TestWireTokenIsNotLogged(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log strings.Builder
	s := start(t, func(c *fermata.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(writer(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(b)
		}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	s.register(gate("gate"))
	token := s.token(s.waiting(), "ok")
	if a := s.do("DELETE", "/interrupts/"+token, nil); a.status != 405 || strings.Contains(string(a.body), token) {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, path := range []string{"/interrupts/" + token + "/more", "/v2/interrupts/" + token} {
		if a := s.do("GET", path, nil).refused(t, 404, "not_found"); strings.Contains(string(a.body), token) {
			t.Errorf("%s", a.body)
		}
	}
	s.use(token, yes).want(t, 200)
	s.use(token, yes).refused(t, 409, "interrupt_already_resolved")
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(log.String(), token) {
		t.Errorf("%s", log.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestWireTokenIsAdvertised(t *testing.T) {
	t.Parallel()
	s := start(t)
	i, _ := json.Marshal(s.do("GET", "/.well-known/openwop", nil).json["interrupt"])
	for _, want := range []string{`"tokenAlgs":["hs256"]`, `"refKinds":["principal","group","role"]`, `"callbackDelivery":true`} {
		if !strings.Contains(string(i), want) {
			t.Errorf("%s is not in %s", want, i)
		}
	}
}

// Many tokens of one principal are one vote (spec v2 interrupt.md §Approval).
func TestWireTokensAreOneVote(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(flow("two", []any{step("ok", "core.approvalGate", map[string]any{"title": "?", "requiredApprovals": 2})}, []any{}))
	id := s.run("two")
	s.await(id, "waiting-approval")
	ann := s.key("ann-key-ann-key-ann-key-ann-key-ann-key", "default", "approvals:respond")
	first := s.token(id, "ok")
	for _, token := range []string{first, first, s.token(id, "ok")} {
		if a := s.use(token, yes).want(t, 200); a.str("status") != "waiting-approval" {
			t.Fatalf("%s", a.body)
		}
	}
	s.answer(id, "ok", yes).want(t, 200)
	if st := s.snapshot(id)["status"]; st != "waiting-approval" {
		t.Fatalf("%v after one principal's votes", st)
	}
	s.use(s.issue(id, "ok", nil, "Authorization", ann).want(t, 201).str("token"), yes).want(t, 200)
	s.await(id, "completed")
	s.use(first, yes).refused(t, 409, "interrupt_already_resolved")
}

// A token for an external event needs no credential either, and the answer must
// fit what is waited for.
func TestWireTokenOfAnEvent(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(flow("pay", []any{step("paid", "core.interrupt", map[string]any{
		"kind": "external-event", "data": map[string]any{"eventType": "paid", "correlation": map[string]any{"order": "7"}},
		"resumeSchema": map[string]any{"type": "object", "required": []string{"amount"}},
	})}, []any{}))
	id := s.run("pay")
	s.await(id, "waiting-external")
	token := s.token(id, "paid")
	s.use(token, map[string]any{"order": "8", "amount": 1}).refused(t, 400, "validation_error")
	s.use(token, map[string]any{"order": "7"}).refused(t, 400, "validation_error")
	s.use(token, map[string]any{"order": "7", "amount": 1}).want(t, 200)
	s.await(id, "completed")
}

package fermata_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/schema"
)

// withWebhooks lets a host deliver to this machine, and give up soon.
func withWebhooks(c *fermata.Config) {
	c.Webhooks = fermata.Webhooks{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxAttempts: 3, Backoff: 10 * time.Millisecond, DisableAfter: 50 * time.Millisecond,
	}
}

// standardSecret is a secret in the form of Standard Webhooks.
func standardSecret(n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%030d", n)))
}

// hearer is an endpoint that verifies itself and takes what comes, unless it is
// told otherwise.
type hearer struct {
	http   *httptest.Server
	answer func(w http.ResponseWriter, body []byte) bool // true: it has answered

	mu  sync.Mutex
	got []heard
}

type heard struct {
	header http.Header
	body   []byte
	doc    map[string]any
}

func listen(t testing.TB, answer func(w http.ResponseWriter, body []byte) bool) *hearer {
	h := &hearer{answer: answer}
	h.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		x := heard{header: r.Header.Clone(), body: b}
		_ = json.Unmarshal(b, &x.doc)
		h.mu.Lock()
		h.got = append(h.got, x)
		answer := h.answer
		h.mu.Unlock()
		if answer != nil && answer(w, b) {
			return
		}
		if x.doc["challenge"] != nil {
			w.Write(b)
		}
	}))
	t.Cleanup(h.http.Close)
	return h
}

// accept takes what comes from now on.
func (h *hearer) accept() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = nil
}

func (h *hearer) all() []heard {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]heard(nil), h.got...)
}

// hears waits until n requests have come in.
func (h *hearer) hears(t testing.TB, n int) []heard {
	t.Helper()
	for deadline := time.Now().Add(hang); len(h.all()) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests, want %d", len(h.all()), n)
		}
	}
	return h.all()
}

// hook registers a webhook and returns its id. Nil means an ordinary one.
func (s *server) hook(body map[string]any) string {
	s.t.Helper()
	if body == nil {
		body = map[string]any{"url": "https://hooks.example.com/x", "events": []string{"run.completed"}}
	}
	return s.do("POST", "/webhooks", body).want(s.t, 201).str("webhookId")
}

// standardHook is a registration with Standard Webhooks that comes through.
func standardHook(t testing.TB) map[string]any {
	return map[string]any{
		"url": listen(t, nil).http.URL, "events": []string{"run.completed"}, "secret": standardSecret(1),
		"signatureAlgorithms": []string{"v1", "standard-webhooks-1"},
	}
}

func TestWireWebhookSurface(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	made := s.do("POST", "/webhooks", map[string]any{"url": "https://hooks.example.com/x?token=abc", "events": []string{"run.failed", "run.completed", "run.failed"}, "tags": []string{"x"}}).want(t, 201)
	id, secret := made.str("webhookId"), made.str("secret")
	if !strings.HasPrefix(secret, "whsec_") || made.json["signatureAlgorithms"] != nil || made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %s", made.header, made.body)
	}
	given := s.do("POST", "/webhooks", map[string]any{"url": "https://hooks.example.com/y", "events": []string{"run.failed"}, "secret": "a secret of mine", "signatureAlgorithms": []string{"v1"}}).want(t, 201)
	if given.json["secret"] != nil || fmt.Sprint(given.json["signatureAlgorithms"]) != "[v1]" {
		t.Errorf("%s", given.body)
	}
	std := s.do("POST", "/webhooks", standardHook(t)).want(t, 201)
	if fmt.Sprint(std.json["signatureAlgorithms"]) != "[v1 standard-webhooks-1]" || std.json["secret"] != nil {
		t.Errorf("%s", std.body)
	}

	one := s.do("GET", "/host/fermata/webhooks/"+seg(id), nil).want(t, 200)
	if fmt.Sprint(one.json["events"]) != "[run.completed run.failed]" || one.str("state") != "active" || fmt.Sprint(one.json["tags"]) != "[x]" {
		t.Errorf("%s", one.body)
	}
	list := s.do("GET", "/host/fermata/webhooks?limit=2", nil).want(t, 200)
	rest := s.do("GET", "/host/fermata/webhooks?limit=2&cursor="+list.str("nextCursor"), nil).want(t, 200)
	if len(list.json["webhooks"].([]any)) != 2 || len(rest.json["webhooks"].([]any)) != 1 || rest.json["nextCursor"] != nil {
		t.Errorf("%s\n%s", list.body, rest.body)
	}
	letters := s.do("GET", "/webhooks/"+seg(id)+"/dead-letters", nil).want(t, 200)
	for _, a := range []answer{one, list, rest, letters} {
		for _, x := range []string{secret, "a secret of mine", standardSecret(1)} {
			if strings.Contains(string(a.body), x) {
				t.Errorf("a secret is told: %s", a.body)
			}
		}
	}

	sid := seg(std.str("webhookId"))
	rotated := s.do("POST", "/webhooks/"+sid+"/rotate-secret", map[string]any{"secret": standardSecret(7)}).want(t, 200)
	at, _ := time.Parse(time.RFC3339, rotated.str("rotatedAt"))
	until, _ := time.Parse(time.RFC3339, rotated.str("previousSecretExpiresAt"))
	var facet struct{ OverlapSeconds int }
	s.facet(&facet, "webhooks", "secretRotation")
	if until.Sub(at) != time.Duration(facet.OverlapSeconds)*time.Second || facet.OverlapSeconds == 0 {
		t.Errorf("%s with an overlap of %d s", rotated.body, facet.OverlapSeconds)
	}
	s.do("POST", "/webhooks/"+sid+"/rotate-secret", map[string]any{"secret": standardSecret(7)}).refused(t, 400, "validation_error")
	s.do("POST", "/webhooks/"+sid+"/rotate-secret", map[string]any{"secret": "whsec_short"}).refused(t, 400, "validation_error")
	s.do("POST", "/webhooks/"+sid+"/rotate-secret", map[string]any{"secret": standardSecret(8), "x": 1}).refused(t, 400, "validation_error")
	s.do("POST", "/webhooks/"+seg(id)+"/rotate-secret", map[string]any{"secret": standardSecret(8)}).refused(t, 400, "validation_error")

	s.do("DELETE", "/webhooks/"+strings.ReplaceAll(id, "/", "%2F"), nil).want(t, 204)
	for _, r := range [][2]string{
		{"DELETE", "/webhooks/" + seg(id)}, {"GET", "/webhooks/" + seg(id) + "/dead-letters"}, {"GET", "/host/fermata/webhooks/" + seg(id)},
		{"POST", "/host/fermata/webhooks/" + seg(id) + ":enable"},
	} {
		s.do(r[0], r[1], nil).refused(t, 404, "not_found")
	}
}

// facet decodes a member of the discovery document.
func (s *server) facet(into any, path ...string) {
	s.t.Helper()
	doc := s.do("GET", "/.well-known/openwop", nil).want(s.t, 200).json
	for _, p := range path {
		doc, _ = doc[p].(map[string]any)
	}
	b, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestWireWebhookRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	good := map[string]any{"url": "https://hooks.example.com/", "events": []string{"run.completed"}}
	for name, c := range map[string]struct {
		change map[string]any
		code   string
		field  string
	}{
		"no url":          {map[string]any{"url": nil}, "validation_error", "url"},
		"empty url":       {map[string]any{"url": ""}, "validation_error", "url"},
		"long url":        {map[string]any{"url": "https://hooks.example.com/" + strings.Repeat("x", 2048)}, "validation_error", "url"},
		"no events":       {map[string]any{"events": nil}, "validation_error", "events"},
		"empty events":    {map[string]any{"events": []string{}}, "validation_error", "events"},
		"unknown event":   {map[string]any{"events": []string{"run.completed", "run.exploded"}}, "validation_error", "events[1]"},
		"v1 event name":   {map[string]any{"events": []string{"run.dead_lettered"}}, "validation_error", "events[0]"},
		"unknown member":  {map[string]any{"tenantId": "x"}, "validation_error", "tenantId"},
		"long tag":        {map[string]any{"tags": []string{strings.Repeat("x", 257)}}, "validation_error", "tags[0]"},
		"no v1":           {map[string]any{"signatureAlgorithms": []string{"standard-webhooks-1"}, "secret": standardSecret(1)}, "validation_error", "signatureAlgorithms"},
		"no schemes":      {map[string]any{"signatureAlgorithms": []string{}}, "validation_error", "signatureAlgorithms"},
		"a scheme twice":  {map[string]any{"signatureAlgorithms": []string{"v1", "v1"}}, "validation_error", "signatureAlgorithms[1]"},
		"unknown scheme":  {map[string]any{"signatureAlgorithms": []string{"v1", "v1a"}}, "validation_error", "signatureAlgorithms[1]"},
		"no secret":       {map[string]any{"signatureAlgorithms": []string{"v1", "standard-webhooks-1"}}, "validation_error", "secret"},
		"short key":       {map[string]any{"signatureAlgorithms": []string{"v1", "standard-webhooks-1"}, "secret": "whsec_MDEyMzQ1Njc4OQ=="}, "validation_error", "secret"},
		"plain http":      {map[string]any{"url": "http://hooks.example.com/"}, "webhook_url_rejected", "url"},
		"localhost":       {map[string]any{"url": "https://localhost/"}, "webhook_url_rejected", "url"},
		"loopback":        {map[string]any{"url": "https://127.0.0.1/"}, "webhook_url_rejected", "url"},
		"metadata":        {map[string]any{"url": "https://169.254.169.254/latest"}, "webhook_url_rejected", "url"},
		"mapped":          {map[string]any{"url": "https://[::ffff:7f00:1]/"}, "webhook_url_rejected", "url"},
		"no url at all":   {map[string]any{"url": "hooks"}, "webhook_url_rejected", "url"},
		"with a password": {map[string]any{"url": "https://u:p@hooks.example.com/"}, "webhook_url_rejected", "url"},
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{}
			for k, v := range good {
				body[k] = v
			}
			for k, v := range c.change {
				if body[k] = v; v == nil {
					delete(body, k)
				}
			}
			a := s.as(t).do("POST", "/webhooks", body).refused(t, 400, c.code)
			if got := a.json["details"].(map[string]any)["field"]; got != c.field {
				t.Errorf("details name %v, want %s", got, c.field)
			}
		})
	}
	if list := s.do("GET", "/host/fermata/webhooks", nil).want(t, 200); len(list.json["webhooks"].([]any)) != 0 {
		t.Errorf("something was kept: %s", list.body)
	}
	const foreign = "elsewhere~2F0123456789abcdef"
	for _, r := range [][2]string{
		{"DELETE", "/webhooks/" + foreign}, {"GET", "/webhooks/" + foreign + "/dead-letters"}, {"GET", "/host/fermata/webhooks/" + foreign},
		{"POST", "/host/fermata/webhooks/" + foreign + ":enable"},
	} {
		s.do(r[0], r[1], nil).refused(t, 403, "id_tenant_mismatch")
	}
	s.do("POST", "/webhooks/"+foreign+"/rotate-secret", map[string]any{"secret": standardSecret(1)}).refused(t, 403, "id_tenant_mismatch")
	a := s.hook(nil)
	if letters := s.do("GET", "/webhooks/"+seg(a)+"/dead-letters?cursor=nonsense", nil); letters.status != 400 {
		t.Errorf("%s", letters.body)
	}
}

// TestWireWebhookLimit: a tenant has so many webhooks and no more.
func TestWireWebhookLimit(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 100 {
		s.hook(nil)
	}
	s.do("POST", "/webhooks", map[string]any{"url": "https://hooks.example.com/", "events": []string{"run.completed"}}).refused(t, 422, "storage_limit_exceeded")
}

// TestWireEndpointVerification: an endpoint that does not answer as it should is
// not taken, is asked once, and nothing of it is kept.
func TestWireEndpointVerification(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	elsewhere := listen(t, nil)
	for name, answer := range map[string]func(w http.ResponseWriter, body []byte) bool{
		"no echo":    func(w http.ResponseWriter, _ []byte) bool { io.WriteString(w, "{}"); return true },
		"nothing":    func(w http.ResponseWriter, _ []byte) bool { return true },
		"no JSON":    func(w http.ResponseWriter, _ []byte) bool { io.WriteString(w, "challenge"); return true },
		"other echo": func(w http.ResponseWriter, _ []byte) bool { io.WriteString(w, `{"challenge":"x"}`); return true },
		"refusal":    func(w http.ResponseWriter, b []byte) bool { w.WriteHeader(500); w.Write(b); return true },
		"redirect": func(w http.ResponseWriter, b []byte) bool {
			w.Header().Set("Location", elsewhere.http.URL)
			w.WriteHeader(307)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := listen(t, answer)
			body := standardHook(t)
			body["url"] = h.http.URL + "/x"
			a := s.as(t).do("POST", "/webhooks", body).refused(t, 400, "webhook_endpoint_unverified")
			if strings.Contains(string(a.body), h.http.URL) {
				t.Errorf("the refusal quotes the URL: %s", a.body)
			}
			got := h.all()
			if len(got) != 1 {
				t.Fatalf("asked %d times", len(got))
			}
			x := got[0]
			if err := schema.Validate("webhook-verification", x.body); err != nil {
				t.Error(err)
			}
			if x.header.Get("OpenWOP-Event-Type") != "" || x.header.Get("webhook-signature") == "" || x.header.Get("webhook-id") == "" {
				t.Errorf("headers %v", x.header)
			}
		})
	}
	if n := len(elsewhere.all()); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
	if list := s.do("GET", "/host/fermata/webhooks", nil).want(t, 200); len(list.json["webhooks"].([]any)) != 0 {
		t.Errorf("something was kept: %s", list.body)
	}
	// Who does not ask for it is not asked.
	h := listen(t, nil)
	s.hook(map[string]any{"url": h.http.URL, "events": []string{"run.completed"}})
	if n := len(h.all()); n != 0 {
		t.Errorf("an endpoint that did not opt in was asked %d times", n)
	}
}

// TestWireWebhookDelivery: what arrives is what the log says, masked as it is for
// every reader, and goes on over a restart.
func TestWireWebhookDelivery(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	h := listen(t, nil)
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{
		"variables": []any{map[string]any{"name": "password", "type": "string", "sensitive": true}},
	}))
	all := []string{"run.started", "node.started", "node.completed", "run.completed", "variable.changed"}
	s.hook(map[string]any{"url": h.http.URL, "events": all})
	for n := range 2 {
		id := s.run("one", map[string]any{"inputs": map[string]any{"password": "hunter2"}})
		s.await(id, "completed")
		docs := s.docs(id)
		got := h.hears(t, (n+1)*len(docs))[n*len(docs):]
		for i, x := range got {
			if err := schema.Validate("webhook-delivery", x.body); err != nil {
				t.Errorf("%v\n%s", err, x.body)
			}
			if want := fmt.Sprintf(`{"runId":%q,"event":%s}`, id, docs[i]); string(x.body) != want {
				t.Errorf("delivery %d is\n%s\nwant\n%s", i, x.body, want)
			}
			if strings.Contains(string(x.body), "hunter2") {
				t.Errorf("a sensitive value leaves the host: %s", x.body)
			}
		}
		s.restart()
	}
}

// TestWireDeadLetters: a delivery nobody takes is named and nothing more; the
// subscription says that it was disabled, until somebody enables it.
func TestWireDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	h := listen(t, func(w http.ResponseWriter, _ []byte) bool {
		w.WriteHeader(500)
		io.WriteString(w, "the subscriber's own words")
		return true
	})
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	hook := s.hook(map[string]any{"url": h.http.URL, "events": []string{"run.completed"}, "secret": "the secret itself"})
	path := "/webhooks/" + seg(hook) + "/dead-letters"
	for range 3 {
		s.await(s.run("one"), "completed")
	}
	letters := func() (answer, []any) {
		a := s.do("GET", path, nil).want(t, 200)
		return a, a.json["deliveries"].([]any)
	}
	for deadline := time.Now().Add(hang); ; time.Sleep(5 * time.Millisecond) {
		a, list := letters()
		if len(list) == 3 {
			for _, x := range []string{"subscriber's own words", "the secret itself", "payload", h.http.URL} {
				if strings.Contains(string(a.body), x) {
					t.Errorf("%q is told: %s", x, a.body)
				}
			}
			d := list[2].(map[string]any)
			if d["webhookId"] != hook || d["attempts"] != 3.0 || d["lastStatus"] != 500.0 || d["reason"] != "retries_exhausted" {
				t.Errorf("%s", a.body)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s", a.body)
		}
	}
	first := s.do("GET", path+"?limit=2", nil).want(t, 200)
	second := s.do("GET", path+"?limit=2&cursor="+first.str("nextCursor"), nil).want(t, 200)
	if len(first.json["deliveries"].([]any)) != 2 || len(second.json["deliveries"].([]any)) != 1 || second.json["nextCursor"] != nil {
		t.Errorf("%s\n%s", first.body, second.body)
	}
	other := s.hook(nil)
	s.do("GET", "/webhooks/"+seg(other)+"/dead-letters?cursor="+first.str("nextCursor"), nil).refused(t, 400, "validation_error")

	info := s.do("GET", "/host/fermata/webhooks/"+seg(hook), nil).want(t, 200)
	s.await(s.run("one"), "completed")
	for n := 0; info.str("state") != "disabled" && n < 3000; n++ { // it takes nine failures in a row
		if n%100 == 99 {
			s.await(s.run("one"), "completed")
		}
		time.Sleep(5 * time.Millisecond)
		info = s.do("GET", "/host/fermata/webhooks/"+seg(hook), nil).want(t, 200)
	}
	if info.str("state") != "disabled" || !strings.Contains(info.str("reason"), "HTTP 500") || strings.Contains(info.str("reason"), "own words") {
		t.Errorf("%s", info.body)
	}
	before := len(h.all())
	id := s.run("one")
	s.await(id, "completed")
	h.accept()
	if a := s.do("POST", "/host/fermata/webhooks/"+seg(hook)+":enable", nil).want(t, 200); a.str("state") != "active" {
		t.Errorf("%s", a.body)
	}
	for deadline := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		got := h.all()[before:]
		if slices.ContainsFunc(got, func(x heard) bool { return x.doc["runId"] == id }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("what has waited does not come: %d calls", len(got))
		}
	}
}

// TestWireCallback: the URL of a run is told of what it waits for, with a token
// that answers it, and is held to what a webhook's URL is.
func TestWireCallback(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	s.register(gate("gate"))
	for _, u := range []string{
		"http://hooks.example.com/", "https://10.0.0.1/", "https://169.254.169.254/latest/", "https://[::ffff:a9fe:a9fe]/", "https://localhost/", "ftp://x.example/",
	} {
		a := s.do("POST", "/runs", map[string]any{"workflowId": "gate", "callbackUrl": u}).refused(t, 400, "validation_error")
		if a.json["details"].(map[string]any)["field"] != "callbackUrl" {
			t.Errorf("%s", a.body)
		}
	}
	starter := s.key("starter-key-starter-key-starter-key-12", "default", "runs:create", "runs:read")
	s.do("POST", "/runs", map[string]any{"workflowId": "gate", "callbackUrl": "https://hooks.example.com/"}, "Authorization", starter).refused(t, 403, "forbidden")

	tries := 0
	h := listen(t, func(w http.ResponseWriter, _ []byte) bool {
		if tries++; tries == 1 {
			w.WriteHeader(503)
			return true
		}
		return false
	})
	id := s.run("gate", map[string]any{"callbackUrl": h.http.URL + "/ask"})
	got := h.hears(t, 2)
	x := got[1]
	event, _ := x.doc["event"].(map[string]any)
	if x.doc["runId"] != id || x.doc["nodeId"] != "ok" || x.doc["intent"] != "resolve" || event["type"] != "interrupt.requested" ||
		x.doc["deliveryId"] != got[0].doc["deliveryId"] || x.header.Get("OpenWOP-Event-Type") != "interrupt.requested" {
		t.Errorf("%s", x.body)
	}
	token, _ := x.doc["token"].(string)
	s.look(token).want(t, 200)
	s.use(token, yes).want(t, 200)
	s.await(id, "completed")
	if n := len(h.all()); n != 2 {
		t.Errorf("%d callbacks", n)
	}
}

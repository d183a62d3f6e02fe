package fermata_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

// hook1 registers a webhook by way of v1.
func (s *server) hook1(url string, extra map[string]any, events ...string) answer {
	s.t.Helper()
	body := map[string]any{"url": url, "events": events}
	for k, v := range extra {
		body[k] = v
	}
	return s.do("POST", "/v1/webhooks", body).want(s.t, 201)
}

func both(changes ...func(*fermata.Config)) func(*fermata.Config) {
	return func(c *fermata.Config) {
		for _, f := range changes {
			f(c)
		}
	}
}

func TestV1WebhookSurface(t *testing.T) {
	t.Parallel()
	s := start(t, both(withV1, withWebhooks))
	made := s.hook1("https://hooks.example.com/x", map[string]any{"tenantId": "default", "tags": []string{"x"}}, "run.dead_lettered", "run.completed", "run.completed")
	id, secret := made.str("webhookId"), made.str("secret")
	sum := sha256.Sum256([]byte(secret))
	if strings.Contains(id, "/") || len(secret) < 32 || made.str("secretFingerprint") != hex.EncodeToString(sum[:4]) || len(made.json) != 3 ||
		made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v %s", made.header, made.body)
	}
	mine := s.hook1("https://hooks.example.com/y", map[string]any{"secret": "a secret of mine"}, "run.failed")
	sum = sha256.Sum256([]byte("a secret of mine"))
	if mine.str("secret") != "a secret of mine" || mine.str("secretFingerprint") != hex.EncodeToString(sum[:4]) {
		t.Errorf("%s", mine.body)
	}
	// This major's list shows it, under the names of this major, and of which it is.
	one := s.do("GET", "/host/fermata/webhooks/default~2F"+id, nil).want(t, 200)
	if fmt.Sprint(one.json["events"]) != "[run.completed run.dead-lettered]" || one.json["major"] != 1.0 || strings.Contains(string(one.body), secret) {
		t.Errorf("%s", one.body)
	}
	if other := s.do("GET", "/host/fermata/webhooks/"+seg(s.hook(nil)), nil).want(t, 200); other.json["major"] != nil {
		t.Errorf("%s", other.body)
	}

	stranger := s.key("stranger-stranger-stranger-stranger", "other", "*")
	s.do("DELETE", "/v1/webhooks/"+id+"?tenantId=default", nil, "Authorization", stranger).refused(t, 403, "forbidden")
	s.do("DELETE", "/v1/webhooks/"+id, nil, "Authorization", stranger).refused(t, 404, "not_found")
	s.do("DELETE", "/v1/webhooks/"+id+"?tenantId=other", nil).refused(t, 403, "forbidden")
	s.do("DELETE", "/v1/webhooks/"+id+"?tenantId=a%20b", nil).refused(t, 403, "forbidden")
	s.do("DELETE", "/v1/webhooks/"+id+"?tenantId=default&tenantId=other", nil).refused(t, 400, "validation_error")
	s.do("DELETE", "/v1/webhooks/other~2F"+id, nil).refused(t, 403, "forbidden")
	s.do("DELETE", "/v1/webhooks/wh_a3b9c2?tenantId=default", nil).refused(t, 404, "not_found")
	s.do("DELETE", "/v1/webhooks/"+id, nil, "Authorization", s.key("reader-reader-reader-reader-reader", "default", "runs:read")).refused(t, 403, "forbidden")
	s.do("DELETE", "/v1/webhooks/"+id+"?tenantId=default", nil).want(t, 204)
	s.do("DELETE", "/v1/webhooks/"+id+"?tenantId=default", nil).refused(t, 404, "not_found")
	s.do("DELETE", "/v1/webhooks/"+mine.str("webhookId"), nil).want(t, 204)

	body := map[string]any{"url": "https://hooks.example.com/z", "events": []string{"run.failed"}}
	first := s.do("POST", "/v1/webhooks", body, keyHeader, "k").fresh(t, 201)
	s.do("POST", "/v1/webhooks", body, keyHeader, "k").replays(t, first)
}

func TestV1WebhookRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, withV1)
	for name, c := range map[string]struct {
		change map[string]any
		status int
		code   string
		field  string
	}{
		"no url":         {map[string]any{"url": nil}, 400, "validation_error", "url"},
		"no events":      {map[string]any{"events": nil}, 400, "validation_error", "events"},
		"empty events":   {map[string]any{"events": []string{}}, 400, "validation_error", "events"},
		"unknown event":  {map[string]any{"events": []string{"run.completed", "run.exploded"}}, 400, "validation_error", "events[1]"},
		"unknown member": {map[string]any{"signatureAlgorithms": []string{"v1"}}, 400, "validation_error", "signatureAlgorithms"},
		"long tag":       {map[string]any{"tags": []string{strings.Repeat("x", 257)}}, 400, "validation_error", "tags[0]"},
		"other tenant":   {map[string]any{"tenantId": "other"}, 403, "forbidden", "tenantId"},
		"plain http":     {map[string]any{"url": "http://hooks.example.com/"}, 400, "webhook_url_rejected", "url"},
		"metadata":       {map[string]any{"url": "https://169.254.169.254/latest"}, 400, "webhook_url_rejected", "url"},
		"localhost":      {map[string]any{"url": "https://localhost/"}, 400, "webhook_url_rejected", "url"},
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{"url": "https://hooks.example.com/", "events": []string{"run.completed"}}
			for k, v := range c.change {
				if body[k] = v; v == nil {
					delete(body, k)
				}
			}
			a := s.as(t).do("POST", "/v1/webhooks", body).refused(t, c.status, c.code)
			if got := a.json["details"].(map[string]any)["field"]; got != c.field {
				t.Errorf("details name %v, want %s", got, c.field)
			}
		})
	}
	if list := s.do("GET", "/host/fermata/webhooks", nil).want(t, 200); len(list.json["webhooks"].([]any)) != 0 {
		t.Errorf("something was kept: %s", list.body)
	}
}

// isDelivery1 holds a delivery against v1: what its receivers verify, and what they read.
func isDelivery1(t testing.TB, x heard, webhook, secret, run string) map[string]any {
	t.Helper()
	h := x.header
	stamp := h.Get("X-openwop-Timestamp")
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(stamp + "."))
	m.Write(x.body)
	event := x.doc["event"].(map[string]any)
	typ := event["type"].(string)
	for name, want := range map[string]string{
		"Webhook-Id": webhook, "Event-Type": typ, "Timestamp": stamp, "Signature": "sha256=" + hex.EncodeToString(m.Sum(nil)), "Signature-Algorithm": "v1",
	} {
		if h.Get("X-openwop-"+name) != want || h.Get("OpenWOP-"+name) != want {
			t.Errorf("%s: %q and %q, want %q", name, h.Get("X-openwop-"+name), h.Get("OpenWOP-"+name), want)
		}
	}
	if !strings.HasPrefix(h.Get("User-Agent"), "openwop-webhook-dispatcher/") || h.Get("Content-Type") != "application/json" {
		t.Errorf("%v", h)
	}
	if x.doc["runId"] != run || x.doc["workspaceId"] != "default" || x.doc["type"] != typ || len(x.doc) != 4 || event["runId"] != run {
		t.Errorf("%s", x.body)
	}
	doc, _ := json.Marshal(event)
	validV1(t, "run-event", doc)
	return event
}

// What a subscriber of v1 gets is v1's, of runs of either major; a subscriber of this
// major gets the same events in this major's form.
func TestV1WebhookDelivery(t *testing.T) {
	t.Parallel()
	s := start(t, both(withV1, withWebhooks))
	s.register(gate("gate"))
	old, now := listen(t, nil), listen(t, nil)
	names := []string{"run.started", "interrupt.requested", "approval.requested", "approval.received", "interrupt.resolved", "run.completed"}
	made := s.hook1(old.http.URL, nil, names...)
	s.hook(map[string]any{"url": now.http.URL, "events": names})
	for n, create := range []func() string{
		func() string { return s.run1("gate") },
		func() string { _, opaque, _ := cutID(s.run("gate")); return opaque },
	} {
		id := create()
		s.await1(id, "waiting-approval")
		s.answer1(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
		s.await1(id, "completed")
		from := n * len(names)
		var types []string
		for _, x := range old.hears(t, from+len(names))[from:] {
			event := isDelivery1(t, x, made.str("webhookId"), made.str("secret"), id)
			types = append(types, event["type"].(string))
			switch p := event["payload"].(map[string]any); event["type"] {
			case "approval.requested":
				if p["nodeId"] != "ok" || p["artifactId"] != "ok" || p["artifactType"] != "approval" || p["actions"] == nil {
					t.Errorf("%v", p)
				}
			case "approval.received": // decided by whoever has sent it, and when
				if _, err := time.Parse(time.RFC3339, fmt.Sprint(p["decidedAt"])); p["action"] != "accept" || p["decidedBy"] == nil || p["decidedBy"] == "" || err != nil {
					t.Errorf("%v", p)
				}
			}
		}
		if !slices.Equal(types, names) {
			t.Errorf("%v, want %v", types, names)
		}
		for i, x := range now.hears(t, from+len(names))[from:] {
			if x.doc["runId"] != "default/"+id || x.doc["type"] != nil || x.header.Get("X-openwop-Signature") != x.header.Get("OpenWOP-Signature") ||
				x.doc["event"].(map[string]any)["sequence"] != old.all()[from+i].doc["event"].(map[string]any)["sequence"] {
				t.Errorf("%v %s", x.header, x.body)
			}
		}
	}
}

// A failed delivery comes again, signed anew: a receiver of v1 knows it by webhook, run
// and sequence. What it gets does not depend on whether the host restarts in between, nor
// on whether v1 is still served when others subscribe.
func TestV1WebhookRetriesAndRestarts(t *testing.T) {
	t.Parallel()
	s := start(t, both(withV1, withWebhooks))
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	tries := 0
	h := listen(t, func(w http.ResponseWriter, _ []byte) bool {
		if tries++; tries == 1 {
			w.WriteHeader(503)
			return true
		}
		return false
	})
	made := s.hook1(h.http.URL, nil, "run.completed")
	id := s.run1("one")
	got := h.hears(t, 2)
	for _, x := range got {
		if e := isDelivery1(t, x, made.str("webhookId"), made.str("secret"), id); e["sequence"] != got[0].doc["event"].(map[string]any)["sequence"] {
			t.Errorf("%v", e)
		}
	}
	s.restart()
	id = s.run1("one")
	isDelivery1(t, h.hears(t, 3)[2], made.str("webhookId"), made.str("secret"), id)

	s.down()
	s.cfg.V1 = false
	s.up()
	last := s.run("one")
	s.await(last, "completed")
	path := "/webhooks/default~2F" + made.str("webhookId") + "/dead-letters"
	var letters []any
	for deadline := time.Now().Add(hang); len(letters) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		letters = s.do("GET", path, nil).want(t, 200).json["deliveries"].([]any)
	}
	if len(letters) != 1 || letters[0].(map[string]any)["reason"] != "payload_unprojectable" || len(h.all()) != 3 {
		t.Errorf("%v, %d deliveries", letters, len(h.all()))
	}
}

// A run that was started under v1 calls back in the form of v1, with a token of v1.
func TestV1Callback(t *testing.T) {
	t.Parallel()
	s := start(t, both(withV1, withWebhooks))
	s.register(gate("gate"))
	h := listen(t, nil)
	id := s.run1("gate", map[string]any{"callbackUrl": h.http.URL + "/ask"})
	x := h.hears(t, 1)[0]
	token, _ := x.doc["token"].(string)
	if x.doc["runId"] != id || x.doc["type"] != "interrupt.requested" || x.doc["nodeId"] != "ok" || x.doc["intent"] != "resolve" || x.doc["workspaceId"] != "default" ||
		strings.Count(token, ".") != 1 || x.doc["callbackUrl"] != "/v1/interrupts/"+token || strings.Contains(string(x.body), "default/") ||
		x.header.Get("X-openwop-Event-Type") != "interrupt.requested" || x.header.Get("OpenWOP-Event-Type") != "interrupt.requested" {
		t.Errorf("%v %s", x.header, x.body)
	}
	doc, _ := json.Marshal(x.doc["event"])
	validV1(t, "run-event", doc)
	s.use1(token, yes).want(t, 200)
	s.await1(id, "completed")

	s.run("gate", map[string]any{"callbackUrl": h.http.URL + "/ask"}) // by way of this major
	if y := h.hears(t, 2)[1]; y.doc["type"] != nil || !strings.HasPrefix(fmt.Sprint(y.doc["token"]), "ow2.") {
		t.Errorf("%s", y.body)
	}
	a := s.do("POST", "/v1/runs", map[string]any{"workflowId": "gate", "callbackUrl": "https://169.254.169.254/"}).refused(t, 400, "validation_error")
	if a.json["details"].(map[string]any)["field"] != "callbackUrl" {
		t.Errorf("%s", a.body)
	}
}

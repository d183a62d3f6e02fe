package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/client"
)

// TestWebhooks walks through the life of a webhook: from its secret to its end.
func TestWebhooks(t *testing.T) {
	w := newWorld(t)
	w.server()
	contains(t, w.must("webhooks", "list"), "There are no webhooks")
	out := w.must("webhooks", "add", "https://hooks.example.com/x", "--event", "run.failed,run.completed", "--tag", "x")
	contains(t, out, "webhook  default/", "secret   whsec_", "shown this once")
	first := strings.Fields(out)[1]
	secret := strings.Fields(out)[3]
	list := w.must("webhooks", "list")
	contains(t, list, "WEBHOOK", first+"  active", "https://hooks.example.com/x", "run.completed run.failed")
	if all := list + w.must("webhooks", "list", "--json") + w.must("webhooks", "dead-letters", first); strings.Contains(all, secret) {
		t.Errorf("the secret is told again:\n%s", all)
	}
	if code := w.run("webhooks", "add", "http://hooks.example.com/"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "webhook_url_rejected")
	if code := w.run("webhooks", "add", "https://hooks.example.com/", "--standard"); code != 2 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "FERMATA_WEBHOOK_SECRET")
	if code := w.run("webhooks", "rotate", first); code != 1 {
		t.Errorf("exit %d", code)
	}

	mine := client.NewWebhookSecret()
	hears := &client.Receiver{Secrets: []string{mine}}
	dead := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("OpenWOP-Event-Type") != "" {
			rw.WriteHeader(503)
			return
		}
		hears.ServeHTTP(rw, r)
	}))
	defer dead.Close()
	w.vars["FERMATA_WEBHOOK_SECRET"] = mine
	second := strings.Fields(w.must("webhooks", "add", dead.URL, "--standard"))[1]
	delete(w.vars, "FERMATA_WEBHOOK_SECRET")
	contains(t, w.must("webhooks", "rotate", second), "secret   whsec_", "signs as well until")

	w.must("workflows", "apply", w.file("echo.json", echo("1")))
	for deadline := time.Now().Add(patience); !strings.Contains(list, "disabled"); list = w.must("webhooks", "list") {
		if time.Now().After(deadline) {
			t.Fatalf("never disabled:\n%s", list)
		}
		w.must("runs", "start", "echo", "--input", "n=1")
	}
	contains(t, list, second+" is disabled: ", "attempts in a row failed; the last: HTTP 503. Enable it with `fermata webhooks enable "+second+"`")
	contains(t, w.must("webhooks", "dead-letters", second), "SINCE", "run.completed", "HTTP 503", "retries_exhausted")
	contains(t, w.must("webhooks", "dead-letters", second, "--json"), `"lastStatus": 503`)
	contains(t, w.must("webhooks", "enable", second), second+" is active")
	contains(t, w.must("webhooks", "delete", second), "is deleted")
	if code := w.run("webhooks", "delete", second); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "not_found")
}

package conformance_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/conformance"
)

// Whatever a host answers, the suite comes to an end, and never breaks itself.
func TestStrangeHosts(t *testing.T) {
	t.Parallel()
	always := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const js = "application/json"
	created := `{"runId":"default/0123456789abcdef","status":"running","eventsUrl":"/runs/default~2F0123456789abcdef/events",` +
		`"events":[],"lastSequence":-1,"isTerminal":false,"runs":[],"results":[],"error":"x","message":"y","details":{}}`
	claims := `{"protocolVersions":["2.0"],"preferredVersion":"2.0"`
	for _, f := range []string{"interrupt", "replay", "webhooks", "idempotency", "eventLog", "runList", "subWorkflow", "limits", "conformance", "auth", "dataResidency"} {
		claims += fmt.Sprintf(`,%q:{"modes":["replay","branch"],"seamsProfile":"openwop-conformance-seams-v2","maxRequestBodyBytes":100}`, f)
	}
	for name, h := range map[string]http.HandlerFunc{
		"a page":            always(200, "text/html", "<html></html>"),
		"an empty object":   always(200, js, "{}"),
		"null":              always(200, js, "null"),
		"a list":            always(200, js, "[]"),
		"empty":             always(200, js, ""),
		"created":           always(201, js, created),
		"a bit of all":      always(200, js, created),
		"claims everything": always(200, js, claims+"}"),
		"an error":          always(500, js, `{"error":"internal_error","message":"no"}`),
		"a stream":          always(200, "text/event-stream", "id: 0\nevent: run.started\ndata: {}\n\n"),
		"not found":         always(404, js, `{"error":"not_found","message":"no"}`),
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"wrong types": always(200, js, `{"runId":1,"status":[],"events":{},"protocolVersions":"2.0","fixtures":7,"extensions":[],"results":1,"runs":"x"}`),
		"hangs up": func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/.well-known/openwop" {
				panic(http.ErrAbortHandler)
			}
		},
		"says nothing": func(w http.ResponseWriter, r *http.Request) {
			// Only once the body is read does the server see the client go.
			_, _ = io.Copy(io.Discard, r.Body)
			if r.URL.Path != "/.well-known/openwop" {
				<-r.Context().Done()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := look(t, serve(t, h), func(c *conformance.Config) { c.Timeout, c.Parallel = 500*time.Millisecond, 64 })
			for _, x := range r.Results {
				if strings.HasPrefix(x.Reason, "the check itself broke") || x.Status == "" {
					t.Errorf("%s: %s %s", x.ID, x.Status, x.Reason)
				}
			}
			for _, p := range r.Profiles {
				if p.Verdict == conformance.Holds {
					t.Errorf("%s holds", p.ID)
				}
			}
		})
	}
}

// A host that has no workflows and takes none is blocked where one is needed,
// and nowhere failed for it.
func TestHostWithoutWorkflows(t *testing.T) {
	t.Parallel()
	bare := instead(when("", `^/host/fermata/`), 404, `{"error":"not_found","message":"no such operation"}`)(good(t))
	r := look(t, serve(t, bare))
	n := 0
	for _, x := range r.Results {
		if x.Status == conformance.Fail && known[x.ID] == "" {
			t.Errorf("%s: %s", x.ID, x.Reason)
		}
		if strings.HasPrefix(x.ID, "pause.") && x.Status == conformance.Pass {
			t.Errorf("%s passes without a run", x.ID)
		}
		if strings.Contains(x.Reason, "discovery names no fixture") {
			n++
		}
	}
	if n < 50 || r.ExitStatus() == conformance.ExitOK {
		t.Errorf("%d checks name the missing workflow; exit status %d", n, r.ExitStatus())
	}
}

// On a host that names the protocol's fixtures the suite runs with those.
func TestHostWithStandardFixtures(t *testing.T) {
	t.Parallel()
	host := good(t)
	at, listed := serve(t, host), []string{}
	for id, def := range standardFixtures {
		req, _ := http.NewRequest("PUT", at+"/host/fermata/workflows/"+id, strings.NewReader(def))
		req.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Content-Type": {"application/json"}}
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != 201 {
			t.Fatal(id, res, err)
		}
		res.Body.Close()
		listed = append(listed, id)
	}
	closed := both(answers(when("GET", wellKn), on(200, set("fixtures", listed))),
		instead(when("", `^/host/fermata/`), 404, `{"error":"not_found","message":"no such operation"}`))(host)
	r := look(t, serve(t, closed), func(c *conformance.Config) {
		// The second tenant has no fixtures here, and no way to get some.
		c.OtherAPIKey = ""
		c.Filter = `^(v2-|cancel|pause|poll|stream|resume|read|discovery)`
	})
	for _, x := range r.Results {
		if x.Status == conformance.Fail && known[x.ID] == "" || x.Status == conformance.Blocked && !strings.HasPrefix(x.Reason, "left out") {
			t.Errorf("%s: %s %s", x.ID, x.Status, x.Reason)
		}
	}
}

// standardFixtures are workflows that behave as the protocol's fixtures of the
// same names do.
var standardFixtures = func() map[string]string {
	one := func(id, node, typ, config, inputs, variables string) string {
		return fmt.Sprintf(`{"id":%q,"name":"x","version":"1.0","nodes":[{"id":%q,"typeId":%q,"name":"x","position":{"x":0,"y":0},"config":%s,"inputs":%s}],`+
			`"edges":[],"triggers":[],"variables":%s,"metadata":{},"settings":{}}`, id, node, typ, config, inputs, variables)
	}
	m := map[string]string{}
	for _, f := range [][6]string{
		{"conformance-noop", "noop", "core.noop", "{}", "{}", "[]"},
		{"conformance-multi-node", "a", "core.noop", "{}", "{}", "[]"},
		{"conformance-failure", "fail", "core.fail", "{}", "{}", "[]"},
		{"conformance-approval", "gate", "core.approvalGate", `{"title":"x","actions":["accept","reject"]}`, "{}", "[]"},
		{"conformance-delay", "wait", "core.delay", "{}", `{"delayMs":{"type":"variable","variableName":"delayMs"}}`, `[{"name":"delayMs","type":"number","required":true}]`},
		{"conformance-interrupt-parent-child-cancel", "call", "core.subWorkflow", `{"workflowId":"conformance-approval"}`, "{}", "[]"},
	} {
		m[f[0]] = one(f[0], f[1], f[2], f[3], f[4], f[5])
	}
	return m
}()

func TestTextNamesWhatWentWrong(t *testing.T) {
	t.Parallel()
	broken := answers(when("GET", wellKn), on(200, set("surprise", 1)))(good(t))
	r := look(t, serve(t, broken), func(c *conformance.Config) { c.Filter = `^discovery\.` })
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAILED", "discovery.document  MUST, capabilities.md §3", "GET /.well-known/openwop: 200", "openwop-discovery-core"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, b.String())
		}
	}
	if r.ExitStatus() != conformance.ExitFailed {
		t.Errorf("exit status %d", r.ExitStatus())
	}
}

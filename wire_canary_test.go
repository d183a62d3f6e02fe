package fermata_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/node"
)

// The canary is a secret in every form in which it could get out.
const canary = `canary-8d1f"/+\é-secret`

func canaryForms() []string {
	quoted, _ := json.Marshal(canary)
	return []string{
		canary, string(quoted[1 : len(quoted)-1]), url.QueryEscape(canary), url.PathEscape(canary), hex.EncodeToString([]byte(canary)),
		base64.StdEncoding.EncodeToString([]byte(canary)), base64.RawURLEncoding.EncodeToString([]byte(canary)),
		base64.StdEncoding.EncodeToString([]byte("ann:" + canary)), "canary-8d1f",
	}
}

func clean(t *testing.T, where string, text []byte) {
	t.Helper()
	for _, f := range canaryForms() {
		if i := bytes.Index(text, []byte(f)); i >= 0 {
			t.Errorf("%s: the secret is there as %q: …%s…", where, f, text[max(0, i-60):min(len(text), i+len(f)+20)])
			return
		}
	}
}

// lockedBuffer is what everything logs into.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// blabber does with its credential everything that a node must not: it puts it
// wherever a node can put something.
func blabber(log *slog.Logger) node.Type {
	return node.Type{
		ID: "test.blab", Credentials: []string{"credential"},
		Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
			var cfg struct {
				Credential node.CredentialRef `json:"credential"`
				How        string             `json:"how"`
			}
			if err := json.Unmarshal(in.Config, &cfg); err != nil {
				return node.Result{}, err
			}
			c, err := in.Services.Credential(ctx, cfg.Credential)
			if err != nil {
				return node.Result{}, err
			}
			m, err := c.For(ctx, "127.0.0.1")
			if err != nil {
				return node.Result{}, err
			}
			s := m.Secret
			log.Info("resolved "+s, "value", s, "nested", map[string]any{"a": []string{s}}, "credential", c, "material", m, "err", fmt.Errorf("wrapped: %w", fmt.Errorf("%s", s)))
			in.Log("info", "I have "+s, map[string]any{"value": s, s: "as a name", "material": m, "credential": c, "verb": fmt.Sprintf("%v %+v %#v %s", c, m, m, c)})
			if err := in.SetVariable("v", map[string]any{"x": s}); err != nil {
				return node.Result{}, err
			}
			switch cfg.How {
			case "panic":
				panic("with " + s)
			case "error":
				return node.Result{}, fmt.Errorf("the other side said %s", s)
			case "fail":
				e := node.Fail("upstream_unavailable", "refused %s", s)
				e.Details = map[string]any{"value": s, "deep": []any{map[string]any{s: s}}}
				return node.Result{}, e
			case "suspend":
				if in.Wake != nil {
					return node.Done(node.Outputs{"state": in.Wake.State}), nil
				}
				return node.Suspend(node.Interrupt{Kind: "custom", Data: json.RawMessage(fmt.Sprintf(`{"customKind":"x","q":%q}`, base64.StdEncoding.EncodeToString([]byte(s))))}, map[string]any{"kept": s}), nil
			}
			for i := range len(s) { // byte by byte
				if err := in.Services.Chunk(s[i:i+1], i == len(s)-1); err != nil {
					return node.Result{}, err
				}
			}
			return node.Done(node.Outputs{"plain": s, "json": json.RawMessage(`{"a":["` + unicodeEscaped(s) + `"],"n":12345678}`), "hex": hex.EncodeToString([]byte(s)), "url": "https://u:" + url.QueryEscape(s) + "@a.example/?k=" + url.QueryEscape(s)}), nil
		},
	}
}

// unicodeEscaped writes every character as an escape.
func unicodeEscaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// TestCanary puts a secret into every place that takes something, and looks for it
// in everything that comes out: events, snapshots, streams, lists, errors, the
// ledger, webhooks, logs, and every file of the data folder.
func TestCanary(t *testing.T) {
	t.Parallel()
	logs := &lockedBuffer{}
	var hooked lockedBuffer
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		hooked.Write(b)
		fmt.Fprint(&hooked, r.Header, r.URL)
	}))
	defer receiver.Close()
	log := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var shared *slog.Logger
	s := start(t, loopback, withV1, func(c *fermata.Config) {
		c.Logger = log
		c.Webhooks.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Webhooks.RootCAs = receiver.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		// Whatever a node logs by itself, it is given the host's logger for.
		shared = slog.New(slog.NewJSONHandler(io.Discard, nil))
		c.Nodes = []node.Type{blabber(shared)}
	})
	echo := newTill(t, func(w http.ResponseWriter, r *http.Request, _ int) { // says everything back
		w.Header().Set("X-Echo", r.Header.Get("Authorization")+r.Header.Get("X-Key"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"headers": r.Header, "url": r.URL.String(), "plain": canary, "query": r.URL.Query()})
	})
	ref := s.credential(map[string]any{"secret": canary})
	basic := s.credential(map[string]any{"kind": "basic", "username": "ann", "secret": canary})
	s.do("POST", "/webhooks", map[string]any{"url": receiver.URL, "events": []string{"node.completed", "node.failed", "run.failed", "run.completed", "log.appended", "variable.changed", "interrupt.requested", "output.chunk"}, "secret": canary}).want(t, 201)

	var runs []string
	begin := func(def map[string]any, inputs map[string]any) {
		s.register(def)
		if inputs == nil {
			inputs = map[string]any{}
		}
		runs = append(runs, s.run(def["id"].(string), map[string]any{"inputs": inputs, "tags": []string{canary}, "metadata": map[string]any{"k": canary}}))
	}
	for _, how := range []string{"done", "panic", "error", "fail", "suspend"} {
		begin(flow("blab-"+how, []any{step("a", "test.blab", map[string]any{"credential": map[string]any{"ref": ref}, "how": how})}, []any{}), map[string]any{"v": canary})
	}
	for name, extra := range map[string]map[string]any{
		"get": {}, "post": {"method": "POST", "body": map[string]any{"a": 1}}, "query": {"credentialAs": "query", "credentialName": "k", "method": "POST"},
		"header": {"credentialAs": "header", "credentialName": "X-Key"}, "bad": {"expectStatus": 404},
		"basic": {"credential": map[string]any{"ref": basic}},
	} {
		begin(calling("http-"+name, echo.URL, ref, extra), map[string]any{"v": canary})
	}
	// A run whose caller pastes the secret in.
	pasted := flow("paste", []any{step("a", "core.http.request", map[string]any{"url": echo.URL}, map[string]any{
		"inputs": map[string]any{"headers": map[string]any{"type": "variable", "variableName": "h"}},
	})}, []any{}, map[string]any{"variables": []any{map[string]any{"name": "h", "type": "object"}}})
	begin(pasted, map[string]any{"h": map[string]any{"Authorization": "Bearer " + canary, canary: canary}, "deep": []any{canary}})
	asked := gate("ask")
	begin(asked, nil)

	var out bytes.Buffer
	get := func(path string) { fmt.Fprintf(&out, "%s\n", s.do("GET", path, nil).body) }
	s.do("POST", "/runs/"+seg(runs[4])+"/interrupts/a", map[string]any{"resumeValue": map[string]any{"x": canary}})
	s.do("POST", "/runs/"+seg(runs[len(runs)-1])+"/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": "reject", "reason": canary}})
	for _, id := range runs {
		s.await(id, "completed", "failed", "cancelled")
		for _, d := range s.docs(id) {
			out.Write(append(d, '\n'))
		}
		get("/runs/" + seg(id))
		get("/runs/" + seg(id) + "/effects")
		_, opaque, _ := cutID(id)
		get("/v1/runs/" + opaque)
		get("/v1/runs/" + opaque + ":diff?against=" + seg(runs[0]))
		get("/v1/runs/" + opaque + "/events/poll")
		get("/v1/runs/" + opaque + "/debug-bundle")
		get("/v1/runs/" + opaque + "/events?fromSequence=0")
		for _, mode := range []string{"values", "debug", "debug&bufferMs=1", "messages"} {
			sub := s.subscribeAt("/v1/runs/" + opaque + "/events?streamMode=" + mode)
			for f, more := sub.next(); more; f, more = sub.next() {
				out.Write(f.data)
			}
			sub.close()
		}
		get("/host/fermata/runs/" + seg(id) + "/debug-bundle")
		for _, mode := range []string{"values", "debug"} {
			sub := s.subscribe(id, "?streamMode="+mode)
			for f, more := sub.next(); more; f, more = sub.next() {
				out.Write(f.data)
			}
			sub.close()
		}
	}
	get("/runs?limit=200")
	get("/host/fermata/workflows?limit=100")
	get("/host/fermata/credentials")
	get("/host/fermata/credentials/" + ref)
	get("/host/fermata/webhooks")
	get("/host/fermata/interrupts")
	clean(t, "answers", out.Bytes())

	// Refusals, whatever position the secret is in.
	var refusals bytes.Buffer
	esc := url.PathEscape(canary)
	for _, r := range []answer{
		s.do("PUT", "/host/fermata/workflows/held", flow("held", []any{step("a", "core.noop", map[string]any{"token": canary})}, []any{})),
		s.do("PUT", "/host/fermata/workflows/default", flow("default", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{"variables": []any{map[string]any{"name": "v", "type": "string", "defaultValue": canary}}})),
		s.do("POST", "/v1/workflows", flow("held", []any{step("a", "core.noop", map[string]any{"token": canary})}, []any{})),
		s.do("POST", "/v1/runs", map[string]any{"workflowId": canary}), s.do("POST", "/v1/runs", map[string]any{"workflowId": "ask", canary: 1}),
		s.do("POST", "/v1/runs", map[string]any{"workflowId": "ask", "configurable": map[string]any{"reasoningVerbosity": canary}}),
		s.do("POST", "/v1/runs:bulk-cancel", map[string]any{"runIds": []string{canary}}), s.do("GET", "/v1/workflows/"+esc, nil),
		s.do("POST", "/runs", map[string]any{"workflowId": canary}), s.do("POST", "/runs", map[string]any{"workflowId": "ask", canary: 1}),
		s.do("POST", "/runs", map[string]any{"workflowId": "ask", "callbackUrl": "https://a.example/?k=" + url.QueryEscape(canary)}),
		s.do("POST", "/runs", map[string]any{"workflowId": "ask", "scopeId": canary}),
		s.do("GET", "/runs?status="+url.QueryEscape(canary), nil), s.do("GET", "/runs?cursor="+url.QueryEscape(canary), nil),
		s.do("GET", "/host/fermata/credentials/"+esc, nil), s.do("GET", "/host/fermata/workflows/"+esc, nil),
		s.do("POST", "/webhooks", map[string]any{"url": "https://u:" + url.QueryEscape(canary) + "@a.example/", "events": []string{canary}}),
		s.do("POST", "/host/fermata/credentials", map[string]any{"secret": canary, "name": canary, "audiences": []string{canary}}),
		s.do("POST", "/host/fermata/keys", map[string]any{"scopes": []string{canary}}),
		s.do("POST", "/runs/"+seg(runs[0])+"/interrupts/"+esc, map[string]any{"resumeValue": canary}),
		s.do("POST", "/runs/"+seg(runs[0])+"/cancel", map[string]any{"reason": canary}),
		s.do("POST", "/v1/runs/"+esc+"/cancel", nil, "Idempotency-Key", "a-key-of-the-canary-01"), s.do("POST", "/runs/"+esc+"/cancel", nil, "Idempotency-Key", "a-key-of-the-canary-02"),
		s.do("POST", "/v1/runs/"+esc+"/approvals/"+esc, yes, "Idempotency-Key", "a-key-of-the-canary-03"),
		s.do("POST", "/runs/"+seg(runs[0])+"/interrupts/"+esc, map[string]any{"resumeValue": yes}, "Idempotency-Key", "a-key-of-the-canary-04"),
		s.do("PUT", "/host/fermata/workflows/"+esc, noop("x"), "Idempotency-Key", "a-key-of-the-canary-05"),
	} {
		fmt.Fprintf(&refusals, "%d %s\n", r.status, r.body)
	}
	clean(t, "refusals", refusals.Bytes())
	s.down()
	clean(t, "webhooks", hooked.bytes())
	if len(hooked.bytes()) == 0 {
		t.Error("no webhook was delivered: nothing was looked at")
	}
	clean(t, "logs", logs.bytes())
	if !bytes.Contains(logs.bytes(), []byte("panicked")) {
		t.Error("the panic was not logged: nothing was looked at")
	}
	err := filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		clean(t, filepath.Base(p), b)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// The other side did get it, or the test would prove nothing.
	echo.mu.Lock()
	defer echo.mu.Unlock()
	got := 0
	for _, r := range echo.seen {
		if strings.Contains(r.Header.Get("Authorization"), canary) || r.URL.Query().Get("k") == canary || r.Header.Get("X-Key") == canary {
			got++
		}
	}
	if got < 4 {
		t.Errorf("only %d calls carried the credential", got)
	}
	if !bytes.Contains(out.Bytes(), []byte("[REDACTED:"+ref+"]")) {
		t.Error("nothing was masked: nothing was looked at")
	}
}

package builtin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/node"
)

// site is a server and the node type that may call it.
type site struct {
	*httptest.Server
	nt node.Type

	mu   sync.Mutex
	seen *http.Request
	body string
}

// last is the newest request the site saw, and its body.
func (s *site) last() (*http.Request, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen, s.body
}

func (s *site) note(r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.body = r, string(b)
}

func newSite(t *testing.T, answer http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		if answer != nil {
			answer(w, r)
		}
	}))
	g := egress.New(egress.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	t.Cleanup(func() { g.Close(); s.Close() })
	s.nt = httpRequest(g)
	return s
}

// call runs the node with a config in which URL stands for the site's.
func (s *site) call(config string, ports ...string) (node.Result, error) {
	i := in(strings.ReplaceAll(config, "URL", s.URL), ports...)
	i.Services.Eval = nil
	return s.nt.Run(permitted(context.Background(), s.nt), i)
}

// permitted is what the host gives a call that may have effects.
func permitted(ctx context.Context, nt node.Type) context.Context {
	seams := &effect.Registry{}
	if err := seams.Add(nt.Seams...); err != nil {
		panic(err)
	}
	return effect.Permit(ctx, seams)
}

// A replay calls nobody, and neither does a call of which nothing is known: not by
// a new connection, not by one that is left over.
func TestHTTPSeam(t *testing.T) {
	s := newSite(t, nil)
	i := in(`{"url":"` + s.URL + `"}`)
	if _, err := s.nt.Run(permitted(t.Context(), s.nt), i); err != nil {
		t.Fatal(err)
	}
	s.note(httptest.NewRequest("GET", "/none", nil))
	for code, ctx := range map[string]context.Context{
		"replay_source_missing": effect.Forbid(permitted(t.Context(), s.nt)), "egress_denied": t.Context(),
	} {
		for range 2 {
			_, err := s.nt.Run(ctx, in(`{"url":"`+s.URL+`","method":"POST","body":1}`))
			if e := failedWith(t, code, err, code, ""); e.Retryable || e.Details["seam"] != "core.http.request" {
				t.Errorf("%+v", e)
			}
		}
	}
	if seen, _ := s.last(); seen.URL.Path != "/none" {
		t.Errorf("the site saw %s %s", seen.Method, seen.URL)
	}
}

func TestHTTPRequest(t *testing.T) {
	s := newSite(t, nil)
	for _, c := range []struct {
		config string
		ports  []string
		line   string
		body   string
		header string // "name: value", or "name:" for absent
	}{
		{`{"url":"URL/a"}`, nil, "GET /a", "", "Idempotency-Key:"},
		{`{"url":"URL/a"}`, nil, "GET /a", "", "User-Agent: fermata"},
		{`{"url":"URL/a","method":"HEAD"}`, nil, "HEAD /a", "", "Idempotency-Key:"},
		{`{"url":"URL/a?x=1","query":{"b":"ü&","a":[1,true,"s",null],"n":12345678901234567890,"z":null}}`, nil,
			"GET /a?a=1&a=true&a=s&b=%C3%BC%26&n=12345678901234567890&x=1", "", "Content-Type:"},
		{`{"url":"URL/","method":"POST","body":` + exact + `}`, nil, "POST /", exact, "Content-Type: application/json"},
		{`{"url":"URL/","method":"POST","body":"text"}`, nil, "POST /", `"text"`, "Idempotency-Key: effect-1"},
		{`{"url":"URL/","method":"POST","body":null}`, nil, "POST /", `null`, "Content-Type: application/json"},
		{`{"url":"URL/","method":"POST","body":1}`, []string{"body", exact}, "POST /", exact, "Content-Length: " + fmt.Sprint(len(exact))},
		{`{"url":"URL/","method":"PUT","bodyText":"héllo"}`, nil, "PUT /", "héllo", "Content-Type: text/plain; charset=utf-8"},
		{`{"url":"URL/","method":"PATCH","bodyText":"<a/>","headers":{"content-type":"text/xml"}}`, nil, "PATCH /", "<a/>", "Content-Type: text/xml"},
		{`{"url":"URL/","method":"DELETE"}`, nil, "DELETE /", "", "Idempotency-Key: effect-1"},
		{`{"url":"URL/","method":"POST","headers":{"idempotency-key":"mine","X-Token":"tök"}}`, nil, "POST /", "", "Idempotency-Key: mine"},
		{`{"url":"URL/","headers":{"X-Token":"tök"}}`, nil, "GET /", "", "X-Token: tök"},
		{`{}`, []string{"url", `"` + s.URL + `/port"`, "method", `"OPTIONS"`}, "OPTIONS /port", "", "Accept: application/json, */*;q=0.8"},
	} {
		r, err := s.call(c.config, c.ports...)
		if err != nil || r.Kind() != node.Completed {
			t.Errorf("%s: %v", c.config, err)
			continue
		}
		seen, body := s.last()
		if line := seen.Method + " " + seen.URL.RequestURI(); line != c.line || body != c.body {
			t.Errorf("%s:\n got %s %s\nwant %s %s", c.config, line, body, c.line, c.body)
		}
		name, want, _ := strings.Cut(c.header, ":")
		if got := seen.Header.Get(name); got != strings.TrimSpace(want) {
			t.Errorf("%s: %s is %q", c.config, name, got)
		}
	}
}

func TestHTTPResponse(t *testing.T) {
	var contentType, body string
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Content-Type", contentType)
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		w.Header().Set("Set-Cookie", "session=s3cret")
		_, _ = io.WriteString(w, body)
	})
	nested := strings.Repeat("[", 129) + strings.Repeat("]", 129)
	for _, c := range []struct{ contentType, body, want, encoding string }{
		{"application/json", " " + exact + "\n", exact, "json"},
		{"application/problem+json; charset=utf-8", `{"a":1}`, `{"a":1}`, "json"},
		{"application/json", "\xef\xbb\xbf[1]", `[1]`, "json"},
		{"application/json", ``, `null`, "json"},
		{"application/json", `{"a":`, `"{\"a\":"`, "text"},
		{"application/json", `{"a":1,"a":2}`, `"{\"a\":1,\"a\":2}"`, "text"},
		{"application/json", nested, `"` + nested + `"`, "text"},
		{"application/json", nested[1 : len(nested)-1], nested[1 : len(nested)-1], "json"},
		{"text/plain", `{"a":1} é𝄐`, `"{\"a\":1} é𝄐"`, "text"},
		{"text/plain", ``, `""`, "text"},
		{"image/png", "\x89PNG\xff\x00", `"` + base64.StdEncoding.EncodeToString([]byte("\x89PNG\xff\x00")) + `"`, "base64"},
		{"application/json", "\"\xff\"", `"Iv8i"`, "base64"},
		{"nonsense;;", "a", `"a"`, "text"},
	} {
		contentType, body = c.contentType, c.body
		r, err := s.call(`{"url":"URL/x?token=s3cret#top"}`)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		out := r.Outputs()
		if string(out["body"]) != c.want || string(out["encoding"]) != `"`+c.encoding+`"` || string(out["status"]) != "200" {
			t.Errorf("%s %q:\n got %s as %s\nwant %s as %s", c.contentType, c.body, out["body"], out["encoding"], c.want, c.encoding)
		}
		if string(out["url"]) != `"`+s.URL+`/x"` {
			t.Errorf("url %s", out["url"])
		}
		var h map[string]string
		if err := json.Unmarshal(out["headers"], &h); err != nil || h["x-two"] != "a, b" || h["content-type"] != c.contentType {
			t.Errorf("headers %s", out["headers"])
		}
		if strings.Contains(outputs(r), "s3cret") {
			t.Errorf("a secret is in the outputs: %s", outputs(r))
		}
	}
}

func TestHTTPStatus(t *testing.T) {
	status := 200
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })
	for _, c := range []struct {
		config    string
		status    int
		ok, again bool
	}{
		{`{"url":"URL"}`, 204, true, false},
		{`{"url":"URL"}`, 302, false, false},
		{`{"url":"URL"}`, 404, false, false},
		{`{"url":"URL"}`, 429, false, true},
		{`{"url":"URL"}`, 500, false, true},
		{`{"url":"URL","retryOn5xx":false}`, 503, false, false},
		{`{"url":"URL","retryOn5xx":false}`, 429, false, true},
		{`{"url":"URL","expectStatus":"4xx"}`, 404, true, false},
		{`{"url":"URL","expectStatus":[200,"3xx"]}`, 304, true, false},
		{`{"url":"URL","expectStatus":[200,"3xx"]}`, 201, false, false},
		{`{"url":"URL","expectStatus":404}`, 404, true, false},
		{`{"url":"URL","expectStatus":"any"}`, 599, true, false},
		{`{"url":"URL","expectStatus":"any"}`, 777, true, false},
	} {
		status = c.status
		r, err := s.call(c.config)
		if c.ok {
			if err != nil || string(r.Outputs()["status"]) != fmt.Sprint(c.status) {
				t.Errorf("%s %d: %v", c.config, c.status, err)
			}
			continue
		}
		e := failedWith(t, c.config, err, node.CodeUnavailable, fmt.Sprint(c.status))
		if e.Retryable != c.again || e.Details["status"] != c.status || e.Details["service"] != "httpClient" {
			t.Errorf("%s %d: %+v", c.config, c.status, e)
		}
	}
}

func TestHTTPDenied(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest?token=s3cret", http.StatusFound)
	})
	for config, reason := range map[string]string{
		`{"url":"http://169.254.169.254/latest"}`:   "ssrf-blocked",
		`{"url":"http://[::ffff:10.0.0.1]/"}`:       "ssrf-blocked",
		`{"url":"http://[::1]:1/"}`:                 "ssrf-blocked",
		`{"url":"http://0.0.0.0/"}`:                 "ssrf-blocked",
		`{"url":"ftp://example.com/"}`:              "policy-denied",
		`{"url":"http://user:s3cret@example.com/"}`: "policy-denied",
		`{"url":"/relative"}`:                       "policy-denied",
		`{"url":"URL","followRedirects":true}`:      "ssrf-blocked",
	} {
		_, err := s.call(config)
		e := failedWith(t, config, err, "egress_denied", "")
		if e.Retryable || e.Details["reason"] != reason || strings.Contains(fmt.Sprint(e, e.Details), "s3cret") {
			t.Errorf("%s: %+v", config, e)
		}
	}
}

func TestHTTPFollowsWhenTold(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/end", http.StatusSeeOther)
		}
	})
	r, err := s.call(`{"url":"URL/","followRedirects":true}`)
	if err != nil || string(r.Outputs()["url"]) != `"`+s.URL+`/end"` {
		t.Error(err, outputs(r))
	}
}

func TestHTTPTransportFailures(t *testing.T) {
	hold := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			<-hold
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "short")
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", 2000))
		}
	})
	defer close(hold)
	for _, c := range []struct {
		config, mention string
		again           bool
	}{
		{`{"url":"URL/hang?k=s3cret","timeoutMs":30}`, "timed out", true},
		{`{"url":"URL/cut?k=s3cret","headers":{"Authorization":"s3cret"}}`, "closed early", true},
		{`{"url":"http://127.0.0.1:1/?k=s3cret"}`, "refused", true},
		{`{"url":"URL/large?k=s3cret","maxResponseBytes":1999}`, "larger than 1999 bytes", false},
	} {
		_, err := s.call(c.config)
		e := failedWith(t, c.config, err, node.CodeUnavailable, c.mention)
		if e.Retryable != c.again || e.Details["service"] != "httpClient" || strings.Contains(fmt.Sprint(e, e.Details), "s3cret") {
			t.Errorf("%s: %+v", c.config, e)
		}
	}
	if _, err := s.call(`{"url":"URL/large","maxResponseBytes":2000}`); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.nt.Run(permitted(ctx, s.nt), in(`{"url":"`+s.URL+`"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended by the host: %v", err)
	}
}

func TestHTTPConfig(t *testing.T) {
	s := newSite(t, nil)
	many := map[string]string{}
	for i := range 101 {
		many[fmt.Sprint("x", i)] = "v"
	}
	manyHeaders, _ := json.Marshal(map[string]any{"url": "http://example.com", "headers": many})
	for config, field := range map[string]string{
		`{"url":7}`:                                                                                          "config.url",
		`{"url":"http://a b/"}`:                                                                              "url",
		`{"url":"http://[::1/"}`:                                                                             "url",
		`{"url":"http://e.com/%zz"}`:                                                                         "url",
		`{"url":"http://e.com","method":"TRACE"}`:                                                            "method",
		`{"url":"http://e.com","method":"get"}`:                                                              "method",
		`{"url":"http://e.com","timeoutMs":0}`:                                                               "timeoutMs",
		`{"url":"http://e.com","timeoutMs":600001}`:                                                          "timeoutMs",
		`{"url":"http://e.com","maxResponseBytes":4194305}`:                                                  "maxResponseBytes",
		`{"url":"http://e.com","expectStatus":[]}`:                                                           "expectStatus",
		`{"url":"http://e.com","expectStatus":"6xx"}`:                                                        "expectStatus",
		`{"url":"http://e.com","expectStatus":{}}`:                                                           "expectStatus",
		`{"url":"http://e.com","expectStatus":99}`:                                                           "expectStatus",
		`{"url":"http://e.com","headers":{"a":1}}`:                                                           "config.headers",
		`{"url":"http://e.com","headers":{"a b":"s3cret"}}`:                                                  "headers",
		`{"url":"http://e.com","headers":{"":"s3cret"}}`:                                                     "headers",
		`{"url":"http://e.com","headers":{"X":"s3cret\r\nY: z"}}`:                                            "headers.X",
		`{"url":"http://e.com","headers":{"host":"s3cret"}}`:                                                 "headers.host",
		`{"url":"http://e.com","headers":{"Transfer-Encoding":"chunked"}}`:                                   "headers.Transfer-Encoding",
		`{"url":"http://e.com","headers":{"x":"` + strings.Repeat("v", 33000) + `"}}`:                        "headers",
		string(manyHeaders):                                                                                  "headers",
		`{"url":"http://e.com","query":{"a":{}}}`:                                                            "query.a",
		`{"url":"http://e.com","query":{"a":[[1]]}}`:                                                         "query.a",
		`{"url":"http://e.com?%zz","query":{"a":1}}`:                                                         "url",
		`{"url":"http://e.com","body":{}}`:                                                                   "body",
		`{"url":"http://e.com","method":"HEAD","bodyText":"a"}`:                                              "bodyText",
		`{"url":"http://e.com","method":"POST","body":1,"bodyText":"a"}`:                                     "bodyText",
		`{"url":"http://e.com","method":"POST","bodyText":"` + strings.Repeat("x", maxRequestBytes+1) + `"}`: "bodyText",
	} {
		_, err := s.call(config)
		for what, err := range map[string]error{
			"run": err, "check": s.nt.Check(node.CheckContext{Config: json.RawMessage(config)}),
		} {
			e := failedWith(t, what+fmt.Sprintf(" %.100s", config), err, node.CodeConfig, field)
			if e.Details["field"] != field || strings.Contains(fmt.Sprint(e, e.Details), "s3cret") {
				t.Errorf("%s %.100s: %+v", what, config, e)
			}
		}
	}
	_, err := s.call(`{}`)
	failedWith(t, "no url", err, node.CodeConfig, "url is missing")
	for config, ok := range map[string]bool{
		`{}`: true, `{"method":"POST","body":{}}`: true, `{"url":"https://example.com/"}`: true,
		`{"url":"http://169.254.169.254/"}`: true, // judged at the call
		`{"url":"ftp://example.com/"}`:      false, `{"url":"https://u:p@example.com/"}`: false, `{"url":"/x"}`: false,
		`{"body":{}}`: false, // GET is the default
	} {
		if err := s.nt.Check(node.CheckContext{Config: json.RawMessage(config)}); (err == nil) != ok {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestHTTPIsLeftOutWithoutAWayOut(t *testing.T) {
	for _, nt := range All(Deps{}) {
		if nt.ID == "core.http.request" {
			t.Error("it is there")
		}
	}
	if typeOf(t, "core.http.request").Pure {
		t.Error("a call to the outside is pure")
	}
}

package fermata_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
)

func TestWireRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code               string
	}{
		"unknown route":           {method: "GET", path: "/nothing/here", status: 404, code: "not_found"},
		"root":                    {method: "GET", path: "/", status: 404, code: "not_found"},
		"trailing slash":          {method: "GET", path: "/runs/", status: 404, code: "not_found"},
		"doubled slash":           {method: "GET", path: "//runs", status: 404, code: "not_found"},
		"case of a path":          {method: "GET", path: "/Runs", status: 404, code: "not_found"},
		"path that is no UTF-8":   {method: "GET", path: "/%ff%fe", status: 404, code: "not_found"},
		"v1 path":                 {method: "GET", path: "/v1/runs", status: 404, code: "not_found"},
		"wrong method":            {method: "DELETE", path: "/runs", status: 405, code: "not_found"},
		"unknown method":          {method: "BREW", path: "/runs", status: 405, code: "not_found"},
		"wrong method of a verb":  {method: "GET", path: "/runs/default~2F0123456789abcdef:pause", status: 405, code: "not_found"},
		"head of a stream":        {method: "HEAD", path: "/runs/default~2F0123456789abcdef/events", status: 405, code: ""},
		"unknown major":           {method: "GET", path: "/runs", header: []string{"OpenWOP-Version", "3"}, status: 406, code: "protocol_version_unsupported"},
		"major 1":                 {method: "GET", path: "/runs", header: []string{"OpenWOP-Version", "1.0"}, status: 406, code: "protocol_version_unsupported"},
		"no version at all":       {method: "GET", path: "/runs", header: []string{"OpenWOP-Version", "two"}, status: 406, code: "protocol_version_unsupported"},
		"version before route":    {method: "GET", path: "/nothing", header: []string{"OpenWOP-Version", "9"}, status: 406, code: "protocol_version_unsupported"},
		"no credential":           {method: "GET", path: "/runs", header: []string{"Authorization", ""}, status: 401, code: "unauthenticated"},
		"wrong scheme":            {method: "GET", path: "/runs", header: []string{"Authorization", "Basic " + testKey}, status: 401, code: "unauthenticated"},
		"wrong key":               {method: "GET", path: "/runs", header: []string{"Authorization", "Bearer " + testKey + "x"}, status: 401, code: "unauthenticated"},
		"short key":               {method: "GET", path: "/runs", header: []string{"Authorization", "Bearer x"}, status: 401, code: "unauthenticated"},
		"credential before body":  {method: "POST", path: "/runs", body: "{", header: []string{"Authorization", ""}, status: 401, code: "unauthenticated"},
		"text body":               {method: "POST", path: "/runs", body: "{}", header: []string{"Content-Type", "text/plain"}, status: 415, code: "unsupported_media_type"},
		"no content type":         {method: "POST", path: "/runs", body: "{}", header: []string{"Content-Type", ""}, status: 415, code: "unsupported_media_type"},
		"content type no UTF-8":   {method: "POST", path: "/runs", body: "{}", header: []string{"Content-Type", "text/\xff"}, status: 415, code: "unsupported_media_type"},
		"another charset":         {method: "POST", path: "/runs", body: "{}", header: []string{"Content-Type", "application/json; charset=latin1"}, status: 415, code: "unsupported_media_type"},
		"compressed body":         {method: "POST", path: "/runs", body: "{}", header: []string{"Content-Encoding", "gzip"}, status: 415, code: "unsupported_media_type"},
		"query that is malformed": {method: "GET", path: "/runs?status=%zz", status: 400, code: "validation_error"},
		"query with a semicolon":  {method: "GET", path: "/runs?status=running;limit=2", status: 400, code: "validation_error"},
		"parameter given twice":   {method: "GET", path: "/runs?limit=1&limit=2", status: 400, code: "validation_error"},
		"engine version forced":   {method: "POST", path: "/runs", body: "{}", header: []string{"OpenWOP-Force-Engine-Version", "1"}, status: 403, code: "force_engine_version_forbidden"},
		"dedup of another kind":   {method: "POST", path: "/runs", body: "{}", header: []string{"OpenWOP-Dedup", "yes"}, status: 400, code: "validation_error"},
		"unknown workflow":        {method: "POST", path: "/runs", body: `{"workflowId":"nobody"}`, status: 404, code: "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			var body any
			if c.body != "" {
				body = c.body
			}
			a := s.as(t).do(c.method, c.path, body, c.header...).want(t, c.status)
			if c.code != "" {
				a.refused(t, c.status, c.code)
			}
			if c.status == 405 && a.header.Get("Allow") == "" {
				t.Error("no Allow")
			}
			if c.status == 401 && a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("WWW-Authenticate %q", a.header.Get("WWW-Authenticate"))
			}
			if cc := a.header.Get("Cache-Control"); cc != "no-store" {
				t.Errorf("a refusal may be cached: %q", cc)
			}
		})
	}
	if list := s.do("GET", "/runs", nil).json["runs"].([]any); len(list) != 0 {
		t.Errorf("a refusal left %d runs", len(list))
	}
}

func TestWireAllowNamesTheMethods(t *testing.T) {
	t.Parallel()
	s := start(t)
	for path, want := range map[string]string{
		"/runs": "GET,POST", "/runs:bulk-cancel": "POST", "/host/fermata/workflows/w": "DELETE,GET,PUT", "/openapi.json": "GET",
	} {
		a := s.do("PATCH", path, nil).refused(t, 405, "not_found")
		got := strings.Split(strings.ReplaceAll(a.header.Get("Allow"), " ", ""), ",")
		slices.Sort(got)
		if strings.Join(got, ",") != want {
			t.Errorf("%s allows %v, want %s", path, got, want)
		}
	}
}

// filled fills a route's parameters with something well-formed that is not there.
func filled(pattern string) string {
	p := strings.NewReplacer("{runId}", "default~2F0123456789abcdef", "{webhookId}", "default~2F0123456789abcdef").Replace(pattern)
	for _, name := range []string{"{workflowId}", "{nodeId}"} {
		p = strings.ReplaceAll(p, name, "nobody")
	}
	return p
}

// Every operation refuses a caller without a credential, with a wrong one, and
// with one that lacks the scope; what needs none says so in the table.
func TestWireEveryRouteAuthorizes(t *testing.T) {
	t.Parallel()
	s := start(t)
	powerless := s.key("powerless-key-powerless-key-powerless", "default", "nothing:at-all")
	public := []string{"getCapabilities", "getOpenApiSpec", "live", "ready"}
	for _, r := range s.host.Routes() {
		token := strings.Contains(r.Pattern, "{token}")
		if open := r.Scope == ""; open != (token || slices.Contains(public, r.ID)) {
			t.Errorf("%s: scope %q", r.ID, r.Scope)
		}
		if token { // the token is the credential: an API key is none here
			for _, key := range []string{"", "Bearer " + testKey} {
				s.do(r.Method, r.Pattern, nil, "Authorization", key).refused(t, 401, "interrupt_token_invalid")
			}
			continue
		}
		var body any
		if r.Body != nil {
			body = "{}"
		}
		p := filled(r.Pattern)
		if r.Scope == "" {
			s.do(r.Method, p, body, "Authorization", "").want(t, 200)
			continue
		}
		s.do(r.Method, p, body, "Authorization", "").refused(t, 401, "unauthenticated")
		s.do(r.Method, p, body, "Authorization", "Bearer "+strings.Repeat("x", 40)).refused(t, 401, "unauthenticated")
		switch a := s.do(r.Method, p, body, "Authorization", powerless); {
		case body == nil:
			a.refused(t, 403, "forbidden")
		case a.status != 403 && a.status != 400: // a body may be refused first, as it tells nothing
			t.Errorf("%s without its scope: %d %s", r.ID, a.status, a.body)
		}
	}
}

func TestWireBodyLimit(t *testing.T) {
	t.Parallel()
	const limit = 4096
	s := start(t, withLimits(fermata.Limits{MaxBodyBytes: limit}))
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	sized := func(n int) string {
		b := `{"workflowId":"one","inputs":{"x":""}}`
		return strings.Replace(b, `""`, `"`+strings.Repeat("y", n-len(b))+`"`, 1)
	}
	s.do("POST", "/runs", sized(limit)).want(t, 201)
	a := s.do("POST", "/runs", sized(limit+1)).refused(t, 413, "payload_too_large")
	if a.json["details"].(map[string]any)["maxRequestBodyBytes"] != float64(limit) {
		t.Errorf("details %s", a.body)
	}
	// The same without a Content-Length, and for every operation with a body.
	for _, r := range s.host.Routes() {
		if r.Body == nil || r.ID == "resolveInterruptByToken" { // no body is read before a token is good
			continue
		}
		req, _ := http.NewRequest(r.Method, s.http.URL+filled(r.Pattern), io.MultiReader(bytes.NewReader(bytes.Repeat([]byte(" "), limit)), strings.NewReader("{}")))
		req.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Content-Type": {"application/json"}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 413 || !bytes.Contains(b, []byte(`"payload_too_large"`)) {
			t.Errorf("%s in chunks: %d %s", r.ID, res.StatusCode, b)
		}
	}
}

// A message may quote the request; a refusal stays JSON whatever that holds.
func TestWireRefusalQuotesSafely(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, hostile := range []string{"\xff", "\x00", "\u2028", `"><script>`, strings.Repeat("a", 3000)} {
		a := s.do("GET", "/runs/default~2F0123456789abcdef/events?streamMode="+url.QueryEscape(hostile), nil)
		a.refused(t, 400, "unsupported_stream_mode")
		s.do("GET", "/x/"+url.PathEscape(hostile), nil).refused(t, 404, "not_found")
		s.do("GET", "/runs?status="+url.QueryEscape(hostile), nil).refused(t, 400, "validation_error")
	}
}

package fermata_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func TestWireCapabilities(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.do("GET", "/.well-known/openwop", nil, "Authorization", "").want(t, 200) // the harness validates it
	etag := a.header.Get("ETag")
	if !regexp.MustCompile(`^"[^"]+"$`).MatchString(etag) {
		t.Fatalf("ETag %q is not strong", etag)
	}
	for _, v := range []string{"2", "2.0", "2.7"} {
		b := s.do("GET", "/.well-known/openwop", nil, "OpenWOP-Version", v).want(t, 200)
		if b.header.Get("ETag") != etag || string(b.body) != string(a.body) {
			t.Errorf("version %s gives another document", v)
		}
	}
	if v := a.header.Get("Vary"); !strings.Contains(v, "OpenWOP-Version") {
		t.Errorf("Vary %q", v)
	}
	for _, inm := range []string{etag, "W/" + etag, "*", `"other", ` + etag, `"a",W/"b" , ` + etag + ` ,"c"`} {
		b := s.do("GET", "/.well-known/openwop", nil, "If-None-Match", inm).want(t, 304)
		if b.header.Get("ETag") != etag {
			t.Errorf("a 304 with ETag %q", b.header.Get("ETag"))
		}
	}
	for _, inm := range []string{`"other"`, strings.Trim(etag, `"`), `W/"*"`, `"` + etag} {
		s.do("GET", "/.well-known/openwop", nil, "If-None-Match", inm).want(t, 200)
	}
	s.do("HEAD", "/.well-known/openwop", nil).want(t, 200)
	s.do("GET", "/host/fermata/live", nil, "OpenWOP-Version", "9").want(t, 200) // the host's own operations have no version
	a = s.do("GET", "/.well-known/openwop", nil, "OpenWOP-Version", "1").refused(t, 406, "protocol_version_unsupported")
	if got := a.json["details"].(map[string]any)["protocolVersions"]; len(got.([]any)) != 1 || got.([]any)[0] != "2.0" {
		t.Errorf("details %s", a.body)
	}
}

// Two header lines are one list.
func TestWireIfNoneMatchOnTwoLines(t *testing.T) {
	t.Parallel()
	s := start(t)
	etag := s.do("GET", "/.well-known/openwop", nil).header.Get("ETag")
	req, _ := http.NewRequest("GET", s.http.URL+"/.well-known/openwop", nil)
	req.Header["If-None-Match"] = []string{`"a"`, etag}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 304 {
		t.Errorf("status %d", res.StatusCode)
	}
}

// What discovery says of limits is what the host enforces.
func TestWireAdvertisedLimitsHold(t *testing.T) {
	t.Parallel()
	s := start(t)
	caps := s.do("GET", "/.well-known/openwop", nil).json
	size := int(caps["limits"].(map[string]any)["maxRequestBodyBytes"].(float64))
	s.do("POST", "/runs", strings.Repeat(" ", size)).refused(t, 400, "validation_error")
	s.do("POST", "/runs", strings.Repeat(" ", size+1)).refused(t, 413, "payload_too_large")
	list := caps["runList"].(map[string]any)
	for _, f := range list["filters"].([]any) {
		s.do("GET", "/runs?"+f.(string)+"=", nil).refused(t, 400, "validation_error")
	}
	if eras := caps["eventLogSchemaVersion"]; eras != 3.0 {
		t.Errorf("era %v", eras)
	}
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// The document describes every route there is, and another reader of OpenAPI
// than ours finds it valid.
func TestWireOpenAPI(t *testing.T) {
	t.Parallel()
	s := start(t)
	a := s.do("GET", "/openapi.json", nil, "Authorization", "").want(t, 200)
	doc, err := openapi3.NewLoader().LoadFromData(a.body)
	if err != nil {
		t.Fatal(err)
	}
	if !doc.IsOpenAPI31OrLater() {
		t.Errorf("openapi %s", doc.OpenAPI)
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
	var raw struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In string
				Required bool
				Schema   json.RawMessage
			}
			RequestBody *struct{ Required bool }
			Responses   map[string]json.RawMessage
			Security    []json.RawMessage
		}
	}
	if err := json.Unmarshal(a.body, &raw); err != nil {
		t.Fatal(err)
	}
	seen, routes := map[string]bool{}, 0
	for _, r := range s.host.Routes() {
		op, ok := raw.Paths[r.Pattern][strings.ToLower(r.Method)]
		if !ok {
			t.Errorf("%s %s is not described", r.Method, r.Pattern)
			continue
		}
		routes++
		if op.OperationID != r.ID || seen[r.ID] {
			t.Errorf("%s %s is called %q", r.Method, r.Pattern, op.OperationID)
		}
		seen[r.ID] = true
		var want, got []string
		for _, m := range parameter.FindAllStringSubmatch(r.Pattern, -1) {
			want = append(want, m[1])
		}
		for _, p := range op.Parameters {
			if p.In == "path" {
				got = append(got, p.Name)
				if !p.Required || len(p.Schema) == 0 {
					t.Errorf("%s: parameter %s is not required or has no schema", r.ID, p.Name)
				}
			}
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s declares %v of %v", r.ID, got, want)
		}
		if (op.RequestBody != nil) != (r.Body != nil) || r.Body != nil && op.RequestBody.Required == r.Body.Optional {
			t.Errorf("%s: request body %+v", r.ID, op.RequestBody)
		}
		if (len(op.Security) == 0) != (r.Scope == "") {
			t.Errorf("%s: security %s", r.ID, op.Security)
		}
		for status := range r.Returns {
			if op.Responses[http.StatusText(status)] == nil && op.Responses[itoa(status)] == nil {
				t.Errorf("%s: answer %d is missing", r.ID, status)
			}
		}
	}
	for _, item := range raw.Paths {
		routes -= len(item)
	}
	if routes != 0 {
		t.Errorf("%d operations are described that no route serves", -routes)
	}
	references(t, a.body)
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// references wants every $ref of a document to lead to something in it.
func references(t *testing.T, body []byte) {
	t.Helper()
	var root any
	if err := json.Unmarshal(body, &root); err != nil {
		t.Fatal(err)
	}
	n := 0
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				visit(x)
			}
		case map[string]any:
			for _, x := range v {
				visit(x)
			}
			ref, ok := v["$ref"].(string)
			if !ok {
				return
			}
			n++
			at := root
			for tok := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				tok = strings.NewReplacer("~1", "/", "~0", "~").Replace(tok)
				m, _ := at.(map[string]any)
				if at = m[tok]; at == nil {
					t.Errorf("%s leads to nothing", ref)
					return
				}
			}
		}
	}
	visit(root)
	if n == 0 {
		t.Error("no references at all")
	}
}

package api

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/go-json-experiment/json/jsontext"
)

func request(method, target string, params map[string]string) *Request {
	return &Request{
		Request: httptest.NewRequest(method, target, nil), Params: params,
		Route: &Route{ID: "op", Method: method},
	}
}

func TestDigestOfBodies(t *testing.T) {
	r := request("POST", "/", nil)
	deep := strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, " {\n\"b\" : [ true , null ],\t\"a\": 1 } "},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"y":2,"x":1}}`},
		{`"\u00e9\n"`, "\"é\\u000a\""},
		{`[1,10,0.5,0,-2]`, `[1.0,1e1,5E-1,-0.0e5,-20e-1]`},
		{`9007199254740993`, `9007199254740993.000`, `900719925474099.3e+1`},
		{`1e400`, `10e399`, `0.1e401`},
		{`1e99999999999999999999`, `1E99999999999999999999`},
	} {
		for _, b := range same[1:] {
			if r.Digest([]byte(same[0])) != r.Digest([]byte(b)) {
				t.Errorf("%s and %s differ", same[0], b)
			}
		}
	}
	seen := map[[32]byte]string{}
	for _, b := range []string{
		"", "null", "{}", "[]", "0", `""`, `"0"`, "false", "1e400", "1e401", "-1e400", "9007199254740992", "9007199254740993",
		"0.1", "0.10000000000000001", "1e99999999999999999999", "1e99999999999999999998", `{"a":1}`, `{"a":"1"}`, `{"a":[1]}`,
		`{"a":1,"b":2}`, `{"a":{"b":2}}`, `[1,2]`, `[2,1]`, `[12]`, `["a","b"]`, `["ab"]`, `["a\u0000","b"]`, `[[],[]]`, `[[[]]]`,
		`{"a":1,"a":1}`, `{"a":1,"a":2}`, `{`, "{ ", "\"\xff\"", "\"\xfe\"", deep, deep + " ", `["a,b"]`, `{"a":null}`,
	} {
		d := r.Digest([]byte(b))
		if other, ok := seen[d]; ok {
			t.Errorf("%.60q and %.60q have one digest", b, other)
		}
		seen[d] = b
	}
}

func TestDigestOfTheRest(t *testing.T) {
	p := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	id := "acme/01JABCDEFGHJKMNPQRSTVWXYZ0"
	if request("POST", "/?a=1&b=2", p("runId", id)).Digest(nil) !=
		request("POST", "/?b=2&a=1", p("runId", strings.ReplaceAll(id, "/", "~2F"))).Digest(nil) {
		t.Error("two spellings of one request differ")
	}
	seen := map[[32]byte]int{}
	for i, r := range []*Request{
		request("POST", "/", nil), request("PUT", "/", nil), request("POST", "/?a=1", nil), request("POST", "/?a=2", nil),
		request("POST", "/?a=1&a=2", nil), request("POST", "/?a=2&a=1", nil), request("POST", "/?%zz", nil),
		request("POST", "/", p("runId", id)), request("POST", "/", p("nodeId", id)), request("POST", "/", p("nodeId", "a b")),
		request("POST", "/", p("nodeId", "a", "runId", "b")),
	} {
		d := r.Digest(nil)
		if j, ok := seen[d]; ok {
			t.Errorf("requests %d and %d have one digest", i, j)
		}
		seen[d] = i
	}
	if r := request("POST", "/", nil); r.Digest(nil, "a", "b") == r.Digest(nil, "ab") || r.Digest(nil) == r.Digest(nil, "") {
		t.Error("what else is given does not count")
	}
}

func TestEndpoint(t *testing.T) {
	seen := map[string]bool{}
	for _, params := range []map[string]string{
		nil, {"nodeId": "a"}, {"nodeId": "a b"}, {"nodeId": "a", "runId": "b"}, {"nodeId": "a%20b"},
		{"nodeId": strings.Repeat("x", 5000)}, {"nodeId": strings.Repeat("x", 5001)},
	} {
		e := request("POST", "/", params).Endpoint()
		if seen[e] || len(e) > maxEndpoint || !strings.HasPrefix(e, "op") {
			t.Errorf("%v: %q", params, e)
		}
		seen[e] = true
	}
}

func FuzzDigest(f *testing.F) {
	for _, s := range []string{`{"b":1e400,"a":[0.10]}`, `[1,2`, `"\ud800"`, `-0`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := request("POST", "/", nil)
		spaced := jsontext.Value(body)
		if event.Depth(spaced) <= MaxDepth && spaced.IsValid() && spaced.Indent() == nil && r.Digest(spaced) != r.Digest([]byte(body)) {
			t.Fatal("white space counts")
		}
		if r.Digest([]byte(body)) == r.Digest([]byte(fmt.Sprintf("[%s]", body))) {
			t.Fatal("wrapping it does not count")
		}
	})
}

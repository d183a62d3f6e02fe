package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

type sample struct {
	Name  string           `json:"name"`
	Count int              `json:"count"`
	List  []string         `json:"list"`
	Deep  struct{ A *int } `json:"deep"`
	Raw   jsontext.Value   `json:"raw"`
}

func TestDecode(t *testing.T) {
	deep := func(n int) string { return `{"raw":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for body, field := range map[string]string{
		`{}`: "", ` { "name" : "x" } `: "", `{"raw":null}`: "", deep(MaxDepth - 1): "", `{"raw":"` + strings.Repeat(`{[\"`, 300) + `"}`: "",
		deep(MaxDepth): "body", `{"name":null}`: "name", `{"list":["a",null]}`: "list[1]", `{"list":null}`: "list", `{"deep":{"A":null}}`: "deep.A",
		`{"count":"1"}`: "count", `{"count":1.5}`: "count", `{"count":99999999999999999999}`: "count", `{"list":[1]}`: "list[0]",
		`{"list":["a","b","c","d","e","f","g","h","i","j",0]}`: "list[10]", `{"deep":{"a":1}}`: "deep.a", `{"Name":"x"}`: "Name", `{"name ":"x"}`: "name ",
		`{"name":"x","name":"y"}`: "name", `{"raw":{"a":1,"a":2}}`: "raw.a", `{"raw":{"a":[{"b":1,"b":2}]}}`: "raw.a[0].b", `{"a/b~c":1}`: "a/b~c",
		`[]`: "body", `null`: "body", `1`: "body", ``: "body", `{`: "body", `{"name":"x"}}`: "body", `{"name":"x"} {}`: "body", "\ufeff{}": "body",
	} {
		var v sample
		err := Decode([]byte(body), &v)
		if field == "" {
			if err != nil {
				t.Errorf("%.80s: %v", body, err)
			}
			continue
		}
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != problem.ValidationError || p.Details["field"] != field {
			t.Errorf("%.80s: %v %v, want field %s", body, err, p, field)
		}
	}
	if err := Decode(nil, &sample{}); !problem.Is(err, problem.ValidationError) {
		t.Errorf("no body: %v", err)
	}
}

// Raw members are the bytes that came in, but for white space between tokens.
func TestDecodeKeepsRawMembers(t *testing.T) {
	for in, want := range map[string]string{
		`{"raw": {"b" : 1.0, "a":[ -0 , 1E400 ]}}`: `{"b":1.0,"a":[-0,1E400]}`,
		`{"raw":"\u0041\/\u2028 x\u0000"}`:         `"\u0041\/\u2028 x\u0000"`,
		`{"raw": null }`:                           `null`,
	} {
		var v sample
		if err := Decode([]byte(in), &v); err != nil || string(v.Raw) != want {
			t.Errorf("%s: %s, %v", in, v.Raw, err)
		}
	}
}

// Whatever comes in is taken or refused with a place, and never a panic.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":null}`, `{"raw":[[[]]]}`, `{"list":["\ud800"]}`, "\xff", `{"a":1,"a":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v sample
		err := Decode(b, &v)
		if err == nil {
			if len(v.Raw) > 0 && !v.Raw.IsValid() {
				t.Errorf("raw member %q", v.Raw)
			}
			return
		}
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != problem.ValidationError || p.Details["field"] == "" || p.Message == "" {
			t.Errorf("%v", err)
		}
		if !Envelope(p).IsValid() {
			t.Errorf("envelope %s", Envelope(p))
		}
	})
}

package openapi

import (
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/api"
)

func TestRowsThatCannotBeDescribed(t *testing.T) {
	good := api.Route{Method: "GET", Pattern: "/a/{x}", ID: "a", Returns: map[int]api.Response{200: {}}}
	change := func(f func(*api.Route)) []api.Route { r := good; f(&r); return []api.Route{r} }
	other := good
	other.ID, other.Pattern = "b", "/a/{y}"
	cases := map[string][]api.Route{
		"no such method":          change(func(r *api.Route) { r.Method = "FETCH" }),
		"no operationId":          change(func(r *api.Route) { r.ID = "" }),
		"belongs to GET":          {good, good},
		"also written":            {good, other},
		"start with a slash":      change(func(r *api.Route) { r.Pattern = "a" }),
		"malformed parameter":     change(func(r *api.Route) { r.Pattern = "/a/{x" }),
		"occurs twice":            change(func(r *api.Route) { r.Pattern = "/{x}/{x}" }),
		"no success answer":       change(func(r *api.Route) { r.Returns = nil }),
		"no schema is called":     change(func(r *api.Route) { r.Body = &api.Body{Schema: "nothing"} }),
		"schema text":             change(func(r *api.Route) { r.Body = &api.Body{Schema: "{"} }),
		"leads to nothing":        change(func(r *api.Route) { r.Body = &api.Body{Schema: `{"$ref":"#/$defs/x"}`} }),
		"has no definition":       change(func(r *api.Route) { r.Body = &api.Body{Schema: `{"$ref":"urn:fermata:schema:v2:ids#/$defs/x"}`} }),
		"query parameter q":       change(func(r *api.Route) { r.Query = []api.Param{{Name: "q", Schema: "nothing"}} }),
		"declared twice":          change(func(r *api.Route) { r.Query = []api.Param{{Name: "q"}, {Name: "q"}} }),
		"a success and a refusal": change(func(r *api.Route) { r.Returns = map[int]api.Response{404: {}} }),
	}
	for want, routes := range cases {
		if _, err := Build(info, routes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := Build(Info{}, []api.Route{good}); err == nil {
		t.Error("a document without a title")
	}
}

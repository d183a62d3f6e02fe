package schema_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/schema"
)

func enumOf(t *testing.T, name, def string) []string {
	t.Helper()
	var out []string
	list, _ := asMap(asMap(parsed(t, name)["$defs"])[def])["enum"].([]any)
	for _, v := range list {
		out = append(out, v.(string))
	}
	if len(out) == 0 {
		t.Fatalf("%s: %s has no enum", name, def)
	}
	return out
}

// Every type this host knows has a payload definition, every indexed definition
// exists, and the envelope lists the same types as the index.
func TestEventTypesAgree(t *testing.T) {
	doc := parsed(t, "run-event-payloads")
	index, defs := asMap(doc["types"]), asMap(doc["$defs"])
	for typ, def := range index {
		if defs[def.(string)] == nil {
			t.Errorf("%s names the missing definition %v", typ, def)
		}
	}
	for _, row := range event.Rows() {
		if index[string(row.Type)] == nil {
			t.Errorf("%s has no payload definition", row.Type)
		}
	}
	indexed := slices.Sorted(maps.Keys(index))
	if listed := enumOf(t, "run-event", "registeredType"); !slices.Equal(listed, indexed) {
		t.Errorf("run-event lists %d types, the index %d", len(listed), len(indexed))
	}
}

func TestErrorCodesAgree(t *testing.T) {
	var want []string
	for _, row := range problem.Rows() {
		want = append(want, string(row.Code))
	}
	slices.Sort(want)
	got := enumOf(t, "error-envelope", "registeredCode")
	for _, code := range want {
		if !slices.Contains(got, code) {
			t.Errorf("error-envelope lacks %s", code)
		}
	}
	for _, code := range got {
		if _, ok := problem.Lookup(problem.Code(code)); !ok {
			t.Errorf("error-envelope has %s, the table does not", code)
		}
	}
}

// What the event package writes is a run event.
func TestEventDocumentsSatisfyTheEnvelope(t *testing.T) {
	for _, s := range samples() {
		for _, e := range []event.Event{s.event(s.minimal), s.event(s.full)} {
			if err := schema.Validate("run-event", e.Doc()); err != nil {
				t.Errorf("%s: %v\n%s", s.typ, err, e.Doc())
			}
		}
	}
}

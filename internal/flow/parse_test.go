package flow_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/flow"
)

func TestParseRefusesWithPlace(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		field string
		line  int
		says  string
	}{
		"nothing":          {"", "", 1, "EOF"},
		"cut off":          {"{\n\"id\": \"a\",\n", "", 3, "EOF"},
		"a list":           {"[]", "", 1, "not allowed here"},
		"null":             {"null", "", 1, "null"},
		"two values":       {"{\n}\n{}", "", 3, "after top-level value"},
		"comma missing":    {"{\n\"id\":\"a\"\n\"x\":1}", "", 3, "invalid character"},
		"not UTF-8":        {"{\n\"id\":\"\xff\"}", "id", 2, "UTF-8"},
		"duplicate member": {"{\n\"id\":\"a\",\n\"id\":\"b\"}", "id", 3, "duplicate"},
		"wrong case":       {"{\n\n\"ID\":\"a\"}", "ID", 3, "unknown member"},
		"unknown member":   {workflow("colour", `"red"`), "colour", 11, "unknown member"},
		"unknown in node":  {workflow("nodes", list(task("a"), task("b", `"colour":1`))), "nodes[1].colour", 7, "unknown member"},
		"unknown in edge":  {workflow("edges", list(edge("e", "a", "a", `"when":1`))), "edges[0].when", 7, "unknown member"},
		"text for a list":  {workflow("nodes", `"a"`), "nodes", 5, "a string is not allowed here"},
		"text for a flag":  {workflow("nodes", list(task("a", "\n\"disabled\":\n\"yes\""))), "nodes[0].disabled", 8, "a string is not allowed here"},
		"broken number":    {workflow("settings", "{\n\"timeout\": 1.5}"), "settings.timeout", 11, "invalid syntax"},
		"large number":     {workflow("settings", "{\n\"timeout\": 99999999999999999999}"), "settings.timeout", 11, "out of range"},
		"null for a list":  {workflow("edges", "null"), "edges", 6, "null"},
		"metadata":         {workflow("metadata", "3"), "metadata", 9, "not allowed here"},
		"metadata's tags":  {workflow("metadata", "{\n\"tags\": 3}"), "metadata.tags", 10, "not allowed here"},
		"custom members":   {workflow("metadata", `{"colour":1,"customProperties":[]}`), "metadata.customProperties", 9, "must be an object"},
		"channel":          {workflow("channels", "{\n\"c\": {\n\"ttlMs\": \"x\"}}"), "channels.c.ttlMs", 13, "not allowed here"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := flow.Parse([]byte(c.text))
			is := issuesOf(t, err)
			if len(is) != 1 || is[0].Field != c.field || is[0].Line != c.line || !strings.Contains(is[0].Message, c.says) {
				t.Errorf("got %+v\nwant %s on line %d: …%s…", is, c.field, c.line, c.says)
			}
		})
	}
}

func TestParseWantsEveryRequiredMember(t *testing.T) {
	for _, name := range []string{"id", "name", "version", "nodes", "edges", "triggers", "variables", "metadata", "settings"} {
		_, _, err := flow.Parse([]byte(workflow(name, "")))
		if is := issuesOf(t, err); len(is) != 1 || is[0].Field != name || is[0].Line != 1 || is[0].Message != "is required" {
			t.Errorf("without %s: %+v", name, is)
		}
	}
	_, _, err := flow.Parse([]byte(workflow("nodes", list(task("a"), `{"id":"b","typeId":"test.task","name":"B"}`))))
	var fields []string
	for _, i := range issuesOf(t, err) {
		fields = append(fields, i.Field)
		if i.Line != 7 {
			t.Errorf("%+v, want line 7", i)
		}
	}
	if want := []string{"nodes[1].position", "nodes[1].config", "nodes[1].inputs"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("fields %v, want %v", fields, want)
	}
}

func TestParseBoundsSize(t *testing.T) {
	nodes := strings.TrimSuffix(strings.Repeat(task("a")+",", flow.MaxNodes+1), ",")
	edges := strings.TrimSuffix(strings.Repeat(edge("e", "a", "a")+",", flow.MaxEdges+1), ",")
	for _, text := range []string{workflow("nodes", "["+nodes+"]"), workflow("edges", "["+edges+"]")} {
		_, _, err := flow.Parse([]byte(text))
		if is := issuesOf(t, err); len(is) != 1 || is[0].Field != "nodes" || is[0].Line != 5 || !strings.Contains(is[0].Message, "at most") {
			t.Errorf("got %+v", is)
		}
	}
}

// Members of metadata that only version 1 of the protocol knew move to where
// version 2 keeps them.
func TestParseAdoptsFreeMetadata(t *testing.T) {
	text := workflow("metadata", `{"team":{"n":12345678901234567890},"createdBy":"ada","customProperties":{"kept":1,"both":2},"both":3}`)
	def, raw, err := flow.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"both":2,"kept":1,"team":{"n":12345678901234567890}}`
	if got := string(def.Metadata.CustomProperties); got != want {
		t.Errorf("customProperties %s, want %s", got, want)
	}
	again, raw2, err := flow.Parse(raw)
	if err != nil || string(raw2) != string(raw) || !reflect.DeepEqual(def, again) {
		t.Errorf("the definition changes when it is read again: %v\n%s\n%s", err, raw, raw2)
	}
}

// What an author wrote keeps its numbers, member order and characters.
func TestParseKeepsBytes(t *testing.T) {
	text := workflow("variables", `[ {"name":"big","type":"number","defaultValue": 123456789012345678901234567890.50} ]`, "description", `"\u2028 <é> \ud83e\udd89"`)
	_, raw, err := flow.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`123456789012345678901234567890.50`, `"\u2028 <é> \ud83e\udd89"`, `{"id":"w","name":"W"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	if w := load(t, text); w.Digest == load(t, workflow()).Digest || w.Digest != load(t, strings.ReplaceAll(text, "\n", "\n  ")).Digest {
		t.Error("the digest must follow the content and not the layout")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		workflow(), workflow("metadata", `{"free":1}`), workflow("nodes", list(task("a"), task("b", `"settings":{"maxRetries":1}`)), "edges",
			list(edge("e", "a", "b", `"condition":{"type":"equals","left":"x","right":1}`))),
		workflow("channels", `{"c":{"reducer":"append"}}`), `{"id":1}`, `[`, workflow("nodes", list(nodeOf("a", "test.sum", `{"of":[1]}`, `{"p":{"type":"static","value":null}}`))),
		workflow("edges", list(edge("e", "a", "a")), "settings", `{"maxLoopbackIterations":2}`),
	} {
		f.Add([]byte(s))
	}
	cat := catalog()
	f.Fuzz(func(t *testing.T, data []byte) {
		def, raw, err := flow.Parse(data)
		if err != nil {
			for _, i := range issuesOf(t, err) {
				if i.Message == "" || i.Line < 0 || i.Line > 1+strings.Count(string(data), "\n") {
					t.Fatalf("issue %+v of %q", i, data)
				}
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q became %q", data, raw)
		}
		again, raw2, err := flow.Parse(raw)
		if err != nil || string(raw2) != string(raw) || !reflect.DeepEqual(def, again) {
			t.Fatalf("the definition changes when it is read again: %v\n%s\n%s", err, raw, raw2)
		}
		w, err := flow.Check(data, cat)
		if err != nil {
			for _, i := range issuesOf(t, err) {
				if i.Message == "" || i.Line < 1 || i.Line > 1+strings.Count(string(data), "\n") {
					t.Fatalf("issue %+v of %q", i, data)
				}
			}
			return
		}
		if len(w.Steps) != len(w.Def.Nodes) || len(w.Order) != len(w.Steps) {
			t.Fatalf("%d steps, %d in order, of %d nodes", len(w.Steps), len(w.Order), len(w.Def.Nodes))
		}
	})
}

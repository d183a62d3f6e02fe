package builtin

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/node"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func allTypes(t *testing.T) []node.Type {
	t.Helper()
	g := egress.New(egress.Options{})
	t.Cleanup(g.Close)
	return All(Deps{Egress: g})
}

func configSchema(t *testing.T, nt node.Type) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(nt.ConfigSchema)))
	if err != nil {
		t.Fatalf("%s: %v", nt.ID, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("urn:config", doc); err != nil {
		t.Fatalf("%s: %v", nt.ID, err)
	}
	s, err := c.Compile("urn:config")
	if err != nil {
		t.Fatalf("%s: %v", nt.ID, err)
	}
	return s
}

func valid(t *testing.T, nt node.Type, config string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(config))
	if err != nil {
		t.Fatalf("%s: %v", nt.ID, err)
	}
	return configSchema(t, nt).Validate(v)
}

func TestEveryTypeIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, nt := range allTypes(t) {
		if seen[nt.ID] || !ids.ValidTypeID(nt.ID) {
			t.Errorf("%s is not a good id", nt.ID)
		}
		seen[nt.ID] = true
		if nt.Run == nil || !strings.HasSuffix(nt.Description, ".") || strings.Count(nt.Description, ". ") > 0 {
			t.Errorf("%s: %q", nt.ID, nt.Description)
		}
		if nt.Pure != (nt.ID != "core.http.request") {
			t.Errorf("%s: pure is %v", nt.ID, nt.Pure)
		}
		configSchema(t, nt)
	}
	if len(seen) != 19 {
		t.Errorf("%d types", len(seen))
	}
}

var section = regexp.MustCompile("(?s)\n### `([^`]+)`\n(.*?)```json\n(.*?)```")

func TestEveryTypeIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{}
	for _, m := range section.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[2], "\n### ") {
			t.Errorf("%s has no example", m[1])
		}
		examples[m[1]] = m[3]
	}
	for _, nt := range allTypes(t) {
		example, ok := examples[nt.ID]
		if !ok {
			t.Errorf("%s is not in docs/nodes.md", nt.ID)
			continue
		}
		delete(examples, nt.ID)
		if err := valid(t, nt, example); err != nil {
			t.Errorf("the example of %s: %v", nt.ID, err)
		}
		if nt.Check == nil {
			continue
		}
		c := node.CheckContext{
			Config:     json.RawMessage(example),
			Expression: func(string, ...string) error { return nil },
		}
		if err := nt.Check(c); err != nil {
			t.Errorf("the example of %s: %v", nt.ID, err)
		}
	}
	for id := range examples {
		t.Errorf("%s is documented, but there is no such type", id)
	}
}

func TestConfigSchemas(t *testing.T) {
	byID := map[string]node.Type{}
	for _, nt := range allTypes(t) {
		byID[nt.ID] = nt
	}
	for _, c := range []struct {
		id, config string
		ok         bool
	}{
		// Configs as workflows of other hosts hold them.
		{"core.noop", `{"nondeterministic":true,"probe":1}`, true},
		{"core.identity", `{"memoryAction":"write-then-read"}`, true},
		{"core.delay", `{"ms":300}`, true},
		{"core.delay", `{"durationMs":3e4}`, true},
		{"core.approvalGate", `{"title":"t","description":"d","actions":["accept","reject"],"profile":"p"}`, true},
		{"core.approvalGate", `{"title":"t","requiredApprovals":3,"rejectionPolicy":"majority","approversList":[]}`, true},
		{"core.clarificationGate", `{"questions":[{"id":"q1","question":"Which?"}]}`, true},
		{"core.interrupt", `{"kind":"external-event","data":{"eventType":"e","correlation":{"a":"b"}},"timeoutMs":60000}`, true},
		{"core.subWorkflow", `{"workflowId":"c","waitForCompletion":true,"onChildFailure":"fail-parent","inputMapping":{"a":"b"}}`, true},
		{"core.channelWrite", `{"channelName":"events","reducer":"append","ttlMs":200,"value":"a"}`, true},
		{"core.fail", `{"code":"c","message":"m"}`, true},
		{"core.flow.if", `{"condition":"a","x-note":"mine"}`, true},
		// Slips that must not pass.
		{"core.delay", `{"delay":1}`, false},
		{"core.delay", `{"delayMs":-1}`, false},
		{"core.approvalGate", `{"title":"t","requiredAprovals":3}`, false},
		{"core.approvalGate", `{"actions":["edit"]}`, false},
		{"core.interrupt", `{"data":{}}`, false},
		{"core.channelWrite", `{"channelName":"a","reducer":"sum"}`, false},
		{"core.flow.if", `{"condition":true}`, false},
		{"core.flow.if", `{"Condition":"a"}`, false},
		{"core.flow.switch", `{"cases":[{"port":"a"}]}`, false},
		{"core.flow.switch", `{"cases":[{"port":"a","equals":1,"when":"b"}]}`, false},
		{"core.flow.filter", `{"items":[]}`, false},
		{"core.flow.map", `{"expression":"a","concurrency":65}`, false},
		{"core.flow.merge", `{"mode":"deep"}`, false},
		{"core.flow.set", `{"variables":{}}`, false},
		{"core.flow.transform", `{"fields":{"":"a"}}`, false},
		{"core.flow.wait", `{"duration":"1D"}`, false},
		{"core.http.request", `{"url":"http://a","method":"TRACE"}`, false},
		{"core.http.request", `{"url":"http://a","headers":{"a":1}}`, false},
		{"core.http.request", `{"url":"http://a","expectStatus":["2xx",404]}`, true},
		{"core.http.request", `{"url":"http://a","expectStatus":"ok"}`, false},
		{"core.subWorkflow", `{}`, false},
	} {
		if err := valid(t, byID[c.id], c.config); (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.id, c.config, err)
		}
	}
}

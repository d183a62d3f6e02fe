package openapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The rewritten schemas still say what the originals say.
func TestComponentsValidate(t *testing.T) {
	b, _ := built(t, table())
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("urn:document", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:document#/components/schemas/run-list-response")
	if err != nil {
		t.Fatal(err)
	}
	snapshot := `{"runId":"acme/0123456789abcdef","workflowId":"w","status":"%s","eventLogSchemaVersion":3,
		"owner":{"tenant":"acme","subject":{"issuer":"i","subjectId":"s","tenant":"acme","lane":"api-key","kind":"user"}}}`
	for status, ok := range map[string]bool{"running": true, "asleep": false} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"runs":[` + fmt.Sprintf(snapshot, status) + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); (err == nil) != ok {
			t.Errorf("%s: %v", status, err)
		}
	}
}

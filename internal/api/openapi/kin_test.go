package openapi

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// A reader of OpenAPI that we did not write loads the document and finds it valid.
func TestAnotherReaderAgrees(t *testing.T) {
	b, _ := built(t, table())
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		t.Fatal(err)
	}
	if !doc.IsOpenAPI31OrLater() {
		t.Error("not read as OpenAPI 3.1")
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
	op := doc.Paths.Find("/runs/{runId}:pause").Post
	if op == nil || op.OperationID != "pauseRun" || op.Parameters.GetByInAndName("path", "runId") == nil {
		t.Errorf("pauseRun = %+v", op)
	}
	if s := doc.Components.Schemas["run-snapshot"]; s == nil || s.Value.Properties["runId"].Value.Pattern == "" {
		t.Error("the schema of a run is not resolved down to its ids")
	}
}

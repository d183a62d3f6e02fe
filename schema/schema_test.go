package schema_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/schema"
)

// shared reads a file of the reference material beside the module, and skips the
// test where there is none.
func shared(t *testing.T, elem ...string) []byte {
	t.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared", "protocol"}, elem...)...)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("no reference material: %s", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parsed returns an embedded schema as a tree.
func parsed(t *testing.T, name string) map[string]any {
	t.Helper()
	b, ok := schema.V2(name)
	if !ok {
		t.Fatalf("no schema %q", name)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return doc
}

func TestEverySchemaCompiles(t *testing.T) {
	names := schema.Names()
	if !slices.IsSorted(names) || len(names) == 0 {
		t.Fatalf("names = %v", names)
	}
	for _, name := range names {
		// A compiler of its own shows that no schema leans on another's having been
		// compiled before it.
		c := schema.Compiler()
		if _, err := c.Compile(schema.Prefix + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		doc := parsed(t, name)
		if got, want := doc["$id"], schema.Prefix+name; got != want {
			t.Errorf("%s: $id = %v, want %v", name, got, want)
		}
		defs, _ := doc["$defs"].(map[string]any)
		for def := range defs {
			if _, err := c.Compile(schema.Prefix + name + "#/$defs/" + def); err != nil {
				t.Errorf("%s: %s: %v", name, def, err)
			}
		}
	}
}

func TestUnknownNames(t *testing.T) {
	if _, ok := schema.V2("nothing"); ok {
		t.Error("V2 knows nothing")
	}
	if _, ok := schema.V2("../embed"); ok {
		t.Error("V2 leaves its folder")
	}
	for _, err := range []error{
		schema.Validate("nothing", []byte(`{}`)),
		schema.ValidateDef("nothing", "x", []byte(`{}`)),
		schema.ValidateDef("ids", "nothing", []byte(`"x"`)),
	} {
		if !errors.Is(err, schema.ErrUnknown) {
			t.Errorf("err = %v, want ErrUnknown", err)
		}
	}
	if err := schema.ValidatePayload("run.strated", []byte(`{}`)); !errors.Is(err, schema.ErrUnknownType) {
		t.Errorf("err = %v, want ErrUnknownType", err)
	}
	if err := schema.ValidatePayload("example.thing", []byte(`[1]`)); err != nil {
		t.Errorf("a vendor's payload: %v", err)
	}
	if err := schema.ValidatePayload("example.thing", []byte(`[1`)); err == nil {
		t.Error("a vendor's payload may be broken JSON")
	}
}

func TestNoRemoteReferences(t *testing.T) {
	c := schema.Compiler()
	if err := c.AddResource("urn:test", map[string]any{"$ref": "https://example.com/x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("urn:test"); err == nil || !strings.Contains(err.Error(), "not followed") {
		t.Errorf("err = %v", err)
	}
}

func TestCollectionsOfDefinitionsDescribeNothing(t *testing.T) {
	for _, name := range []string{"ids", "run-event-payloads"} {
		if schema.Validate(name, []byte(`{}`)) == nil {
			t.Errorf("%s accepts a document", name)
		}
	}
}

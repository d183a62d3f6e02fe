package openapi

import (
	"fmt"
	"strings"

	"github.com/fermata-run/fermata/schema"
	"github.com/go-json-experiment/json"
)

// collector gathers the schemas a document needs, each under a name of its own:
// a whole schema as "run-event", a definition of one as "ids.runId". Readers of
// OpenAPI know such names; few follow a pointer into the middle of a schema.
type collector struct {
	out map[string]any
}

// use returns what a route's row means by a schema: JSON text as it is, a name as
// a reference to the component it becomes.
func (c *collector) use(src string) (any, error) {
	if !strings.HasPrefix(src, "{") {
		return c.ref(src, "")
	}
	var node any
	if err := json.Unmarshal([]byte(src), &node); err != nil {
		return nil, fmt.Errorf("schema text: %w", err)
	}
	return c.rewrite(node, "")
}

// ref makes a component of a schema, or of one definition of it, and of all it
// refers to; it returns a reference to it.
func (c *collector) ref(name, def string) (any, error) {
	key := name
	if def != "" {
		key += "." + def
	}
	ref := map[string]any{"$ref": "#/components/schemas/" + key}
	if _, done := c.out[key]; done {
		return ref, nil
	}
	node, err := load(name, def)
	if err != nil {
		return nil, err
	}
	c.out[key] = nil // a schema may lead back to itself
	component, err := c.rewrite(node, name)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", key, err)
	}
	c.out[key] = component
	return ref, nil
}

// load reads a schema without what only a file of its own needs.
func load(name, def string) (map[string]any, error) {
	text, ok := schema.V2(name)
	if !ok {
		return nil, fmt.Errorf("no schema is called %q", name)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	if def != "" {
		defs, _ := root["$defs"].(map[string]any)
		node, ok := defs[def].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("schema %s has no definition %q", name, def)
		}
		return node, nil
	}
	for _, key := range []string{"$schema", "$id", "$defs", "types"} {
		delete(root, key)
	}
	return root, nil
}

// rewrite copies a schema with its references led to components. Origin is the
// schema it comes from; empty for text of a route.
func (c *collector) rewrite(node any, origin string) (any, error) {
	switch n := node.(type) {
	case []any:
		out := make([]any, len(n))
		for i, v := range n {
			var err error
			if out[i], err = c.rewrite(v, origin); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(n))
		for key, v := range n {
			w, err := c.member(key, v, origin)
			if err != nil {
				return nil, err
			}
			out[key] = w
		}
		return out, nil
	}
	return node, nil
}

func (c *collector) member(key string, v any, origin string) (any, error) {
	switch key {
	case "const", "enum", "default", "examples":
		return v, nil // values, whatever they look like
	case "$ref":
		if target, ok := v.(string); ok {
			return c.target(target, origin)
		}
	}
	return c.rewrite(v, origin)
}

func (c *collector) target(ref, origin string) (any, error) {
	name, def, inside := strings.Cut(ref, "#/$defs/")
	switch {
	case strings.HasPrefix(name, schema.Prefix):
		name = strings.TrimPrefix(name, schema.Prefix)
	case name == "" && inside && origin != "":
		name = origin
	default:
		return nil, fmt.Errorf("reference %q leads to nothing we have", ref)
	}
	component, err := c.ref(name, def)
	if err != nil {
		return nil, err
	}
	return component.(map[string]any)["$ref"], nil
}

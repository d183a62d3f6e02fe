package jsonschema

import "github.com/santhosh-tekuri/jsonschema/v6"

// here are the schemas that s applies to the value that s itself is applied to.
func here(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		out = append(out, s.DynamicRef.Ref)
	}
	out = append(out, s.AllOf...)
	out = append(out, s.AnyOf...)
	out = append(out, s.OneOf...)
	for _, sub := range s.DependentSchemas {
		out = append(out, sub)
	}
	for _, sub := range s.Dependencies {
		out = append(out, schemaOf(sub)...)
	}
	return present(out)
}

// below are the schemas that s applies to the children of its value. Each child
// meets at most once each of those in some, and all of those in every.
func below(s *jsonschema.Schema) (one, every []*jsonschema.Schema) {
	for _, sub := range s.Properties {
		one = append(one, sub)
	}
	one = append(one, s.PrefixItems...)
	one = append(one, schemaOf(s.AdditionalProperties)...)
	one = append(one, schemaOf(s.Items)...)
	one = append(one, schemaOf(s.AdditionalItems)...)
	one = append(one, s.Items2020)
	for _, sub := range s.PatternProperties {
		every = append(every, sub)
	}
	every = append(every, s.PropertyNames, s.Contains, s.UnevaluatedItems, s.UnevaluatedProperties, s.ContentSchema)
	return present(one), present(every)
}

// schemaOf reads the fields that hold a schema, several, or something else.
func schemaOf(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

func present(list []*jsonschema.Schema) []*jsonschema.Schema {
	out := list[:0]
	for _, s := range list {
		if s != nil {
			out = append(out, s)
		}
	}
	return out
}

// reachable lists every schema that validation with the roots can come to.
func reachable(roots []*jsonschema.Schema) []*jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{}
	var list []*jsonschema.Schema
	add := func(schemas []*jsonschema.Schema) {
		for _, s := range schemas {
			if !seen[s] {
				seen[s] = true
				list = append(list, s)
			}
		}
	}
	add(roots)
	for i := 0; i < len(list); i++ {
		one, every := below(list[i])
		add(here(list[i]))
		add(one)
		add(every)
	}
	return list
}

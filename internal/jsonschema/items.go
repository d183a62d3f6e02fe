package jsonschema

import (
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// firstBad applies a schema to the elements of an array, from one on, and stops
// at the first that breaks it. The validator itself goes on, and keeps some 400
// bytes of every element that is wrong: a megabyte of [1,1,…] where strings were
// wanted came to 250.
type firstBad struct {
	schema *jsonschema.Schema
	from   int
}

// stopEarly replaces the validator's own loop over an array's elements.
func stopEarly(s *jsonschema.Schema) {
	var bad firstBad
	if all, ok := s.Items.(*jsonschema.Schema); ok {
		bad.schema, s.Items = all, nil
	} else if s.Items2020 != nil {
		bad.schema, bad.from, s.Items2020 = s.Items2020, len(s.PrefixItems), nil
	}
	if bad.schema != nil {
		s.Extensions = append(s.Extensions, bad)
	}
}

// Validate implements jsonschema.SchemaExt.
func (b firstBad) Validate(ctx *jsonschema.ValidatorContext, v any) {
	list, ok := v.([]any)
	if !ok {
		return
	}
	for i := b.from; i < len(list); i++ {
		if err := ctx.Validate(b.schema, list[i], []string{strconv.Itoa(i)}); err != nil {
			ctx.AddErr(err)
			return
		}
	}
}

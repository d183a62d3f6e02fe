package jsonschema

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkOut refuses a schema that applies itself, or too much, to one value. It
// goes through the schemas in the order of their places, to name the same one
// every time. It returns how deep the schemas of one value are within each other.
func checkOut(all []*jsonschema.Schema, doc any) (height int, err error) {
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return cmp.Compare(a.Location, b.Location) })
	c := counter{counted: map[*jsonschema.Schema]extent{}}
	for _, s := range all {
		e, loop := c.count(s)
		place := func(s *jsonschema.Schema) string { return placeOf(s.Location, doc) }
		switch {
		case loop != nil:
			return 0, &Error{place(loop), "applies itself to the same value, without end"}
		case e.checks > maxChecks:
			return 0, &Error{place(s), fmt.Sprintf("comes to more than %d checks of one value", maxChecks)}
		case e.height > maxHeight:
			return 0, &Error{place(s), fmt.Sprintf("puts more than %d schemas within each other on one value", maxHeight)}
		}
		height = max(height, e.height)
	}
	return height, nil
}

// counter adds up what each schema does to one value, by itself and by the
// schemas that it applies to that same value.
type counter struct {
	counted map[*jsonschema.Schema]extent
}

// extent is zero while its schema is being counted, and counts no further than
// just above the limits.
type extent struct{ checks, height int }

// count returns the extent of s, or the schema that a loop comes back to.
func (c *counter) count(s *jsonschema.Schema) (e extent, loop *jsonschema.Schema) {
	if e, ok := c.counted[s]; ok {
		if e.height == 0 {
			return e, s
		}
		return e, nil
	}
	c.counted[s] = extent{}
	e = extent{checks: ownChecks(s)}
	for _, sub := range here(s) {
		inner, loop := c.count(sub)
		if loop != nil {
			return e, loop
		}
		e.checks = min(e.checks+inner.checks, maxChecks+1)
		e.height = max(e.height, inner.height)
	}
	e.height++
	c.counted[s] = e
	return e, nil
}

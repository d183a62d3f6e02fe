package jsonschema

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checkOut refuses a schema that applies itself, or too much, to one value. It
// goes through the schemas in the order of their places, to name the same one
// every time.
func checkOut(all []*jsonschema.Schema, doc any) error {
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return cmp.Compare(a.Location, b.Location) })
	c := counter{checks: map[*jsonschema.Schema]int{}}
	for _, s := range all {
		n, loop := c.count(s)
		if loop != nil {
			return &Error{placeOf(loop.Location, doc), "applies itself to the same value, without end"}
		}
		if n > maxChecks {
			return &Error{placeOf(s.Location, doc), fmt.Sprintf("comes to more than %d checks of one value", maxChecks)}
		}
	}
	return nil
}

// counter adds up the checks that each schema makes of one value, its own and
// those of the schemas it applies to that same value.
type counter struct {
	checks map[*jsonschema.Schema]int // unfinished while a schema is being counted
}

const unfinished = -1

// count returns the sum for s, up to just above maxChecks, or the schema that a
// loop comes back to.
func (c *counter) count(s *jsonschema.Schema) (n int, loop *jsonschema.Schema) {
	if n, ok := c.checks[s]; ok {
		if n == unfinished {
			return 0, s
		}
		return n, nil
	}
	c.checks[s] = unfinished
	n = ownChecks(s)
	for _, sub := range here(s) {
		m, loop := c.count(sub)
		if loop != nil {
			return 0, loop
		}
		n = min(n+m, maxChecks+1)
	}
	c.checks[s] = n
	return n, nil
}

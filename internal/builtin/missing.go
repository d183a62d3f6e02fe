package builtin

import (
	"context"

	"github.com/fermata-run/fermata/node"
)

// requiresMissing exists for the protocol's own tests: a node that needs what no
// host has must never start.
func requiresMissing() node.Type {
	const capability = "conformance.never-provided"
	return node.Type{
		ID:           "conformance.requiresMissing",
		Description:  "Needs a capability that no host provides; for tests of the host.",
		Pure:         true,
		Requires:     []string{capability},
		ConfigSchema: open(""),
		Run: func(context.Context, *node.Input) (node.Result, error) {
			e := node.Fail("capability_not_provided", "this host does not provide %s", capability)
			e.Details = map[string]any{"requiredCapability": capability}
			return node.Result{}, e
		},
	}
}

package builtin

import (
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/node"
)

// Deps is what the built-in nodes need from outside.
type Deps struct {
	// Egress is the way out. Without it the node types that call out are left
	// out, so that a workflow using them is refused rather than broken.
	Egress *egress.Guard
}

// All returns every built-in node type that can work with deps.
func All(deps Deps) []node.Type {
	types := []node.Type{
		noop(), identity(), delay(), fail(), requiresMissing(),
		approvalGate(), clarificationGate(), interrupt(),
		subWorkflow(), channelWrite(),
		flowIf(), flowSwitch(), flowFilter(), flowMerge(), flowMap(),
		flowWait(), flowTransform(), flowSet(),
	}
	if deps.Egress != nil {
		types = append(types, httpRequest(deps.Egress))
	}
	return types
}

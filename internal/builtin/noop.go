package builtin

import (
	"context"

	"github.com/fermata-run/fermata/node"
)

func noop() node.Type {
	return node.Type{
		ID:           "core.noop",
		Description:  "Does nothing and completes.",
		Pure:         true,
		ConfigSchema: open(""),
		Run:          func(context.Context, *node.Input) (node.Result, error) { return node.Done(nil), nil },
	}
}

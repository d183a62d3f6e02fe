package builtin

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

type ifConfig struct {
	Condition string `json:"condition"`
}

func flowIf() node.Type {
	return node.Type{
		ID:           "core.flow.if",
		Description:  "Takes the branch true or the branch false.",
		Pure:         true,
		ConfigSchema: closed(`"condition":` + expressionType),
		Check: func(c node.CheckContext) error {
			var cfg ifConfig
			if err := declared(c, &cfg); err != nil || cfg.Condition == "" {
				return err // a port may bring the condition's value
			}
			return compiles(c, "config.condition", cfg.Condition)
		},
		Ports: func(json.RawMessage) node.Ports {
			return node.Ports{Outputs: []string{"result"}, Branches: []string{"true", "false"}}
		},
		Run: runIf,
	}
}

func runIf(_ context.Context, in *node.Input) (node.Result, error) {
	holds, err := condition(in)
	if err != nil {
		return node.Result{}, err
	}
	port := "false"
	if holds {
		port = "true"
	}
	return node.Done(node.Outputs{"result": holds}).Take(port), nil
}

func condition(in *node.Input) (bool, error) {
	if v, ok := in.Inputs["condition"]; ok {
		return asBool("inputs.condition", v)
	}
	var cfg ifConfig
	if err := settings(in, &cfg); err != nil {
		return false, err
	}
	if cfg.Condition == "" {
		return false, badMember("condition", "is missing: give an expression or an input port")
	}
	return newScope(in).truth("config.condition", cfg.Condition, nil)
}

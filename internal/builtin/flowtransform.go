package builtin

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

type transformConfig struct {
	Expression string            `json:"expression"`
	Fields     map[string]string `json:"fields"`
}

func flowTransform() node.Type {
	return node.Type{
		ID:          "core.flow.transform",
		Description: "Computes outputs with expressions.",
		Pure:        true,
		ConfigSchema: closed(`"expression":` + expressionType + `,"fields":{"type":"object","minProperties":1,` +
			`"maxProperties":200,"propertyNames":` + nameType + `,"additionalProperties":` + expressionType + `}`),
		Check: func(c node.CheckContext) error {
			var cfg transformConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			if err := cfg.check(); err != nil {
				return err
			}
			if cfg.Fields != nil {
				return checkFields(c, "fields", cfg.Fields)
			}
			return compiles(c, "config.expression", cfg.Expression)
		},
		Ports: putsFields("fields", "output"),
		Run:   runTransform,
	}
}

func (cfg *transformConfig) check() error {
	if (cfg.Expression != "") == (cfg.Fields != nil) {
		return badMember("config", "must have either expression or fields")
	}
	return nil
}

func runTransform(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg transformConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	if cfg.Fields != nil {
		out, err := evalFields(in, "fields", cfg.Fields)
		return node.DoneRaw(out), err
	}
	v, err := newScope(in).eval("config.expression", cfg.Expression, nil)
	if err != nil {
		return node.Result{}, err
	}
	return node.DoneRaw(map[string]json.RawMessage{"output": v}), nil
}

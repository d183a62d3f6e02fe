package builtin

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

type setConfig struct {
	Variables map[string]string `json:"variables"`
}

const maxFields = 200

func flowSet() node.Type {
	return node.Type{
		ID:          "core.flow.set",
		Description: "Sets variables of the run.",
		Pure:        true,
		ConfigSchema: closed(`"variables":{"type":"object","minProperties":1,"maxProperties":200,`+
			`"propertyNames":`+nameType+`,"additionalProperties":`+expressionType+`}`, "variables"),
		Check: func(c node.CheckContext) error {
			var cfg setConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			return checkFields(c, "variables", cfg.Variables)
		},
		Ports: putsFields("variables"),
		Run:   runSet,
	}
}

// checkFields checks a map from name to expression when a workflow is
// registered.
func checkFields(c node.CheckContext, field string, fields map[string]string) error {
	if err := countFields(field, fields); err != nil {
		return err
	}
	for _, name := range sortedKeys(fields) {
		if err := compiles(c, "config."+field+"."+name, fields[name]); err != nil {
			return err
		}
	}
	return nil
}

func countFields(field string, fields map[string]string) error {
	if len(fields) == 0 || len(fields) > maxFields {
		return badMember(field, "must hold 1 to %d members", maxFields)
	}
	if _, ok := fields[""]; ok {
		return badMember(field, "has a member without a name")
	}
	return nil
}

// evalFields evaluates a map from name to expression, in the order of names.
func evalFields(in *node.Input, field string, fields map[string]string) (map[string]json.RawMessage, error) {
	if err := countFields(field, fields); err != nil {
		return nil, err
	}
	s := newScope(in)
	out := make(map[string]json.RawMessage, len(fields))
	for _, name := range sortedKeys(fields) {
		v, err := s.eval("config."+field+"."+name, fields[name], nil)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// runSet evaluates everything before it sets anything: each expression sees the
// variables as they were.
func runSet(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg setConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	values, err := evalFields(in, "variables", cfg.Variables)
	if err != nil {
		return node.Result{}, err
	}
	for _, name := range sortedKeys(values) {
		if err := in.SetVariable(name, values[name]); err != nil {
			return node.Result{}, err
		}
	}
	return node.DoneRaw(values), nil
}

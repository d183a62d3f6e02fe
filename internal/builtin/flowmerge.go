package builtin

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

type mergeConfig struct {
	Mode string `json:"mode"`
}

func flowMerge() node.Type {
	return node.Type{
		ID:           "core.flow.merge",
		Description:  "Combines what arrives at its input ports into one value.",
		Pure:         true,
		ConfigSchema: closed(`"mode":{"enum":["object","array","first"]}`),
		Check: func(c node.CheckContext) error {
			var cfg mergeConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			return cfg.check()
		},
		Ports: puts("output"),
		Run:   runMerge,
	}
}

func (cfg *mergeConfig) check() (err error) {
	cfg.Mode, err = choice("mode", cfg.Mode, "object", "object", "array", "first")
	return err
}

func runMerge(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg mergeConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	output := orNull(nil)
	var err error
	switch ports := sortedKeys(in.Inputs); cfg.Mode {
	case "object":
		output, err = mergeObjects(in, ports)
	case "array":
		list := make([]json.RawMessage, len(ports))
		for i, name := range ports {
			list[i] = in.Inputs[name]
		}
		output = array(list)
	case "first":
		for _, name := range ports {
			if v := in.Inputs[name]; !absent(v) {
				output = v
				break
			}
		}
	}
	if err != nil {
		return node.Result{}, err
	}
	return node.DoneRaw(map[string]json.RawMessage{"output": output}), nil
}

// mergeObjects lays the ports over one another in the order of their names. A
// port that is null adds nothing.
func mergeObjects(in *node.Input, ports []string) (json.RawMessage, error) {
	var out object
	at := map[string]int{}
	for _, name := range ports {
		v := in.Inputs[name]
		if absent(v) {
			continue
		}
		o, err := members(v)
		if err != nil {
			return nil, badMember("inputs."+name, "must be an object to be merged, not %s", kind(v))
		}
		for _, p := range o {
			if i, ok := at[p.name]; ok {
				out[i].value = p.value
				continue
			}
			at[p.name] = len(out)
			out = append(out, p)
		}
	}
	return out.raw(), nil
}

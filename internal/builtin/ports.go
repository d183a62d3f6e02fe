package builtin

import (
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

// puts is the Ports of a type whose outputs have the same names in every node.
func puts(outputs ...string) func(json.RawMessage) node.Ports {
	return func(json.RawMessage) node.Ports { return node.Ports{Outputs: outputs} }
}

// putsFields is the Ports of a type that puts out one output for each member of
// a map in its config, or others where the config has no such map.
func putsFields(member string, others ...string) func(json.RawMessage) node.Ports {
	return func(config json.RawMessage) node.Ports {
		var cfg map[string]json.RawMessage
		if json.Unmarshal(config, &cfg) != nil {
			return node.Ports{}
		}
		var fields map[string]json.RawMessage
		if raw, ok := cfg[member]; !ok {
			return node.Ports{Outputs: others}
		} else if json.Unmarshal(raw, &fields) != nil {
			return node.Ports{}
		}
		return node.Ports{Outputs: append([]string{}, sortedKeys(fields)...)}
	}
}

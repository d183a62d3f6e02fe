package host

import (
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maskDefaults hides the default values of sensitive variables. A definition that
// has none is returned as it is, byte by byte.
func maskDefaults(definition []byte) ([]byte, bool, error) {
	var whole map[string]jsontext.Value
	if err := json.Unmarshal(definition, &whole); err != nil {
		return nil, false, problem.Internal(err)
	}
	var vars []map[string]jsontext.Value
	if v := whole["variables"]; v != nil {
		if err := json.Unmarshal(v, &vars); err != nil {
			return nil, false, problem.Internal(err)
		}
	}
	masked := false
	for _, v := range vars {
		if v["defaultValue"] != nil && string(v["sensitive"]) == "true" {
			v["defaultValue"] = jsontext.Value(run.Redacted)
			masked = true
		}
	}
	if !masked {
		return definition, false, nil
	}
	keep := json.JoinOptions(json.Deterministic(true), jsontext.PreserveRawStrings(true))
	list, err := json.Marshal(vars, keep)
	if err == nil {
		whole["variables"] = list
		definition, err = json.Marshal(whole, keep)
	}
	if err != nil {
		return nil, false, problem.Internal(err)
	}
	return definition, true, nil
}

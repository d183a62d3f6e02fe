package v1

import (
	"errors"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// places say where a key of v1's flat configurable stands in this major's nested one
// (v1 run-options.md). A key that is not here is the workflow's own.
var places = map[string]string{
	"recursionLimit":           "run.recursionLimit",
	"runTimeoutMs":             "run.runTimeoutMs",
	"maxLoopIterations":        "run.maxLoopIterations",
	"escalationThreshold":      "run.escalationThreshold",
	"model":                    "ai.model",
	"ai.model":                 "ai.model",
	"ai.provider":              "ai.provider",
	"ai.credentialRef":         "ai.credentialRef",
	"temperature":              "ai.temperature",
	"maxTokens":                "ai.maxTokens",
	"promptOverrides":          "ai.promptOverrides",
	"mockProvider":             "ai.mockProvider",
	"reasoningVerbosity":       "ai.reasoningVerbosity",
	"distillation.tokenBudget": "distillation.tokenBudget",
	"budget":                   "budget",
}

// passed is the extension under which the workflow's own keys travel.
const passed = "v1"

// nested writes v1's flat configurable in this major's form. Keys that v1 does not
// reserve pass through, as v1 says.
func nested(flat jsontext.Value) (jsontext.Value, error) {
	if len(flat) == 0 {
		return nil, nil
	}
	var in map[string]jsontext.Value
	if flat.Kind() != '{' || json.Unmarshal(flat, &in) != nil {
		return nil, problem.Invalid("configurable", "must be an object")
	}
	if a, b := in["model"], in["ai.model"]; a != nil && b != nil && string(a) != string(b) {
		return nil, problem.Invalid("configurable.ai.model", "is another name of model, and says something else")
	}
	out := map[string]map[string]jsontext.Value{}
	put := func(group, key string, v jsontext.Value) {
		if out[group] == nil {
			out[group] = map[string]jsontext.Value{}
		}
		out[group][key] = v
	}
	root := map[string]any{"version": 1}
	for key, v := range in {
		if key == "reasoningVerbosity" && string(v) == `"off"` {
			v = jsontext.Value(`"none"`)
		}
		at, reserved := places[key]
		group, member, deep := strings.Cut(at, ".")
		switch {
		case !reserved:
			put("", key, v)
		case !deep:
			root[at] = v
		default:
			put(group, member, v)
		}
	}
	if own := out[""]; own != nil {
		delete(out, "")
		root["extensions"] = map[string]any{passed: own}
	}
	for group, members := range out {
		root[group] = members
	}
	return event.Encode(root), nil
}

// flat writes this major's configurable as v1 does; what v1 has no key for is left out.
func flat(nested jsontext.Value) jsontext.Value {
	if len(nested) == 0 {
		return nil
	}
	var in map[string]jsontext.Value
	if json.Unmarshal(nested, &in) != nil {
		return nil
	}
	out := map[string]jsontext.Value{}
	for key, at := range places {
		group, member, deep := strings.Cut(at, ".")
		v := in[group]
		if deep {
			var members map[string]jsontext.Value
			_ = json.Unmarshal(v, &members)
			v = members[member]
		}
		if v == nil || key == "ai.model" { // that is model, once more
			continue
		}
		if key == "reasoningVerbosity" && string(v) == `"none"` {
			v = jsontext.Value(`"off"`)
		}
		out[key] = v
	}
	var ext map[string]map[string]jsontext.Value
	_ = json.Unmarshal(in["extensions"], &ext)
	for key, v := range ext[passed] {
		out[key] = v
	}
	return event.Encode(out)
}

// inFlat names the field a refusal is about as v1's caller wrote it.
func inFlat(err error) error {
	var p *problem.Error
	if !errors.As(err, &p) {
		return err
	}
	field, _ := p.Details["field"].(string)
	head, rest, ok := strings.Cut(field, "configurable.")
	if !ok {
		return err
	}
	rest = strings.TrimPrefix(rest, "extensions."+passed+".")
	for key, at := range places {
		if at == rest && key != "ai.model" {
			rest = key
			break
		}
	}
	return p.With("field", head+"configurable."+rest)
}

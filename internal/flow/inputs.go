package flow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// CheckInputs holds a run's inputs against the workflow's variables, whoever
// starts the run. It names the first input that is wrong and says why; an empty
// reason means that all are right. Inputs of no variable are the nodes' affair.
func (w *Workflow) CheckInputs(in map[string]jsontext.Value) (name, reason string) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if _, channel := w.Def.Channels[name]; channel {
			return name, "is a channel of the workflow and cannot be given as input"
		}
		if decl, ok := w.Variable(name); ok && !decl.Accepts(in[name]) {
			return name, fmt.Sprintf("must be of type %s", decl.Type)
		}
	}
	for i := range w.Def.Variables {
		v := &w.Def.Variables[i]
		given, ok := in[v.Name]
		if v.Required && len(v.DefaultValue) == 0 && (!ok || given.Kind() == 'n') {
			return v.Name, "is required"
		}
	}
	return "", ""
}

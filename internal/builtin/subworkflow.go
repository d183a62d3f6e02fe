package builtin

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"

	"github.com/fermata-run/fermata/node"
)

type subConfig struct {
	WorkflowID            string            `json:"workflowId"`
	WaitForCompletion     *bool             `json:"waitForCompletion"`
	OnChildFailure        string            `json:"onChildFailure"`
	InputMapping          map[string]string `json:"inputMapping"`
	OutputMapping         map[string]string `json:"outputMapping"`
	PropagateCancellation *bool             `json:"propagateCancellation"`
}

func subWorkflow() node.Type {
	return node.Type{
		ID:          "core.subWorkflow",
		Description: "Runs another workflow and waits for it.",
		Pure:        true,
		ConfigSchema: closed(`"workflowId":`+nameType+`,"waitForCompletion":{"type":"boolean"},`+
			`"onChildFailure":{"enum":["fail-parent","absorb"]},"inputMapping":`+namesType+`,"outputMapping":`+namesType+
			`,"propagateCancellation":{"type":"boolean"}`, "workflowId"),
		Check: func(c node.CheckContext) error {
			var cfg subConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			return cfg.check()
		},
		Ports: puts("childRunId", "childStatus", "outputs", "error"),
		Run:   runSubWorkflow,
	}
}

func (cfg *subConfig) check() error {
	if cfg.WorkflowID == "" {
		return badMember("workflowId", "is missing")
	}
	if cfg.WaitForCompletion != nil && !*cfg.WaitForCompletion {
		return badMember("waitForCompletion", "cannot be false: this host waits for every child it starts. "+
			"To let a child live on after its parent is cancelled, set propagateCancellation to false")
	}
	var err error
	cfg.OnChildFailure, err = choice("onChildFailure", cfg.OnChildFailure, "fail-parent", "fail-parent", "absorb")
	return err
}

func runSubWorkflow(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg subConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	if in.Wake == nil {
		return node.Await(nil, node.Child{
			WorkflowID: cfg.WorkflowID,
			Inputs:     cfg.inputs(in),
			Key:        attemptKey(in),
			Detached:   cfg.PropagateCancellation != nil && !*cfg.PropagateCancellation,
		}), nil
	}
	i := ownChild(in)
	if i < 0 {
		return node.Result{}, node.Fail(node.CodeInternal, "the node was woken without its child run")
	}
	if !in.Wake.Children[i].Ended {
		return node.Await(nil), nil
	}
	child, err := outcome(in.Wake, i)
	if err != nil {
		return node.Result{}, err
	}
	return cfg.finish(in, child)
}

// attemptKey marks the child of this attempt: a retried node is shown the
// children of its earlier attempts too.
func attemptKey(in *node.Input) string { return strconv.Itoa(in.Attempt) }

func ownChild(in *node.Input) int {
	for i := len(in.Wake.Children) - 1; i >= 0; i-- {
		if in.Wake.Children[i].Key == attemptKey(in) {
			return i
		}
	}
	return -1
}

// outcome is child i with what it came to, which the host hands out on demand
// where there are many children.
func outcome(w *node.Wake, i int) (node.ChildResult, error) {
	c := w.Children[i]
	if w.Load == nil || c.Outputs != nil || c.Variables != nil || c.Error != nil {
		return c, nil
	}
	return w.Load(i)
}

// inputs are the child's: the node's own ports, and over them the mapped
// variables. A variable that is not set contributes nothing, so that the child's
// own default stands.
func (cfg *subConfig) inputs(in *node.Input) map[string]json.RawMessage {
	out := maps.Clone(in.Inputs)
	if out == nil {
		out = map[string]json.RawMessage{}
	}
	maps.Copy(out, mapped(in, cfg.InputMapping))
	return out
}

// mapped reads variables by a mapping from new name to variable name.
func mapped(in *node.Input, mapping map[string]string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, variable := range mapping {
		if v, ok := in.Variables[variable]; ok && len(v) > 0 {
			out[name] = v
		}
	}
	return out
}

func (cfg *subConfig) finish(in *node.Input, child node.ChildResult) (node.Result, error) {
	out := map[string]json.RawMessage{
		"childRunId":  quote(child.RunID),
		"childStatus": quote(child.Status),
		"outputs":     outputsOf(child),
	}
	if child.Status != "completed" {
		e := childError(child)
		if cfg.OnChildFailure == "fail-parent" {
			return node.Result{}, e
		}
		out["error"] = errorValue(e)
		return node.DoneRaw(out), nil
	}
	for _, variable := range sortedKeys(cfg.OutputMapping) {
		v, ok := child.Variables[cfg.OutputMapping[variable]]
		if !ok || len(v) == 0 {
			continue
		}
		if err := in.SetVariable(variable, v); err != nil {
			return node.Result{}, err
		}
	}
	return node.DoneRaw(out), nil
}

func outputsOf(child node.ChildResult) json.RawMessage {
	if absent(child.Outputs) {
		return json.RawMessage("{}")
	}
	return child.Outputs
}

// childError is the parent's failure for a child that failed or was cancelled.
// The child had its own retries, so the parent is not retried for it.
func childError(child node.ChildResult) *node.Error {
	e := &node.Error{Code: node.CodeInternal, Message: "The child run ended as " + child.Status + "."}
	if child.Error != nil {
		e.Code, e.Message = child.Error.Code, child.Error.Message
		e.Details = maps.Clone(child.Error.Details)
	}
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details["childRunId"] = child.RunID
	return e
}

func errorValue(e *node.Error) json.RawMessage {
	o := object{{"code", quote(e.Code)}, {"message", quote(e.Message)}}
	if details, err := json.Marshal(e.Details); err == nil && len(e.Details) > 0 {
		o.set("details", details)
	}
	return o.raw()
}

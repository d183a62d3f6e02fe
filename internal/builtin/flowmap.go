package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/fermata-run/fermata/node"
)

type mapConfig struct {
	Items         json.RawMessage   `json:"items"`
	Expression    string            `json:"expression"`
	WorkflowID    string            `json:"workflowId"`
	InputMapping  map[string]string `json:"inputMapping"`
	Concurrency   number            `json:"concurrency"`
	OnItemFailure string            `json:"onItemFailure"`
}

func flowMap() node.Type {
	return node.Type{
		ID:          "core.flow.map",
		Description: "Does the same to every item of a list, with an expression or with a child run each.",
		Pure:        true,
		ConfigSchema: closed(`"items":` + itemsType + `,"expression":` + expressionType + `,"workflowId":` + nameType +
			`,"inputMapping":` + namesType + `,"concurrency":{"type":"integer","minimum":1,"maximum":64},` +
			`"onItemFailure":{"enum":["fail","collect"]}`),
		Check: func(c node.CheckContext) error {
			var cfg mapConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			if err := cfg.check(); err != nil {
				return err
			}
			if err := checkItems(c, cfg.Items); err != nil || cfg.Expression == "" {
				return err
			}
			return compiles(c, "config.expression", cfg.Expression, "item", "index")
		},
		Ports: puts("results", "count", "errors"),
		Run:   runMap,
	}
}

func (cfg *mapConfig) check() error {
	if (cfg.Expression != "") == (cfg.WorkflowID != "") {
		return badMember("config", "must have either expression or workflowId")
	}
	if _, err := cfg.Concurrency.whole("concurrency", 4, 1, 64); err != nil {
		return err
	}
	var err error
	cfg.OnItemFailure, err = choice("onItemFailure", cfg.OnItemFailure, "fail", "fail", "collect")
	return err
}

func runMap(ctx context.Context, in *node.Input) (node.Result, error) {
	if m := atHand(in); m != nil {
		return m.cfg.goOn(in, m)
	}
	var cfg mapConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	if cfg.WorkflowID != "" {
		return cfg.runChildren(in)
	}
	s := newScope(in)
	list, err := s.items(cfg.Items)
	if err != nil {
		return node.Result{}, err
	}
	var found mapResults
	for i, item := range list {
		if ctx.Err() != nil {
			return node.Result{}, ctx.Err()
		}
		v, err := s.eval("config.expression", cfg.Expression, names{"item": item, "index": position(i)})
		if err == nil {
			found.add(v)
			continue
		}
		if cfg.OnItemFailure == "fail" {
			return node.Result{}, atIndex(err, i)
		}
		found.fail(i, asNodeError(err))
	}
	return found.done(), nil
}

// mapResults gathers results in the order of the items. A failed item leaves a
// null in its place.
type mapResults struct{ results, errors []json.RawMessage }

func (m *mapResults) add(v json.RawMessage) { m.results = append(m.results, v) }

func (m *mapResults) fail(i int, e *node.Error) {
	o := object{{"index", position(i)}, {"code", quote(e.Code)}, {"message", quote(e.Message)}}
	if id, ok := e.Details["childRunId"].(string); ok {
		o.set("childRunId", quote(id))
	}
	m.results = append(m.results, nil)
	m.errors = append(m.errors, o.raw())
}

func (m *mapResults) done() node.Result {
	out := map[string]json.RawMessage{"results": array(m.results), "count": position(len(m.results))}
	if len(m.errors) > 0 {
		out["errors"] = array(m.errors)
	}
	return node.DoneRaw(out)
}

// atIndex adds to a failure which item it was.
func atIndex(err error, i int) error {
	e := *asNodeError(err)
	e.Details = maps.Clone(e.Details)
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details["index"] = i
	return &e
}

func asNodeError(err error) *node.Error {
	var e *node.Error
	if errors.As(err, &e) {
		return e
	}
	return node.Fail(node.CodeInternal, "%v", err)
}

package builtin

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

type failConfig struct {
	Code      string                     `json:"code"`
	Message   string                     `json:"message"`
	Details   map[string]json.RawMessage `json:"details"`
	Retryable bool                       `json:"retryable"`
}

func fail() node.Type {
	return node.Type{
		ID:          "core.fail",
		Description: "Fails on purpose, with a code and message of your choice.",
		Pure:        true,
		ConfigSchema: closed(`"code":{"type":"string","minLength":1,"maxLength":128},` +
			`"message":{"type":"string","maxLength":4096},"details":{"type":"object"},"retryable":{"type":"boolean"}`),
		Run: runFail,
	}
}

func runFail(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg failConfig
	if err := bind(in, &cfg); err != nil {
		return node.Result{}, err
	}
	e := &node.Error{Code: cfg.Code, Message: cfg.Message, Retryable: cfg.Retryable}
	if e.Code == "" {
		e.Code = "conformance_test_failure"
	}
	if e.Message == "" {
		e.Message = "The workflow asked for this failure."
	}
	if len(cfg.Details) > 0 {
		e.Details = make(map[string]any, len(cfg.Details))
		for k, v := range cfg.Details {
			e.Details[k] = v
		}
	}
	return node.Result{}, e
}

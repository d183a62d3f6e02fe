package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/node"
)

const (
	maxQuestions = 100
	maxPairs     = 10 * maxQuestions // some clients send an answer again for every change
)

type clarificationConfig struct {
	Questions   []question `json:"questions"`
	ContextType string     `json:"contextType"`
	TimeoutMs   number     `json:"timeoutMs"`
}

type question struct {
	ID       string          `json:"id"`
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"schema,omitempty"`
}

func clarificationGate() node.Type {
	return node.Type{
		ID:          "core.clarificationGate",
		Description: "Asks people questions and holds the run until they answer.",
		Pure:        true,
		ConfigSchema: closed(`"questions":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object",` +
			`"required":["id","question"],"additionalProperties":false,"properties":{` +
			`"id":{"type":"string","minLength":1,"maxLength":128},"question":{"type":"string","minLength":1},"schema":{"type":"object"}}}},` +
			`"contextType":{"type":"string"},"timeoutMs":` + timeoutType),
		Check: func(c node.CheckContext) error {
			var cfg clarificationConfig
			if err := declared(c, &cfg); err != nil || cfg.Questions == nil {
				return err // the questions may come in through a port
			}
			return cfg.check()
		},
		Expect: func(config json.RawMessage) (node.Interrupt, bool) {
			return node.Interrupt{Kind: "clarification", Data: config}, true // questions are where data has them
		},
		Ports: puts("answers"),
		Run:   runClarificationGate,
	}
}

func (cfg *clarificationConfig) check() error {
	if err := checkQuestions("questions", cfg.Questions); err != nil {
		return err
	}
	_, err := cfg.TimeoutMs.whole("timeoutMs", 0, 0, maxTimeoutMs)
	return err
}

func checkQuestions(field string, list []question) error {
	if len(list) == 0 || len(list) > maxQuestions {
		return badMember(field, "must hold 1 to %d questions", maxQuestions)
	}
	seen := map[string]bool{}
	for i, q := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case q.ID == "":
			return badMember(at+".id", "is missing")
		case seen[q.ID]:
			return badMember(at+".id", "is used twice")
		case q.Question == "":
			return badMember(at+".question", "is missing")
		case len(q.Schema) > 0 && kind(q.Schema) != "an object":
			return badMember(at+".schema", "must be an object")
		}
		seen[q.ID] = true
	}
	return nil
}

func runClarificationGate(_ context.Context, in *node.Input) (node.Result, error) {
	if in.Wake != nil && in.Wake.Answer != nil {
		return clarified(in.Wake.Answer)
	}
	var cfg clarificationConfig
	if err := bind(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	ms, _ := cfg.TimeoutMs.whole("timeoutMs", 0, 0, maxTimeoutMs)
	return node.Suspend(node.Interrupt{
		Kind:    "clarification",
		Data:    cfg.data(),
		Timeout: time.Duration(ms) * time.Millisecond,
	}, nil), nil
}

func (cfg *clarificationConfig) data() json.RawMessage {
	list := make([]json.RawMessage, len(cfg.Questions))
	for i, q := range cfg.Questions {
		o := object{{"id", quote(q.ID)}, {"question", quote(q.Question)}}
		if len(q.Schema) > 0 {
			o.set("schema", q.Schema)
		}
		list[i] = o.raw()
	}
	o := object{{"questions", array(list)}}
	if cfg.ContextType != "" {
		o.set("contextType", quote(cfg.ContextType))
	}
	return o.raw()
}

func clarified(a *node.Answer) (node.Result, error) {
	if a.TimedOut {
		return node.Result{}, expired("clarification")
	}
	answers, err := answersOf(a.Value)
	if err != nil {
		return node.Result{}, err
	}
	return node.DoneRaw(map[string]json.RawMessage{"answers": answers}), nil
}

// answersOf reads the two shapes in use: an object from question to answer, or a
// list of pairs; either bare or as the member answers.
func answersOf(value json.RawMessage) (json.RawMessage, error) {
	given := value
	if kind(value) == "an object" {
		var wrapped struct {
			Answers json.RawMessage `json:"answers"`
		}
		if err := json.Unmarshal(value, &wrapped); err != nil {
			return nil, node.Fail("validation_error", "the answers cannot be read")
		}
		if given = wrapped.Answers; kind(given) == "an object" {
			return bytes.TrimSpace(given), nil
		}
	}
	var pairs []struct {
		ID     *string         `json:"id"`
		Answer json.RawMessage `json:"answer"`
	}
	if kind(given) != "a list" || json.Unmarshal(given, &pairs) != nil || len(pairs) > maxPairs {
		return nil, node.Fail("validation_error", "the answers must be an object or a list of pairs")
	}
	var o object
	for i, p := range pairs {
		if p.ID == nil {
			return nil, node.Fail("validation_error", "answer %d names no question", i)
		}
		o.set(*p.ID, p.Answer)
	}
	return o.raw(), nil
}

func expired(kind string) *node.Error {
	e := node.Fail("interrupt_expired", "The %s was not answered in time.", kind)
	e.Details = map[string]any{"kind": kind}
	return e
}

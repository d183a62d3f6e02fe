package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
)

type fn = func(ctx context.Context, in *node.Input) (node.Result, error)

// TestMisbehavingNodesFailClearly runs code that does what it must not, as a
// call beside the run and within its turn.
func TestMisbehavingNodesFailClearly(t *testing.T) {
	const max = 1 << 16
	whole := t
	huge := json.RawMessage(`"` + strings.Repeat("x", max+1) + `"`)
	out := func(raw json.RawMessage) fn {
		return func(context.Context, *node.Input) (node.Result, error) {
			return node.DoneRaw(map[string]json.RawMessage{"o": raw}), nil
		}
	}
	write := func(name string, v any) fn {
		return func(_ context.Context, in *node.Input) (node.Result, error) {
			return node.Done(nil), in.SetVariable(name, v)
		}
	}
	result := func(r node.Result) fn {
		return func(context.Context, *node.Input) (node.Result, error) { return r, nil }
	}
	var none *node.Error
	cases := map[string]struct {
		run  fn
		code problem.Code
	}{
		"panics": {func(context.Context, *node.Input) (node.Result, error) { panic("ouch") }, problem.InternalError},
		"dereferences nil": {func(context.Context, *node.Input) (node.Result, error) {
			var m *struct{ a int }
			m.a = 1
			return node.Result{}, nil
		}, problem.InternalError},
		"huge output":            {out(huge), problem.PayloadTooLarge},
		"huge variable":          {write("v", huge), problem.PayloadTooLarge},
		"huge state":             {result(node.Sleep(time.Now(), huge)), problem.PayloadTooLarge},
		"deep output":            {out(json.RawMessage(strings.Repeat("[", 129) + strings.Repeat("]", 129))), problem.NodeConfigInvalid},
		"output is no JSON":      {out(json.RawMessage(`{"a":`)), problem.InternalError},
		"output is empty":        {out(json.RawMessage{}), problem.InternalError},
		"output is not UTF-8":    {out(json.RawMessage("\"\xff\"")), problem.InternalError},
		"output has two members": {out(json.RawMessage(`{"a":1,"a":2}`)), problem.InternalError},
		"port is not UTF-8": {func(context.Context, *node.Input) (node.Result, error) {
			return node.DoneRaw(map[string]json.RawMessage{"\xff": json.RawMessage("1")}), nil
		}, problem.InternalError},
		"output cannot be written": {result(node.Done(node.Outputs{"o": math.Inf(1)})), problem.NodeConfigInvalid},
		"output is a function":     {result(node.Done(node.Outputs{"o": func() {}})), problem.NodeConfigInvalid},
		"variable is no JSON":      {write("v", json.RawMessage(`nope`)), problem.InternalError},
		"variable is not UTF-8":    {write("\xff", 1), problem.InternalError},
		"state is no JSON":         {result(node.Sleep(time.Now(), json.RawMessage(`{`))), problem.InternalError},
		"interrupt is no JSON":     {result(node.Suspend(node.Interrupt{Kind: "custom", Data: json.RawMessage(`{`)}, nil)), problem.InternalError},
		"interrupt is not UTF-8":   {result(node.Suspend(node.Interrupt{Kind: "custom", Key: "\xff"}, nil)), problem.InternalError},
		"unknown child":            {result(node.Await(nil, node.Child{WorkflowID: "nowhere"})), problem.NodeConfigInvalid},
		"child's input is no JSON": {result(node.Await(nil, node.Child{WorkflowID: "bad", Inputs: map[string]json.RawMessage{"a": json.RawMessage(`[`)}})), problem.InternalError},
		"awaits nothing":           {result(node.Await(nil)), problem.InternalError},
		"error is not UTF-8":       {func(context.Context, *node.Input) (node.Result, error) { return node.Result{}, node.Fail("x", "\xff") }, problem.InternalError},
		"error's details are odd": {func(context.Context, *node.Input) (node.Result, error) {
			return node.Result{}, &node.Error{Code: "forbidden", Details: map[string]any{"f": func() {}}}
		}, problem.Forbidden},
		"error's message is huge": {func(context.Context, *node.Input) (node.Result, error) {
			return node.Result{}, errors.New(string(huge))
		}, problem.InternalError},
		"error is a nil of a type":  {func(context.Context, *node.Input) (node.Result, error) { return node.Result{}, none }, problem.InternalError},
		"interrupt of another kind": {result(node.Suspend(node.Interrupt{}, nil)), problem.NodeConfigInvalid},
	}
	once := map[string]any{"settings": map[string]any{"maxRetries": 0}}
	for _, pure := range []bool{true, false} {
		where, types := " beside the run", []node.Type{}
		if pure {
			where = " within the turn"
		}
		typeOf := map[string]string{}
		for name, c := range cases {
			typeOf[name] = fmt.Sprintf("test.n%d", len(types))
			types = append(types, node.Type{ID: typeOf[name], Pure: pure, Run: c.run})
		}
		l := newLab(t, types...)
		l.limit.MaxPayloadBytes = max
		l.engine(func(cfg *Config) {
			cfg.CheckInterrupt = func(b []byte) error {
				if !bytes.Contains(b, []byte(`"kind":"custom"`)) {
					return errors.New("unknown kind")
				}
				return nil
			}
		})
		for name, c := range cases {
			t.Run(name+where, func(t *testing.T) {
				l.t = t
				defer func() { l.t = whole }()
				id := l.create(l.register(strings.ReplaceAll(typeOf[name], ".", "-"), []any{step("a", typeOf[name], nil, once)}, nil))
				l.until(id, run.Failed)
				s := l.sound(id)
				if s.Error == nil || s.Error.Code != string(c.code) || s.Error.Message == "" || s.FailedNode != "a" {
					t.Errorf("failed with %+v at %q, want %s", s.Error, s.FailedNode, c.code)
				}
				if len(s.Variables) != 0 {
					t.Errorf("a failed attempt left variables: %v", s.Variables)
				}
				for _, e := range l.log(id) {
					if len(e.Doc()) > 2*max {
						t.Errorf("%s takes %d bytes", e.Type, len(e.Doc()))
					}
				}
			})
		}
	}
}

func TestOddLogLinesAreWritten(t *testing.T) {
	l := newLab(t, node.Type{ID: "test.odd", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
		in.Log("loud", "\xff", map[string]any{"f": func() {}})
		in.Log("info", strings.Repeat("é", 1<<20), map[string]any{"n": json.Number("12345678901234567890"), "\xff": 1})
		return node.Done(nil), nil
	}})
	l.engine()
	id := l.create(l.register("odd", []any{step("a", "test.odd", nil)}, nil))
	l.until(id, run.Completed)
	l.sound(id)
	var lines []string
	for _, e := range l.log(id) {
		if e.Type == "log.appended" {
			lines = append(lines, string(e.Payload))
		}
	}
	if len(lines) != 2 || !strings.Contains(lines[1], "12345678901234567890") || len(lines[1]) > 1<<18 {
		t.Errorf("lines: %.300s", lines)
	}
}

func TestStreamedTextMayBeCutAnywhere(t *testing.T) {
	const text = "añ→😀z"
	l := newLab(t, node.Type{ID: "test.talk", Run: func(_ context.Context, in *node.Input) (node.Result, error) {
		for i := range len(text) {
			if err := in.Services.Chunk(text[i:i+1], false); err != nil {
				return node.Result{}, err
			}
		}
		if err := in.Services.Chunk("\xff", false); err != nil {
			return node.Result{}, err
		}
		return node.Done(nil), in.Services.Chunk("\xf0\x9f", true)
	}})
	l.engine()
	id := l.create(l.register("talk", []any{step("a", "test.talk", nil)}, nil))
	l.until(id, run.Completed)
	l.sound(id)
	got := ""
	for _, e := range l.log(id) {
		var p struct {
			Chunk string `json:"chunk"`
		}
		if e.Type == "output.chunk" {
			if err := json.Unmarshal(e.Payload, &p); err != nil {
				t.Fatal(err)
			}
			got += p.Chunk
		}
	}
	if got != text+"\uFFFD\uFFFD" {
		t.Errorf("streamed %q", got)
	}
}

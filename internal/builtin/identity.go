package builtin

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/node"
)

type identityConfig struct {
	// EmitDuplicateMessageID is a hook of the protocol's own tests: a channel
	// that folds messages must keep one of two with the same id.
	EmitDuplicateMessageID bool `json:"emitDuplicateMessageId"`
}

func identity() node.Type {
	return node.Type{
		ID:           "core.identity",
		Description:  "Hands its input ports on as outputs of the same names.",
		Pure:         true,
		ConfigSchema: open(`"emitDuplicateMessageId":{"type":"boolean"}`),
		Run:          runIdentity,
	}
}

func runIdentity(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg identityConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if cfg.EmitDuplicateMessageID {
		if err := twice(in); err != nil {
			return node.Result{}, err
		}
	}
	out := make(map[string]json.RawMessage, len(in.Inputs))
	for name, v := range in.Inputs {
		out[name] = orNull(v)
	}
	return node.DoneRaw(out), nil
}

// twice writes one message two times. Nothing in it depends on the run or the
// clock, so that a replay writes the same bytes.
func twice(in *node.Input) error {
	message := object{
		{"messageId", quote(in.NodeID + ":0:agent")},
		{"from", quote(in.NodeID)},
		{"role", quote("agent")},
		{"content", quote("A message that is written twice.")},
		{"turnIndex", json.RawMessage("0")},
		{"ts", json.RawMessage("0")},
	}.raw()
	for range 2 {
		if err := in.WriteChannel("messages", message, "message"); err != nil {
			return err
		}
	}
	return nil
}

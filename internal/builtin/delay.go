package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-run/fermata/node"
)

// maxDelayMs is a year, the protocol's bound for a wait of this kind.
const maxDelayMs = 365 * 24 * 3600 * 1000

type delayConfig struct {
	DelayMs    number `json:"delayMs"`
	Ms         number `json:"ms"`
	DurationMs number `json:"durationMs"`
}

func delay() node.Type {
	const ms = `{"type":"integer","minimum":0,"maximum":31536000000}`
	return node.Type{
		ID:           "core.delay",
		Description:  "Waits for a number of milliseconds.",
		Pure:         true,
		ConfigSchema: closed(`"delayMs":` + ms + `,"ms":` + ms + `,"durationMs":` + ms),
		Run:          runDelay,
	}
}

func runDelay(_ context.Context, in *node.Input) (node.Result, error) {
	done := node.DoneRaw(map[string]json.RawMessage{})
	if in.Wake != nil && in.Wake.Timer {
		return done, nil
	}
	d, err := delayOf(in)
	if err != nil {
		return node.Result{}, err
	}
	if d == 0 {
		return done, nil
	}
	return node.Sleep(in.Now.Add(d), nil), nil
}

// delayOf takes the first member that is set. The spellings are those in use
// among hosts of this protocol.
func delayOf(in *node.Input) (time.Duration, error) {
	var cfg delayConfig
	if err := bind(in, &cfg); err != nil {
		return 0, err
	}
	for _, m := range []struct {
		name string
		n    number
	}{{"delayMs", cfg.DelayMs}, {"ms", cfg.Ms}, {"durationMs", cfg.DurationMs}} {
		if m.n.set() {
			ms, err := m.n.whole(m.name, 0, 0, maxDelayMs)
			return time.Duration(ms) * time.Millisecond, err
		}
	}
	return 0, badMember("delayMs", "is missing")
}

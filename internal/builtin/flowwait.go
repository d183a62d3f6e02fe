package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-run/fermata/node"
)

// waitConfig has one member set; the others stay empty.
type waitConfig struct {
	Until      string `json:"until"`
	Duration   string `json:"duration"`
	DurationMs number `json:"durationMs"`
}

func flowWait() node.Type {
	return node.Type{
		ID:          "core.flow.wait",
		Description: "Waits until a moment in time, or for a span of time.",
		Pure:        true,
		ConfigSchema: closed(`"until":{"type":"string","minLength":1,"maxLength":16384,"description":"A timestamp, or an expression that gives one."},` +
			`"duration":{"type":"string","pattern":"^P","maxLength":64},"durationMs":` + timeoutType),
		Check: checkWait,
		Ports: puts("wokenAt"),
		Run:   runWait,
	}
}

func checkWait(c node.CheckContext) error {
	var cfg waitConfig
	if err := declared(c, &cfg); err != nil {
		return err
	}
	if n := cfg.count(); n > 1 {
		return badMember("config", "must have only one of until, duration and durationMs")
	}
	if cfg.Until != "" {
		if _, err := time.Parse(time.RFC3339, cfg.Until); err == nil {
			return nil
		}
		return compiles(c, "config.until", cfg.Until)
	}
	_, err := cfg.span(time.Time{})
	return err
}

func (cfg *waitConfig) count() int {
	n := 0
	for _, set := range []bool{cfg.Until != "", cfg.Duration != "", cfg.DurationMs.set()} {
		if set {
			n++
		}
	}
	return n
}

func runWait(_ context.Context, in *node.Input) (node.Result, error) {
	if in.Wake != nil && in.Wake.Timer {
		return woken(in), nil
	}
	until, err := waitEnd(in)
	if err != nil {
		return node.Result{}, err
	}
	if !until.After(in.Now) {
		return woken(in), nil
	}
	if until.After(in.Now.AddDate(maxWaitYears, 0, 0)) {
		return node.Result{}, badMember("until", "is more than %d years away", maxWaitYears)
	}
	return node.Sleep(until, nil), nil
}

func woken(in *node.Input) node.Result {
	at := in.Now.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return node.DoneRaw(map[string]json.RawMessage{"wokenAt": quote(at)})
}

// waitEnd is when the wait ends: as an input port says, else as the config does.
func waitEnd(in *node.Input) (time.Time, error) {
	if v, ok := in.Inputs["until"]; ok {
		return moment("inputs.until", v)
	}
	var cfg waitConfig
	ports := map[string]json.RawMessage{}
	for _, name := range []string{"duration", "durationMs"} {
		if v, ok := in.Inputs[name]; ok {
			ports[name] = v
		}
	}
	if len(ports) > 0 {
		if err := bind(&node.Input{Inputs: ports}, &cfg); err != nil {
			return time.Time{}, err
		}
	} else if err := settings(in, &cfg); err != nil {
		return time.Time{}, err
	}
	if cfg.count() != 1 {
		return time.Time{}, badMember("until", "is missing: give one of until, duration and durationMs")
	}
	if cfg.Until == "" {
		return cfg.span(in.Now)
	}
	if t, err := time.Parse(time.RFC3339, cfg.Until); err == nil {
		return t, nil
	}
	v, err := newScope(in).eval("config.until", cfg.Until, nil)
	if err != nil {
		return time.Time{}, err
	}
	return moment("config.until", v)
}

// span is the end of a wait of a given length.
func (cfg *waitConfig) span(now time.Time) (time.Time, error) {
	if cfg.Duration != "" {
		p, ok := parsePeriod(cfg.Duration)
		if !ok {
			return time.Time{}, badMember("duration", "must be a duration such as PT1H30M or P60D, of at most %d years", maxWaitYears)
		}
		return p.after(now), nil
	}
	ms, err := cfg.DurationMs.whole("durationMs", 0, 0, maxTimeoutMs)
	return now.Add(time.Duration(ms) * time.Millisecond), err
}

// moment reads a timestamp, or the milliseconds since 1970.
func moment(field string, v json.RawMessage) (time.Time, error) {
	switch kind(v) {
	case "a string":
		var s string
		_ = json.Unmarshal(v, &s)
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t, nil
		}
	case "a number":
		if ms, err := (number{v}).whole(field, 0, 0, 253402300799999); err == nil { // the end of the year 9999
			return time.UnixMilli(ms), nil
		}
	}
	return time.Time{}, badMember(field, "must be a timestamp such as 2031-05-01T08:00:00Z, or milliseconds since 1970")
}

package builtin

import (
	"bytes"
	"context"
	"strings"

	"github.com/fermata-run/fermata/node"
)

// channelConfig leaves out value, which is taken as the bytes it came in.
type channelConfig struct {
	ChannelName string `json:"channelName"`
	Reducer     string `json:"reducer"`
	TTLMs       number `json:"ttlMs"`
	MaxSize     number `json:"maxSize"`
}

func channelWrite() node.Type {
	return node.Type{
		ID:          "core.channelWrite",
		Description: "Writes a value to a channel of the run.",
		Pure:        true,
		ConfigSchema: closed(`"channelName":`+nameType+`,"reducer":{"type":"string",`+
			`"pattern":"^(replace|append|merge|counter|votes|feedback|message|vendor\\..+\\..+)$"},`+
			`"ttlMs":{"type":"integer","minimum":1,"maximum":31536000000},`+
			`"maxSize":{"type":"integer","minimum":1,"maximum":100000},"value":{}`, "channelName"),
		Check: func(c node.CheckContext) error {
			var cfg channelConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			return cfg.check()
		},
		Run: runChannelWrite,
	}
}

func (cfg *channelConfig) check() error {
	if cfg.ChannelName == "" {
		return badMember("channelName", "is missing")
	}
	if cfg.Reducer == "" {
		cfg.Reducer = "append"
	}
	if err := checkReducer(cfg.Reducer); err != nil {
		return err
	}
	if _, err := cfg.TTLMs.whole("ttlMs", 1, 1, maxDelayMs); err != nil {
		return err
	}
	if _, err := cfg.MaxSize.whole("maxSize", 1, 1, 100_000); err != nil {
		return err
	}
	// The host reads these two from the config by itself, and as plain integers:
	// in another spelling the channel would silently have no bound.
	for name, n := range map[string]number{"ttlMs": cfg.TTLMs, "maxSize": cfg.MaxSize} {
		if bytes.ContainsAny(n.raw, ".eE") {
			return badMember(name, "must be written in plain digits")
		}
	}
	return nil
}

func checkReducer(name string) error {
	if rest, ok := strings.CutPrefix(name, "vendor."); ok {
		if org, own, _ := strings.Cut(rest, "."); org != "" && own != "" {
			return nil
		}
	}
	_, err := choice("reducer", name, "", "replace", "append", "merge", "counter", "votes", "feedback", "message")
	return err
}

func runChannelWrite(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg channelConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	value := member(in, "value")
	if len(value) == 0 {
		return node.Result{}, badMember("value", "is missing: set it in the config or as an input port")
	}
	if err := in.WriteChannel(cfg.ChannelName, value, cfg.Reducer); err != nil {
		return node.Result{}, err
	}
	return node.Done(nil), nil
}

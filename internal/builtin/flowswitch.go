package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fermata-run/fermata/node"
)

const maxCases = 100

type switchConfig struct {
	Expression string       `json:"expression"`
	Cases      []switchCase `json:"cases"`
	Default    string       `json:"default"`
}

type switchCase struct {
	Port   string          `json:"port"`
	Equals json.RawMessage `json:"equals"`
	When   string          `json:"when"`
}

func flowSwitch() node.Type {
	return node.Type{
		ID:          "core.flow.switch",
		Description: "Takes the branch of the first case that fits a value.",
		Pure:        true,
		ConfigSchema: closed(`"expression":`+expressionType+`,"default":`+nameType+
			`,"cases":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","required":["port"],`+
			`"additionalProperties":false,"properties":{"port":`+nameType+`,"equals":{},"when":`+expressionType+`},`+
			`"oneOf":[{"required":["equals"]},{"required":["when"]}]}}`, "cases"),
		Check: checkSwitch,
		Ports: switchPorts,
		Run:   runSwitch,
	}
}

func checkSwitch(c node.CheckContext) error {
	var cfg switchConfig
	if err := declared(c, &cfg); err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return err
	}
	if cfg.Expression != "" {
		if err := compiles(c, "config.expression", cfg.Expression); err != nil {
			return err
		}
	}
	for i, k := range cfg.Cases {
		if k.When == "" {
			continue
		}
		if err := compiles(c, whenField(i), k.When, "value"); err != nil {
			return err
		}
	}
	return nil
}

// switchPorts lists the ports of the cases, then that for everything else.
func switchPorts(config json.RawMessage) node.Ports {
	p := node.Ports{Outputs: []string{"value", "port"}, Branches: []string{}}
	var cfg switchConfig
	if json.Unmarshal(config, &cfg) != nil || cfg.check() != nil {
		return node.Ports{}
	}
	for _, k := range cfg.Cases {
		if !slices.Contains(p.Branches, k.Port) {
			p.Branches = append(p.Branches, k.Port)
		}
	}
	if !slices.Contains(p.Branches, cfg.Default) {
		p.Branches = append(p.Branches, cfg.Default)
	}
	return p
}

func whenField(i int) string { return fmt.Sprintf("config.cases[%d].when", i) }

func (cfg *switchConfig) check() error {
	if len(cfg.Cases) == 0 || len(cfg.Cases) > maxCases {
		return badMember("cases", "must hold 1 to %d cases", maxCases)
	}
	for i, k := range cfg.Cases {
		at := fmt.Sprintf("cases[%d]", i)
		if k.Port == "" {
			return badMember(at+".port", "is missing")
		}
		if (len(k.Equals) > 0) == (k.When != "") {
			return badMember(at, "must have either equals or when")
		}
	}
	if cfg.Default == "" {
		cfg.Default = "default"
	}
	return nil
}

func runSwitch(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg switchConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	s := newScope(in)
	value, err := cfg.value(s)
	if err != nil {
		return node.Result{}, err
	}
	port, err := cfg.pick(s, value)
	if err != nil {
		return node.Result{}, err
	}
	return node.DoneRaw(map[string]json.RawMessage{"value": value, "port": quote(port)}).Take(port), nil
}

// value is what the cases look at. With neither a port nor an expression it is
// null, for a switch whose cases each look for themselves.
func (cfg *switchConfig) value(s *scope) (json.RawMessage, error) {
	if v, ok := s.in.Inputs["value"]; ok {
		return orNull(v), nil
	}
	if cfg.Expression == "" {
		return orNull(nil), nil
	}
	return s.eval("config.expression", cfg.Expression, nil)
}

func (cfg *switchConfig) pick(s *scope, value json.RawMessage) (string, error) {
	for i, k := range cfg.Cases {
		if k.When == "" {
			if equal(k.Equals, value) {
				return k.Port, nil
			}
			continue
		}
		fits, err := s.truth(whenField(i), k.When, names{"value": value})
		if err != nil {
			return "", err
		}
		if fits {
			return k.Port, nil
		}
	}
	return cfg.Default, nil
}

package builtin

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"

	"github.com/fermata-run/fermata/node"
)

// maxItems bounds the lists a node walks through.
const maxItems = 10_000

// portsName is the name under which an expression sees the node's input ports.
const portsName = "input"

// names are the extra names of one evaluation.
type names = map[string]json.RawMessage

// scope is the evaluation of a node's expressions, with its ports in reach.
type scope struct {
	in    *node.Input
	ports json.RawMessage
}

func newScope(in *node.Input) *scope { return &scope{in: in, ports: ports(in)} }

// ports is the object of a node's input ports, in the order of their names.
func ports(in *node.Input) json.RawMessage {
	o := make(object, 0, len(in.Inputs))
	for _, name := range sortedKeys(in.Inputs) {
		o = append(o, pair{name, in.Inputs[name]})
	}
	return o.raw()
}

// eval evaluates source; field names it in a failure.
func (s *scope) eval(field, source string, extra names) (json.RawMessage, error) {
	if s.in.Services.Eval == nil {
		return nil, node.Fail(node.CodeInternal, "the host evaluates no expressions")
	}
	all := names{portsName: s.ports}
	maps.Copy(all, extra)
	v, err := s.in.Services.Eval(source, all)
	if err == nil {
		return orNull(v), nil
	}
	var e *node.Error
	if errors.As(err, &e) {
		return nil, e
	}
	return nil, badMember(field, "cannot be evaluated: %v", err)
}

// truth evaluates a source that must give true or false.
func (s *scope) truth(field, source string, extra names) (bool, error) {
	v, err := s.eval(field, source, extra)
	if err != nil {
		return false, err
	}
	return asBool(field, v)
}

// items is the list a node walks through: its port of that name or else its
// config member, which is a list or an expression that gives one.
func (s *scope) items(config json.RawMessage) ([]json.RawMessage, error) {
	if v, ok := s.in.Inputs["items"]; ok {
		return asList("inputs.items", v)
	}
	source, isText, err := itemsSource(config)
	if err != nil || !isText {
		if err == nil {
			return asList("config.items", config)
		}
		return nil, err
	}
	v, err := s.eval("config.items", source, nil)
	if err != nil {
		return nil, err
	}
	return asList("config.items", v)
}

func itemsSource(config json.RawMessage) (source string, isText bool, err error) {
	switch kind(config) {
	case "nothing", "null":
		return "", false, badMember("items", "is missing: give a list, an expression or an input port")
	case "a string":
		err = json.Unmarshal(config, &source)
		return source, true, err
	}
	return "", false, nil
}

// checkItems checks the config member items when a workflow is registered. It
// may be absent, since a port may stand in for it.
func checkItems(c node.CheckContext, config json.RawMessage) error {
	if absent(config) {
		return nil
	}
	source, isText, err := itemsSource(config)
	if err != nil {
		return err
	}
	if isText {
		return compiles(c, "config.items", source)
	}
	_, err = asList("config.items", config)
	return err
}

// compiles checks an expression when a workflow is registered.
func compiles(c node.CheckContext, field, source string, extra ...string) error {
	if source == "" {
		return badMember(field, "must be an expression")
	}
	if c.Expression == nil {
		return nil
	}
	if err := c.Expression(source, append([]string{portsName}, extra...)...); err != nil {
		return badMember(field, "is not a valid expression: %v", err)
	}
	return nil
}

func asBool(field string, v json.RawMessage) (bool, error) {
	var b bool
	if kind(v) != "true or false" || json.Unmarshal(v, &b) != nil {
		return false, badMember(field, "must give true or false, not %s", kind(v))
	}
	return b, nil
}

func asList(field string, v json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if kind(v) != "a list" || json.Unmarshal(v, &list) != nil {
		return nil, badMember(field, "must be a list, not %s", kind(v))
	}
	if len(list) > maxItems {
		return nil, badMember(field, "has more than %d items", maxItems)
	}
	return list, nil
}

func position(i int) json.RawMessage { return strconv.AppendInt(nil, int64(i), 10) }

package run

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Channel is the folded state of a channel: one value, or a list of entries,
// by its reducer.
type Channel struct {
	Reducer string         `json:"reducer"`
	Value   jsontext.Value `json:"value,omitzero"`
	Items   []Entry        `json:"items,omitzero"`
	MaxSize int            `json:"maxSize,omitzero"`
	TTLMs   int64          `json:"ttlMs,omitzero"`
	Hidden  bool           `json:"hidden,omitzero"` // sensitive
	Loose   bool           `json:"loose,omitzero"`  // not declared: shown among the variables
}

// Entry is one entry of a list channel, with the time it was written in
// milliseconds since 1970.
type Entry struct {
	V  jsontext.Value `json:"v"`
	TS int64          `json:"ts"`
}

func listReducer(r string) bool {
	return r == "append" || r == "votes" || r == "feedback" || r == "message"
}

// channel returns a channel's state, making it from its declaration first.
func (s *State) channel(name string, decl flow.Channel) *Channel {
	if c, ok := s.Channels[name]; ok {
		return c
	}
	c := &Channel{Reducer: decl.Reducer, MaxSize: decl.MaxSize, TTLMs: decl.TTLMs, Hidden: decl.Sensitive}
	if len(decl.Default) > 0 {
		if listReducer(c.Reducer) && decl.Default.Kind() == '[' {
			var items []jsontext.Value
			if json.Unmarshal(decl.Default, &items) == nil {
				for _, v := range items {
					c.Items = append(c.Items, Entry{V: v, TS: s.StartedAt.UnixMilli()})
				}
			}
		} else {
			c.Value = decl.Default
		}
	}
	if s.Channels == nil {
		s.Channels = map[string]*Channel{}
	}
	s.Channels[name] = c
	return c
}

// looseDecl is the declaration a node's own config gives a channel that the
// workflow does not declare.
func (s *State) looseDecl(nodeID, reducer string) flow.Channel {
	d := flow.Channel{Reducer: reducer}
	if step, ok := s.wf.Step(nodeID); ok {
		var c struct {
			TTLMs   int64 `json:"ttlMs"`
			MaxSize int   `json:"maxSize"`
		}
		if json.Unmarshal(step.Node.Config, &c) == nil {
			d.TTLMs, d.MaxSize = c.TTLMs, c.MaxSize
		}
	}
	return d
}

func (t *turn) writeChannel(step *flow.Step, w node.Write) (event.Draft, *node.Error) {
	decl, declared := t.s.wf.Def.Channels[w.Channel]
	if !declared {
		decl = t.s.looseDecl(step.Node.ID, or(w.Reducer, "append"))
		if _, clash := t.s.wf.Variable(w.Channel); clash {
			return event.Draft{}, node.Fail(node.CodeConfig, "%q is a variable and cannot be written as a channel", w.Channel)
		}
	}
	access, err := flow.ParseAccess(decl.Access)
	if err == nil && !flow.Admits(access.Writers, step.Node.ID, step.Node.TypeID) {
		e := node.Fail(string(problem.Forbidden), "node %s may not write to channel %q", step.Node.ID, w.Channel)
		e.Details = map[string]any{"reason": "channel-access-denied", "channel": w.Channel}
		return event.Draft{}, e
	}
	v := jsontext.Value(w.Value)
	if sch := t.s.wf.ChannelSchema(w.Channel); sch != nil && !listReducer(decl.Reducer) {
		if bad := sch.Validate(v); bad != nil {
			return event.Draft{}, node.Fail(string(problem.ValidationError), "channel %q: %s %s", w.Channel, bad.Path, bad.Message)
		}
	}
	if err := fits(decl.Reducer, v); err != nil {
		return event.Draft{}, node.Fail(string(problem.ValidationError), "channel %q: %v", w.Channel, err)
	}
	p := event.Channel{
		Channel: w.Channel, Value: v, Reducer: decl.Reducer, NodeID: step.Node.ID,
		WrittenAt: t.now.UTC().Format(event.TimeLayout), SchemaVersion: max(decl.SchemaVersion, 1),
	}
	d := event.Draft{Type: event.ChannelWritten, NodeID: step.Node.ID, Causation: -1, Payload: event.Encode(p)}
	if decl.Sensitive {
		masked, changed := t.s.maskValue(v)
		if changed {
			d.Sealed = d.Payload
			if p.Value = masked; masked == nil {
				p.Value = jsontext.Value("null") // the payload requires a value
			}
			d.Payload = event.Encode(p)
		}
	}
	return d, nil
}

// fits refuses a value its reducer cannot take.
func fits(reducer string, v jsontext.Value) error {
	switch k := v.Kind(); {
	case reducer == "merge" && k != '{':
		return fmt.Errorf("the reducer merge takes an object")
	case reducer == "counter" && k != '0':
		return fmt.Errorf("the reducer counter takes a number")
	case (reducer == "votes" || reducer == "message") && k != '{':
		return fmt.Errorf("the reducer %s takes an object", reducer)
	}
	return nil
}

func foldChannel(s *State, e *event.Event) error {
	p, err := event.Read[event.Channel](e.Truth())
	if err != nil {
		return err
	}
	decl, declared := s.wf.Def.Channels[p.Channel]
	if !declared {
		decl = s.looseDecl(p.NodeID, p.Reducer)
	}
	c := s.channel(p.Channel, decl)
	c.Loose = !declared
	c.reduce(p.Reducer, p.Value, e.Time)
	return nil
}

// reduce folds one write. The reducer is the one recorded with the write, so
// that an old log folds the same after the workflow has changed.
func (c *Channel) reduce(reducer string, v jsontext.Value, at time.Time) {
	switch reducer {
	case "append", "feedback":
		c.push(v, at)
	case "votes":
		c.drop(func(e Entry) bool { return sameMember(e.V, v, "userId", "voter") })
		c.push(v, at)
	case "message":
		for _, e := range c.Items {
			if sameMember(e.V, v, "messageId") {
				return
			}
		}
		c.push(v, at)
	case "merge":
		c.Value = mergeObjects(c.Value, v)
	case "counter":
		c.Value = addNumbers(c.Value, v)
	default: // replace, and vendor reducers nobody here knows
		c.Value = v
	}
}

func (c *Channel) push(v jsontext.Value, at time.Time) {
	if c.TTLMs > 0 && c.Reducer != "message" {
		oldest := at.UnixMilli() - c.TTLMs
		c.drop(func(e Entry) bool { return e.TS < oldest })
	}
	c.Items = append(c.Items, Entry{V: v, TS: at.UnixMilli()})
	if c.MaxSize > 0 && len(c.Items) > c.MaxSize {
		c.Items = append([]Entry(nil), c.Items[len(c.Items)-c.MaxSize:]...)
	}
}

func (c *Channel) drop(gone func(Entry) bool) {
	kept := c.Items[:0:0]
	for i, e := range c.Items {
		if gone(e) {
			if kept == nil {
				kept = append(make([]Entry, 0, len(c.Items)), c.Items[:i]...)
			}
			continue
		}
		if kept != nil {
			kept = append(kept, e)
		}
	}
	if kept != nil {
		c.Items = kept
	}
}

// sameMember reports whether two objects agree on the first of the named
// members that both have.
func sameMember(a, b jsontext.Value, names ...string) bool {
	var x, y map[string]jsontext.Value
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	for _, n := range names {
		va, oka := x[n]
		vb, okb := y[n]
		if oka && okb {
			return expr.Equal(va, vb)
		}
	}
	return false
}

func mergeObjects(a, b jsontext.Value) jsontext.Value {
	x := map[string]jsontext.Value{}
	if a.Kind() == '{' && json.Unmarshal(a, &x) != nil {
		x = map[string]jsontext.Value{}
	}
	var y map[string]jsontext.Value
	if json.Unmarshal(b, &y) != nil {
		return a
	}
	for k, v := range y {
		x[k] = v
	}
	return encodeObject(x)
}

// addNumbers adds two JSON numbers: whole ones exactly, whatever their size,
// others as binary floating point.
func addNumbers(a, b jsontext.Value) jsontext.Value {
	if len(a) == 0 || a.Kind() != '0' {
		return b
	}
	sa, sb := string(a), string(b)
	if !strings.ContainsAny(sa+sb, ".eE") {
		x, okx := new(big.Int).SetString(sa, 10)
		y, oky := new(big.Int).SetString(sb, 10)
		if okx && oky {
			return jsontext.Value(x.Add(x, y).String())
		}
	}
	x, errx := strconv.ParseFloat(sa, 64)
	y, erry := strconv.ParseFloat(sb, 64)
	if errx != nil || erry != nil {
		return a // beyond what a float holds: keep what is known
	}
	out, err := json.Marshal(x + y)
	if err != nil {
		return a
	}
	return out
}

// shown is a channel's value as readers see it.
func (c *Channel) shown() jsontext.Value {
	if !listReducer(c.Reducer) {
		if len(c.Value) == 0 {
			return jsontext.Value("null")
		}
		return c.Value
	}
	b := []byte{'['}
	for i, e := range c.Items {
		if i > 0 {
			b = append(b, ',')
		}
		if c.TTLMs > 0 {
			b = append(b, `{"value":`...)
			b = append(b, e.V...)
			b = append(b, `,"_ts":`...)
			b = strconv.AppendInt(b, e.TS, 10)
			b = append(b, '}')
		} else {
			b = append(b, e.V...)
		}
	}
	return append(b, ']')
}

// channelValues is the declared channels by name; masked for the outside.
func (s *State) channelValues(masked bool) jsontext.Value {
	m := map[string]jsontext.Value{}
	for name, c := range s.Channels {
		if c.Loose && masked {
			continue // shown among the variables
		}
		v := c.shown()
		if m[name] = v; masked && c.Hidden {
			s.maskInto(m, name, v)
		}
	}
	return encodeObject(m)
}

package flow

import (
	"fmt"
	"sort"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Mapping is what an inverse action is given: literals, and references to facts
// that the run has recorded.
type Mapping struct {
	members []mapped
	refs    []Ref
}

type mapped struct {
	name string
	v    jsontext.Value
	refs bool
}

// Ref names one recorded fact: an output of a node, as it was when the effect was
// recorded, or an input of the run.
type Ref struct {
	Step  int // of an output; -1 for an input
	Node  string
	Name  string // the port or the input
	token string
}

// String is the reference as its author wrote it.
func (r Ref) String() string { return "${" + r.token + "}" }

// Refs lists what the mapping refers to.
func (m *Mapping) Refs() []Ref { return m.refs }

// mapping compiles an inputMapping.
func (c *compiler) mapping(field string, members map[string]jsontext.Value) Mapping {
	var m Mapping
	for name := range members {
		m.members = append(m.members, mapped{name: name, v: members[name]})
	}
	sort.Slice(m.members, func(i, j int) bool { return m.members[i].name < m.members[j].name })
	for i := range m.members {
		x := &m.members[i]
		_, err := rewrite(x.v, func(token string) (jsontext.Value, error) {
			r, err := c.ref(token)
			if err == nil {
				m.refs, x.refs = append(m.refs, r), true
			}
			return jsontext.Value("null"), err
		})
		if err != nil {
			c.fail(field+"."+x.name, "%v", err)
		}
	}
	return m
}

// ref reads what stands between ${ and }.
func (c *compiler) ref(token string) (Ref, error) {
	if name, ok := strings.CutPrefix(token, "inputs."); ok && name != "" {
		return Ref{Step: -1, Name: name, token: token}, nil
	}
	const dot = ".output."
	rest, ok := strings.CutPrefix(token, "nodes.")
	if !ok || !strings.Contains(rest, dot) {
		return Ref{}, fmt.Errorf("${%s} is no reference: want ${nodes.<nodeId>.output.<port>} or ${inputs.<name>}", token)
	}
	for at := 0; ; { // a node's id may have dots in it, and a port's name too
		i := strings.Index(rest[at:], dot)
		if i < 0 {
			break
		}
		id, port := rest[:at+i], rest[at+i+len(dot):]
		if step, known := c.w.byID[id]; known && port != "" {
			return Ref{Step: step, Node: id, Name: port, token: token}, nil
		}
		at += i + len(dot)
	}
	return Ref{}, fmt.Errorf("${%s} names no node of this workflow", token)
}

// Resolve puts facts in the place of references. A string that is one reference
// becomes the fact itself, whatever its type; within other text it is put in as
// text. It fails with the reference that has no fact.
func (m *Mapping) Resolve(fact func(Ref) (jsontext.Value, bool)) (map[string]jsontext.Value, error) {
	known := make(map[string]Ref, len(m.refs))
	for _, r := range m.refs {
		known[r.token] = r
	}
	out := make(map[string]jsontext.Value, len(m.members))
	for _, x := range m.members {
		if !x.refs {
			out[x.name] = x.v
			continue
		}
		v, err := rewrite(x.v, func(token string) (jsontext.Value, error) {
			r := known[token]
			v, ok := fact(r)
			if !ok || len(v) == 0 {
				return nil, fmt.Errorf("%s has no recorded value", r)
			}
			return v, nil
		})
		if err != nil {
			return nil, err
		}
		out[x.name] = v
	}
	return out, nil
}

// rewrite replaces the references in a JSON value. What holds none keeps its bytes.
func rewrite(v jsontext.Value, fact func(token string) (jsontext.Value, error)) (jsontext.Value, error) {
	if !strings.Contains(string(v), "${") {
		return v, nil
	}
	switch v.Kind() {
	case '"':
		var s string
		if err := json.Unmarshal(v, &s); err != nil {
			return nil, err
		}
		return rewriteText(s, fact)
	case '{':
		var m map[string]jsontext.Value
		if err := json.Unmarshal(v, &m); err != nil {
			return nil, err
		}
		for _, k := range sortedNames(m) {
			r, err := rewrite(m[k], fact)
			if err != nil {
				return nil, err
			}
			m[k] = r
		}
		return json.Marshal(m, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	case '[':
		var l []jsontext.Value
		if err := json.Unmarshal(v, &l); err != nil {
			return nil, err
		}
		for i := range l {
			r, err := rewrite(l[i], fact)
			if err != nil {
				return nil, err
			}
			l[i] = r
		}
		return json.Marshal(l, jsontext.PreserveRawStrings(true))
	}
	return v, nil
}

func sortedNames(m map[string]jsontext.Value) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	sort.Strings(names)
	return names
}

func rewriteText(s string, fact func(token string) (jsontext.Value, error)) (jsontext.Value, error) {
	var b strings.Builder
	for rest := s; ; {
		text, after, found := strings.Cut(rest, "${")
		b.WriteString(text)
		if !found {
			break
		}
		token, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("%q has a reference that is not closed", s)
		}
		v, err := fact(token)
		if err != nil {
			return nil, err
		}
		if text == "" && tail == "" && rest == s {
			return v, nil // nothing but the reference
		}
		b.WriteString(asText(v))
		rest = tail
	}
	out, err := jsontext.AppendQuote(nil, b.String())
	return jsontext.Value(out), err
}

// asText is a fact within other text: a string without its quotes, else its JSON.
func asText(v jsontext.Value) string {
	var s string
	if v.Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

package flow

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Issue is one thing that is wrong with a definition.
type Issue struct {
	Field   string // path of the member, "nodes[2].inputs.amount"
	Line    int    // line in the file, from 1; 0 if unknown
	Message string

	// Capability is set when the host lacks a capability the workflow needs, and with
	// it the node type that needs it and the node.
	Capability, TypeID, NodeID string
}

func (i Issue) String() string {
	var b strings.Builder
	if i.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", i.Line)
	}
	if i.Field != "" {
		b.WriteString(i.Field + ": ")
	}
	return b.String() + i.Message
}

// Issues is everything that is wrong with a definition, as an error.
type Issues []Issue

func (is Issues) Error() string {
	lines := make([]string, len(is))
	for i, x := range is {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}

// Parse decodes a definition strictly: unknown, duplicate or wrongly cased
// members, wrong types and malformed JSON are refused with their place. It
// returns the definition and its canonical bytes. The error is an Issues.
func Parse(data []byte) (*Definition, []byte, error) {
	var d Definition
	err := json.Unmarshal(data, &d, json.RejectUnknownMembers(true), noNull)
	if err != nil {
		return nil, nil, Issues{decodeIssue(data, err)}
	}
	if err := missing(data, &d); err != nil {
		return nil, nil, err
	}
	raw := jsontext.Value(bytes.Clone(data))
	if len(d.Metadata.other) > 0 {
		if raw, err = d.adopt(data); err != nil {
			return nil, nil, placed(data, Issues{{Field: "metadata.customProperties", Message: err.Error()}})
		}
	}
	if err := raw.Compact(); err != nil {
		return nil, nil, Issues{{Message: err.Error()}}
	}
	return &d, raw, nil
}

// noNull refuses null where the schema wants a value of some type; the decoder
// would take it for an absent member. A raw member takes any value.
var noNull = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v any) error {
	if _, raw := v.(*jsontext.Value); raw || dec.PeekKind() != 'n' {
		return errors.ErrUnsupported
	}
	if err := dec.SkipValue(); err != nil {
		return err
	}
	return errors.New("must not be null")
}))

// missing finds required members of the definition and of its nodes that are not
// there, even where an empty value is legal: an absent list is a slip, an empty
// one is not.
func missing(data []byte, d *Definition) error {
	src := newSource(data)
	if len(d.Nodes) > MaxNodes || len(d.Edges) > MaxEdges {
		return Issues{{
			Field: "nodes", Line: src.lineOf("nodes"),
			Message: fmt.Sprintf("at most %d nodes and %d edges are allowed", MaxNodes, MaxEdges),
		}}
	}
	var issues Issues
	require := func(field string, at span, names ...string) {
		there := src.members(at)
		for _, name := range names {
			if _, ok := there[name]; !ok {
				issues = append(issues, Issue{Field: join(field, name), Line: src.line(at.from), Message: "is required"})
			}
		}
	}
	require("", src.root, "id", "name", "version", "nodes", "edges", "triggers", "variables", "metadata", "settings")
	for i := range d.Nodes {
		field := "nodes[" + strconv.Itoa(i) + "]"
		require(field, src.find(field), "id", "typeId", "name", "position", "config", "inputs")
	}
	if len(issues) > 0 {
		return issues
	}
	return nil
}

// UnmarshalJSONFrom accepts members outside the schema, which version 1 of the
// protocol allowed in metadata. Parse moves them under customProperties, so
// that nothing is lost and the stored definition satisfies version 2.
func (m *Metadata) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Metadata
	aux := struct {
		*plain
		Other map[string]jsontext.Value `json:",embed"`
	}{plain: (*plain)(m)}
	if err := json.UnmarshalDecode(dec, &aux, json.RejectUnknownMembers(false)); err != nil {
		return err
	}
	if len(aux.Other) > 0 {
		b, err := json.Marshal(aux.Other, json.Deterministic(true))
		if err != nil {
			return err
		}
		m.other = b
	}
	return nil
}

// adopt moves unknown metadata under customProperties and returns the text with
// that in it.
func (d *Definition) adopt(data []byte) (jsontext.Value, error) {
	custom, other := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	if len(d.Metadata.CustomProperties) > 0 {
		if err := json.Unmarshal(d.Metadata.CustomProperties, &custom); err != nil {
			return nil, errors.New("must be an object")
		}
	}
	if err := json.Unmarshal(d.Metadata.other, &other); err != nil {
		return nil, err
	}
	for k, v := range other {
		if _, taken := custom[k]; !taken {
			custom[k] = v
		}
	}
	b, err := json.Marshal(custom, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	d.Metadata.CustomProperties, d.Metadata.other = b, nil
	if b, err = json.Marshal(d.Metadata, json.Deterministic(true)); err != nil {
		return nil, err
	}
	at := newSource(data).find("metadata")
	return slices.Concat(data[:at.from], b, data[at.to:]), nil
}

func decodeIssue(data []byte, err error) Issue {
	var sem *json.SemanticError
	var syn *jsontext.SyntacticError
	switch {
	case errors.As(err, &syn):
		return Issue{Field: fieldOf(syn.JSONPointer), Line: lineAt(data, syn.ByteOffset), Message: syn.Err.Error()}
	case errors.As(err, &sem):
		msg := "wrong type"
		if sem.JSONKind.String() != "<invalid jsontext.Kind: 0>" && sem.GoType != nil && sem.Err == nil {
			msg = "a " + sem.JSONKind.String() + " is not allowed here"
		} else if sem.Err != nil {
			msg = sem.Err.Error()
		}
		if errors.Is(sem.Err, json.ErrUnknownName) {
			msg = "unknown member"
		}
		return Issue{Field: fieldOf(sem.JSONPointer), Line: lineAt(data, sem.ByteOffset), Message: msg}
	}
	return Issue{Line: 1, Message: err.Error()}
}

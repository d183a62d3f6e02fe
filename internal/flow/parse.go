package flow

import (
	"bytes"
	"errors"
	"fmt"
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

	// Capability is set when the host lacks a capability the workflow needs.
	Capability string
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
	err := json.Unmarshal(data, &d, json.RejectUnknownMembers(true))
	if err != nil {
		return nil, nil, Issues{decodeIssue(data, err)}
	}
	if err := missing(data, &d); err != nil {
		return nil, nil, err
	}
	raw := jsontext.Value(bytes.Clone(data))
	if len(d.Metadata.other) > 0 {
		if raw, err = d.adopt(); err != nil {
			return nil, nil, Issues{{Field: "metadata", Message: err.Error()}}
		}
	}
	if err := raw.Compact(); err != nil {
		return nil, nil, Issues{{Message: err.Error()}}
	}
	return &d, raw, nil
}

// required members of the definition and of its nodes must be present even
// where an empty value is legal: an absent list is a slip, an empty one is not.
func missing(data []byte, d *Definition) error {
	var issues Issues
	root, nodes := members(data), members(nil)
	for _, name := range []string{"id", "name", "version", "nodes", "edges", "triggers", "variables", "metadata", "settings"} {
		if !root[name] {
			issues = append(issues, Issue{Field: name, Line: 1, Message: "is required"})
		}
	}
	for i := range d.Nodes {
		field := "nodes[" + strconv.Itoa(i) + "]"
		at := pointerOf(field)
		nodes = members(valueAt(data, at))
		for _, name := range []string{"id", "typeId", "name", "position", "config", "inputs"} {
			if !nodes[name] {
				issues = append(issues, Issue{Field: field + "." + name, Line: lineOf(data, at), Message: "is required"})
			}
		}
	}
	if len(issues) > 0 {
		return issues
	}
	return nil
}

func members(v []byte) map[string]bool {
	var m map[string]jsontext.Value
	if len(v) == 0 || json.Unmarshal(v, &m) != nil {
		return nil
	}
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}

// UnmarshalJSONFrom accepts members outside the schema, which version 1 of the
// protocol allowed in metadata. Parse moves them under customProperties, so
// that nothing is lost and the stored definition satisfies version 2.
func (m *Metadata) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Metadata
	aux := struct {
		*plain
		Other map[string]jsontext.Value `json:",unknown"`
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

// adopt moves unknown metadata under customProperties and encodes again.
func (d *Definition) adopt() (jsontext.Value, error) {
	custom, other := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	if len(d.Metadata.CustomProperties) > 0 {
		if err := json.Unmarshal(d.Metadata.CustomProperties, &custom); err != nil {
			return nil, errors.New("customProperties must be an object")
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
	return json.Marshal(d, json.Deterministic(true))
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

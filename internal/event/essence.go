package event

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// scoped are the members of a payload that belong to one run and no other: its
// ids, its times, and what the host notes for itself. Two runs that did the same
// differ in them (spec v2 runs.md §Diff and ancestry).
var scoped = map[string]bool{
	Extension: true, "runId": true, "interruptId": true, "childRunId": true, "parentRunId": true,
	"durationMs": true, "writtenAt": true,
}

// Essence is what an event says apart from the run that says it: type, node and
// payload in canonical form, without ids and times. Events of two runs are the
// same exactly if their essences are.
func (e *Event) Essence() []byte {
	b := append([]byte(e.Type), 0)
	b = append(append(b, e.NodeID...), 0)
	return append(b, essence(e)...)
}

// Canonical writes JSON with its members sorted and no white space. Numbers keep
// their spelling: large ones that differ must not be taken for the same.
func Canonical(v jsontext.Value) jsontext.Value {
	c := v.Clone()
	if c.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		return v
	}
	return c
}

// placed drops from an interrupt's key, where the host has made it of the run, node,
// visit and ordinal, the run: a fork inherits its source's.
func placed(e *Event, key jsontext.Value) jsontext.Value {
	if e.Type != InterruptRequested && e.Type != NodeSuspended {
		return key
	}
	if _, place, ok := bytes.Cut(key, []byte(":"+e.NodeID+":")); ok {
		return append([]byte(`"`), place...)
	}
	return key
}

func essence(e *Event) []byte {
	v, own := e.Payload.Clone(), e.Run.Opaque
	if own != "" {
		// Ids and keys derived from the run's id name it.
		v = bytes.ReplaceAll(v, []byte(own), []byte("~"))
	}
	var m map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &m) != nil {
		return Canonical(v)
	}
	names := make([]string, 0, len(m))
	for name := range m {
		if !scoped[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []byte
	for _, name := range names {
		x := m[name]
		switch name {
		case "outputs":
			x = withoutChild(x)
		case "key":
			x = placed(e, x)
		}
		x = Canonical(x)
		out, _ = jsontext.AppendQuote(out, name)
		out = append(append(append(out, ':'), x...), ',')
	}
	return out
}

// withoutChild drops the id of the child run that a sub-workflow hands out.
func withoutChild(v jsontext.Value) jsontext.Value {
	if !bytes.Contains(v, []byte(`"childRunId"`)) {
		return v
	}
	var m map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &m) != nil {
		return v
	}
	delete(m, "childRunId")
	b, err := json.Marshal(m, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return v
	}
	return b
}

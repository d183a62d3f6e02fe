package v1wire

import (
	"bytes"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// members are the members of a JSON object in their order, each value as its exact
// bytes.
type members []member

type member struct {
	name  string
	value jsontext.Value
}

// open reads an object; false for any other value.
func open(v jsontext.Value) (members, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, false
	}
	var m members
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, false
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, false
		}
		m = append(m, member{key, value.Clone()})
	}
	return m, true
}

func (m members) encode() jsontext.Value {
	size := 2
	for _, x := range m {
		size += len(x.name) + len(x.value) + 8
	}
	b := append(make([]byte, 0, size), '{')
	for i, x := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, x.name)
		b = append(b, ':')
		b = append(b, x.value...)
	}
	return append(b, '}')
}

// get is a member's value; nil if it is not there.
func (m members) get(name string) jsontext.Value {
	for _, x := range m {
		if x.name == name {
			return x.value
		}
	}
	return nil
}

// text is a member's value if that is a string that is not empty.
func (m members) text(name string) string {
	var s string
	if v := m.get(name); v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

func (m *members) set(name string, v jsontext.Value) {
	for i := range *m {
		if (*m)[i].name == name {
			(*m)[i].value = v
			return
		}
	}
	*m = append(*m, member{name, v})
}

// setText sets a member unless there is nothing to say.
func (m *members) setText(name, s string) {
	if s != "" {
		m.set(name, event.Encode(s))
	}
}

func (m *members) drop(name string) {
	out := (*m)[:0]
	for _, x := range *m {
		if x.name != name {
			out = append(out, x)
		}
	}
	*m = out
}

// edit replaces a member that is an object by what f makes of it.
func (m members) edit(name string, f func(*members)) {
	for i := range m {
		if m[i].name != name {
			continue
		}
		if inner, ok := open(m[i].value); ok {
			f(&inner)
			m[i].value = inner.encode()
		}
	}
}

// bare takes the tenant out of the members that name runs, and the interrupt that a
// node waits in: v1 has no tenant in any id.
func (m members) bare(tenant string) {
	for i := range m {
		x := &m[i]
		switch {
		case x.name == "runId", x.name == "interruptId", strings.HasSuffix(x.name, "RunId"):
			x.value = bareValue(tenant, x.value)
		case x.name == "runIds", strings.HasSuffix(x.name, "RunIds"):
			var list []jsontext.Value
			if json.Unmarshal(x.value, &list) != nil {
				continue
			}
			for k := range list {
				list[k] = bareValue(tenant, list[k])
			}
			x.value = event.Encode(list)
		}
	}
}

// bareValue is a tenant-bound id without its tenant, and any other value as it is.
func bareValue(tenant string, v jsontext.Value) jsontext.Value {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return v
	}
	if b := Bare(tenant, s); b != s {
		return event.Encode(b)
	}
	return v
}

// Bare is an id of a tenant as v1 writes it. What is no id of that tenant stays as it
// is: it belongs to somebody else, or says something else.
func Bare(tenant, id string) string {
	if x, err := ids.ParseRun(id); err == nil && x.Tenant == tenant {
		return x.Opaque
	}
	return id
}

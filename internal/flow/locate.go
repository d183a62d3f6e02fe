package flow

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// fieldOf writes a JSON pointer the way people read it: /nodes/2/config/url
// becomes nodes[2].config.url.
func fieldOf(p jsontext.Pointer) string {
	var b strings.Builder
	for tok := range p.Tokens() {
		if _, err := strconv.Atoi(tok); err == nil {
			b.WriteString("[" + tok + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(tok)
	}
	return b.String()
}

// pointerOf is the inverse of fieldOf for the paths this package makes, whose
// member names hold neither dots nor brackets, save for a last free name.
func pointerOf(field string) jsontext.Pointer {
	var p jsontext.Pointer
	for part := range strings.SplitSeq(field, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if name != "" {
			p = p.AppendToken(name)
		}
		for rest != "" {
			var idx string
			idx, rest, _ = strings.Cut(rest, "]")
			p = p.AppendToken(idx)
			rest = strings.TrimPrefix(rest, "[")
		}
	}
	return p
}

// lineOf is the line on which the value at p starts, or that of its nearest
// parent that exists.
func lineOf(data []byte, p jsontext.Pointer) int {
	for {
		if off, _, ok := find(data, p); ok {
			return lineAt(data, off)
		}
		if p == "" {
			return 1
		}
		p = p.Parent()
	}
}

func valueAt(data []byte, p jsontext.Pointer) []byte {
	_, v, _ := find(data, p)
	return v
}

// find walks data to the value at p and says where it starts.
func find(data []byte, p jsontext.Pointer) (int64, []byte, bool) {
	var base int64
	v := data
	for tok := range p.Tokens() {
		off, child, ok := step(v, tok)
		if !ok {
			return 0, nil, false
		}
		base, v = base+off, child
	}
	return base, v, true
}

// step finds one member or element of a container.
func step(v []byte, tok string) (int64, []byte, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	open, err := dec.ReadToken()
	if err != nil || open.Kind() != '{' && open.Kind() != '[' {
		return 0, nil, false
	}
	for i := 0; ; i++ {
		if k := dec.PeekKind(); k == '}' || k == ']' || k == 0 {
			return 0, nil, false
		}
		name := strconv.Itoa(i)
		if open.Kind() == '{' {
			t, err := dec.ReadToken()
			if err != nil {
				return 0, nil, false
			}
			name = t.String()
		}
		child, err := dec.ReadValue()
		if err != nil {
			return 0, nil, false
		}
		if name == tok {
			return dec.InputOffset() - int64(len(child)), bytes.Clone(child), true
		}
	}
}

func lineAt(data []byte, off int64) int {
	if off > int64(len(data)) {
		off = int64(len(data))
	}
	return 1 + bytes.Count(data[:off], []byte("\n"))
}

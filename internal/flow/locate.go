package flow

import (
	"bytes"
	"sort"
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

// source is a definition's text with the places of its members. A container is
// looked at when it is first asked for, and once: what is wrong with a definition
// may be wrong in ten thousand places.
type source struct {
	data  []byte
	lines []int // offset of each line break
	root  span
	inner map[span]map[string]span
}

type span struct{ from, to int }

func newSource(data []byte) *source {
	s := &source{data: data, root: rootOf(data), inner: map[span]map[string]span{}}
	for i, b := range data {
		if b == '\n' {
			s.lines = append(s.lines, i)
		}
	}
	return s
}

func (s *source) line(offset int) int { return 1 + sort.SearchInts(s.lines, offset) }

// lineOf is the line on which the value a path names starts, or that of the
// nearest value around it that exists.
func (s *source) lineOf(field string) int { return s.line(s.find(field).from) }

// find follows a path such as nodes[2].inputs.amount as far as it leads. Names
// may hold dots and brackets of their own: the longest that fits counts.
func (s *source) find(field string) span {
	at := s.root
	for field != "" {
		next, rest, ok := s.step(at, field)
		if !ok {
			break
		}
		at, field = next, rest
	}
	return at
}

func (s *source) step(at span, field string) (next span, rest string, ok bool) {
	inner := s.members(at)
	if field[0] == '[' {
		index, rest, _ := strings.Cut(field[1:], "]")
		if next, ok = inner[index]; ok {
			return next, rest, true
		}
	}
	field = strings.TrimPrefix(field, ".")
	for end := len(field); end > 0; end = strings.LastIndexAny(field[:end], ".[") {
		if next, ok = inner[field[:end]]; ok {
			return next, field[end:], true
		}
	}
	return span{}, "", false
}

func rootOf(data []byte) span {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	v, err := dec.ReadValue()
	if err != nil {
		return span{}
	}
	end := int(dec.InputOffset())
	return span{end - len(v), end}
}

// members says where the members of an object, by name, or the elements of an
// array, by index, are.
func (s *source) members(at span) map[string]span {
	if m, ok := s.inner[at]; ok {
		return m
	}
	m := map[string]span{}
	s.inner[at] = m
	dec := jsontext.NewDecoder(bytes.NewBuffer(s.data[at.from:at.to]))
	open, err := dec.ReadToken()
	if err != nil || open.Kind() != '{' && open.Kind() != '[' {
		return m
	}
	object := open.Kind() == '{'
	for i := 0; ; i++ {
		name := strconv.Itoa(i)
		if k := dec.PeekKind(); k == '}' || k == ']' {
			return m
		}
		if object {
			t, err := dec.ReadToken()
			if err != nil {
				return m
			}
			name = t.String()
		}
		v, err := dec.ReadValue()
		if err != nil {
			return m
		}
		end := at.from + int(dec.InputOffset())
		m[name] = span{end - len(v), end}
	}
}

func lineAt(data []byte, off int64) int {
	if off > int64(len(data)) {
		off = int64(len(data))
	}
	return 1 + bytes.Count(data[:off], []byte("\n"))
}

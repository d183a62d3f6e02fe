package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON takes a tenant's secrets, the host's and own forms out of a JSON text. What
// holds none stays as it is, byte by byte; the rest stays JSON.
func (r *Redactor) JSON(tenant string, text []byte) []byte {
	s := r.of(tenant)
	return rewrite(text, s, func(v string) string { return Own(s.text(v)) })
}

// KnownJSON is JSON without the forms, as Known is Text.
func (r *Redactor) KnownJSON(tenant string, text []byte) []byte {
	s := r.of(tenant)
	if s == nil {
		return text
	}
	return rewrite(text, s, s.text)
}

// KeysJSON is Keys for every string of a JSON text, to the byte where there is no key.
func KeysJSON(text []byte) []byte {
	if plain := string(text); !mayHoldOwn(plain) && !mayHoldForeign(plain) {
		return text
	}
	return rewrite(text, nil, Keys)
}

// rewrite applies change to every string of a JSON text, names included, and to
// numbers, which become strings if it changes them.
func rewrite(text []byte, s *set, change func(string) string) []byte {
	if !worthwhile(text, s, change) {
		return text
	}
	out := make([]byte, 0, len(text))
	changed := false
	for i := 0; i < len(text); {
		end, kind := token(text, i)
		piece := text[i:end]
		switch kind {
		case stringToken:
			var v string
			if json.Unmarshal(piece, &v) == nil {
				if w := change(v); w != v {
					piece, changed = quote(w), true
				}
			}
		case numberToken:
			if w := change(string(piece)); w != string(piece) {
				piece, changed = quote(w), true
			}
		}
		out = append(out, piece...)
		i = end
	}
	if !changed {
		return text
	}
	return out
}

// worthwhile tells whether a text may hold something: it does so as it stands, or it
// has escapes, behind which anything may be.
func worthwhile(text []byte, s *set, change func(string) string) bool {
	if len(text) < MinLength {
		return false
	}
	if s != nil && bytes.IndexByte(text, '\\') >= 0 {
		return true
	}
	plain := string(text)
	return change(plain) != plain
}

type tokenKind uint8

const (
	otherToken tokenKind = iota
	stringToken
	numberToken
)

// token finds the end of the token at i.
func token(text []byte, i int) (int, tokenKind) {
	switch c := text[i]; {
	case c == '"':
		for j := i + 1; j < len(text); j++ {
			switch text[j] {
			case '\\':
				j++
			case '"':
				return j + 1, stringToken
			}
		}
		return len(text), otherToken
	case c == '-' || c >= '0' && c <= '9':
		j := i + 1
		for j < len(text) && strings.IndexByte("+-.eE0123456789", text[j]) >= 0 {
			j++
		}
		return j, numberToken
	}
	return i + 1, otherToken
}

func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return []byte(`"` + Masked + `"`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Values takes secrets out of a tree of values such as the details of an error. What
// it is given is not changed.
func (r *Redactor) Values(tenant string, m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		return omitted("the details cannot be written as JSON")
	}
	return decoded(m, b, r.JSON(tenant, b))
}

// decoded is a map whose text has been cleaned, or the map itself if nothing was found.
func decoded(m map[string]any, text, clean []byte) map[string]any {
	if bytes.Equal(clean, text) {
		return m
	}
	var out map[string]any
	dec := json.NewDecoder(bytes.NewReader(clean))
	dec.UseNumber()
	if dec.Decode(&out) != nil {
		return omitted("the details hold a secret")
	}
	return out
}

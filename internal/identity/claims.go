package identity

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// claims are the members of a token. Reading one strictly is the only way to it: a
// member of another type counts as absent where absence is refused.
type claims map[string]jsontext.Value

// parseClaims reads claims. Members that occur twice are refused.
func parseClaims(payload []byte) (claims, error) {
	var c claims
	err := json.Unmarshal(payload, &c)
	return c, err
}

// text is a member that is a text.
func (c claims) text(name string) string {
	var s string
	if v := c.find(name); v != nil && json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// at is a member that is a NumericDate (RFC 7519 §2). A fraction is dropped.
func (c claims) at(name string) (time.Time, bool) {
	var n float64
	v, ok := c[name]
	if !ok || json.Unmarshal(v, &n) != nil || n < 0 || n > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(int64(math.Floor(n)), 0), true
}

// texts is a member that is a list of texts, or one text; ok is false if it is
// anything else.
func (c claims) texts(name string) (list []string, ok bool) {
	v := c.find(name)
	switch {
	case v == nil || v.Kind() == 'n':
		return nil, true
	case v.Kind() == '"':
		return []string{c.text(name)}, true
	}
	return list, json.Unmarshal(v, &list) == nil
}

// words is a member that holds names parted by spaces, or a list of names.
func (c claims) words(name string) ([]string, bool) {
	list, ok := c.texts(name)
	var out []string
	for _, s := range list {
		out = append(out, strings.Fields(s)...)
	}
	slices.Sort(out)
	return slices.Compact(out), ok
}

// find looks a member up by its name or, if there is none, by the path that the
// name's dots make of it: realm_access.roles.
func (c claims) find(name string) jsontext.Value {
	if v, ok := c[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	v, there := c[first]
	if !ok || !there || v.Kind() != '{' {
		return nil
	}
	inner, err := parseClaims(v)
	if err != nil {
		return nil
	}
	return inner.find(rest)
}

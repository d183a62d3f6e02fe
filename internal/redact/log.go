package redact

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
)

// secretKeys are the names of attributes whose values are never shown. A name is
// compared without case and separators, so that api_key, apiKey and X-API-Key
// are one; it also counts as the end of a longer name.
var secretKeys = []string{
	"authorization", "apikey", "bootstrapkey", "token", "secret", "password", "passwd", "passphrase",
	"cookie", "credential", "credentials", "privatekey", "signingkey", "masterkey",
}

func secretKey(key string) bool {
	plain := strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(key))
	for _, s := range secretKeys {
		if strings.HasSuffix(plain, s) {
			return true
		}
	}
	return false
}

// Handler takes secrets out of whatever is logged through it: messages, attributes,
// and whole structures that a handler would encode by itself. r may be nil.
func Handler(h slog.Handler, r *Redactor) slog.Handler { return clean{h, r} }

type clean struct {
	slog.Handler
	r *Redactor
}

// Handle implements slog.Handler.
func (c clean) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, c.r.Line(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(c.deep(a))
		return true
	})
	return c.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (c clean) WithAttrs(as []slog.Attr) slog.Handler {
	list := make([]slog.Attr, len(as))
	for i, a := range as {
		list[i] = c.deep(a)
	}
	return clean{c.Handler.WithAttrs(list), c.r}
}

// WithGroup implements slog.Handler.
func (c clean) WithGroup(name string) slog.Handler { return clean{c.Handler.WithGroup(name), c.r} }

// Attr hides secrets in an attribute.
func (r *Redactor) Attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	if secretKey(a.Key) {
		if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
			return a
		}
		return slog.String(a.Key, Masked)
	}
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(r.Line(a.Value.String()))
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(r.Line(v.Error()))
		case []byte:
			a.Value = slog.StringValue(r.Line(string(v)))
		case interface{ String() string }:
			a.Value = slog.StringValue(r.Line(v.String()))
		}
	}
	return a
}

// deep hides secrets in an attribute, the members of a group, and a value that a
// JSON handler would encode by itself, such as a header or a struct with a key.
func (c clean) deep(a slog.Attr) slog.Attr {
	a = c.r.Attr(a)
	switch a.Value.Kind() {
	case slog.KindGroup:
		list := make([]slog.Attr, 0, len(a.Value.Group()))
		for _, m := range a.Value.Group() {
			list = append(list, c.deep(m))
		}
		a.Value = slog.GroupValue(list...)
	case slog.KindAny:
		a.Value = slog.AnyValue(c.structure(a.Value.Any()))
	}
	return a
}

// structure shows a value by its JSON, redacted member by member. What has no
// JSON is left to the handler, which shows it by its name.
func (c clean) structure(v any) any {
	if h, ok := v.(http.Header); ok {
		v = map[string][]string(h)
	}
	switch v.(type) {
	case nil, bool, int, int64, float64:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber() // large numbers stay exact
	if dec.Decode(&tree) != nil {
		return v
	}
	return c.prune(tree)
}

func (c clean) prune(v any) any {
	switch t := v.(type) {
	case string:
		return c.r.Line(t)
	case []any:
		for i := range t {
			t[i] = c.prune(t[i])
		}
	case map[string]any:
		for k, m := range t {
			if secretKey(k) && m != nil && m != "" {
				t[k] = Masked
				continue
			}
			if clean := c.r.Line(k); clean != k {
				delete(t, k)
				k = clean
			}
			t[k] = c.prune(m)
		}
	}
	return v
}

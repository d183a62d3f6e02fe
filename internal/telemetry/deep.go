package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
)

// deep redacts an attribute, the members of a group, and a value that a JSON
// handler would encode by itself, such as a header or a struct with a key in it.
func deep(a slog.Attr) slog.Attr {
	a = Redact(nil, a)
	switch a.Value.Kind() {
	case slog.KindGroup:
		list := make([]slog.Attr, 0, len(a.Value.Group()))
		for _, m := range a.Value.Group() {
			list = append(list, deep(m))
		}
		a.Value = slog.GroupValue(list...)
	case slog.KindAny:
		a.Value = slog.AnyValue(structure(a.Value.Any()))
	}
	return a
}

// structure shows a value by its JSON, redacted member by member. What has no
// JSON is left to the handler, which shows it by its name.
func structure(v any) any {
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
	return prune(tree)
}

func prune(v any) any {
	switch t := v.(type) {
	case string:
		return Scrub(t)
	case []any:
		for i := range t {
			t[i] = prune(t[i])
		}
	case map[string]any:
		for k, m := range t {
			if secretKey(k) && m != nil && m != "" {
				t[k] = Masked
				continue
			}
			t[k] = prune(m)
		}
	}
	return v
}

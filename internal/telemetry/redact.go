package telemetry

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
)

// Masked stands for a secret.
const Masked = "[hidden]"

// secretKeys are the names of attributes whose values are never shown. A name is
// compared without case and separators, so that api_key, apiKey and X-API-Key
// are one; it also counts as the end of a longer name.
var secretKeys = []string{
	"authorization", "apikey", "bootstrapkey", "token", "secret", "password", "passwd", "passphrase",
	"cookie", "credential", "credentials", "privatekey", "signingkey",
}

// secretValues are what gives a secret away wherever it turns up: an API key of
// ours, an interrupt token, and what follows the name of a scheme as a credential
// does.
var secretValues = regexp.MustCompile(`fermata_[A-Za-z0-9_-]{16,}|ow2\.[A-Za-z0-9._~-]{16,}|(?i:\bbearer\s+)[A-Za-z0-9+/=._~-]{8,}|(?i:\bbasic\s+)[A-Za-z0-9+/=]{16,}`)

// Scrub takes secrets out of a text.
func Scrub(s string) string {
	if !strings.Contains(s, "fermata_") && !strings.Contains(s, "ow2.") && !mayHoldScheme(s) {
		return s
	}
	return secretValues.ReplaceAllStringFunc(s, func(m string) string {
		if i := strings.IndexAny(m, " \t"); i >= 0 && !strings.HasPrefix(m, "fermata_") {
			return m[:i+1] + Masked
		}
		return Masked
	})
}

// mayHoldScheme is a cheap test that keeps the expression off the common case.
func mayHoldScheme(s string) bool {
	l := strings.ToLower(s)
	return strings.Contains(l, "bearer") || strings.Contains(l, "basic")
}

// Redact hides secrets in an attribute. It is a slog ReplaceAttr function.
func Redact(_ []string, a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	if secretKey(a.Key) {
		if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
			return a
		}
		return slog.String(a.Key, Masked)
	}
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Scrub(a.Value.String()))
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(Scrub(v.Error()))
		case []byte:
			a.Value = slog.StringValue(Scrub(string(v)))
		case interface{ String() string }:
			a.Value = slog.StringValue(Scrub(v.String()))
		}
	}
	return a
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

// clean takes secrets out of messages, which no ReplaceAttr sees in every
// handler, and out of whole structures that a handler would encode by itself.
type clean struct{ slog.Handler }

// Handle implements slog.Handler.
func (c clean) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, Scrub(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(deep(a))
		return true
	})
	return c.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (c clean) WithAttrs(as []slog.Attr) slog.Handler {
	list := make([]slog.Attr, len(as))
	for i, a := range as {
		list[i] = deep(a)
	}
	return clean{c.Handler.WithAttrs(list)}
}

// WithGroup implements slog.Handler.
func (c clean) WithGroup(name string) slog.Handler { return clean{c.Handler.WithGroup(name)} }

package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// textHandler writes a line for a person: time, level, message, key=value.
type textHandler struct {
	mu     *sync.Mutex
	w      io.Writer
	level  slog.Level
	colour bool
	prefix string // of attribute names: the groups opened
	attrs  string // written already
}

func newTextHandler(w io.Writer, level slog.Level, colour bool) *textHandler {
	return &textHandler{mu: &sync.Mutex{}, w: w, level: level, colour: colour}
}

// Enabled implements slog.Handler.
func (h *textHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

const (
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// levels are the names people read, with their colours.
func levelName(l slog.Level) (name, colour string) {
	switch {
	case l >= slog.LevelError:
		return "ERROR", "\x1b[31m"
	case l >= slog.LevelWarn:
		return "WARN ", "\x1b[33m"
	case l >= slog.LevelInfo:
		return "INFO ", "\x1b[32m"
	}
	return "DEBUG", "\x1b[36m"
}

// Handle implements slog.Handler.
func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if !r.Time.IsZero() {
		b.WriteString(h.paint(dim, r.Time.Local().Format("15:04:05.000")))
		b.WriteByte(' ')
	}
	name, colour := levelName(r.Level)
	b.WriteString(h.paint(colour, name))
	b.WriteByte(' ')
	b.WriteString(oneLine(r.Message))
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		h.attr(&b, h.prefix, a)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h *textHandler) WithAttrs(as []slog.Attr) slog.Handler {
	c := *h
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range as {
		c.attr(&b, c.prefix, a)
	}
	c.attrs = b.String()
	return &c
}

// WithGroup implements slog.Handler.
func (h *textHandler) WithGroup(name string) slog.Handler {
	c := *h
	if name != "" {
		c.prefix += name + "."
	}
	return &c
}

func (h *textHandler) attr(b *strings.Builder, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, m := range v.Group() {
			h.attr(b, prefix, m)
		}
		return
	}
	b.WriteByte(' ')
	b.WriteString(h.paint(dim, oneLine(prefix+a.Key)+"="))
	b.WriteString(quoted(show(v)))
}

func (h *textHandler) paint(colour, s string) string {
	if !h.colour {
		return s
	}
	return colour + s + reset
}

func show(v slog.Value) string {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().UTC().Format(time.RFC3339)
	case slog.KindDuration:
		return v.Duration().Round(time.Microsecond).String()
	case slog.KindAny:
		return fmt.Sprintf("%+v", v.Any())
	}
	return v.String()
}

// quoted puts a value in quotes where it would not read as one word. It also
// keeps control characters from reaching the terminal.
func quoted(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r)
	}) {
		return strconv.Quote(s)
	}
	return s
}

// oneLine makes control characters of a message visible.
func oneLine(s string) string {
	if !slices.ContainsFunc([]rune(s), func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

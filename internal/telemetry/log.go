package telemetry

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/fermata-run/fermata/internal/redact"
)

// Options say how to log.
type Options struct {
	Level    string // debug, info, warn or error; empty for info
	Format   string // auto, text or json; empty for auto
	Terminal bool   // the writer is a terminal: auto means text
	Colour   bool   // the terminal shows colours
}

// New makes a logger. Whatever it is given, no secret it can recognise leaves it.
func New(w io.Writer, o Options) (*slog.Logger, error) {
	var level slog.Level
	if o.Level != "" {
		if err := level.UnmarshalText([]byte(o.Level)); err != nil {
			return nil, fmt.Errorf("%q is not a log level: want debug, info, warn or error", o.Level)
		}
	}
	text := o.Format == "text" || o.Terminal
	switch o.Format {
	case "", "auto", "text":
	case "json":
		text = false
	default:
		return nil, fmt.Errorf("%q is not a log format: want auto, text or json", o.Format)
	}
	var h slog.Handler
	if text {
		h = newTextHandler(w, level, o.Colour)
	} else {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: Redact})
	}
	return slog.New(redact.Handler(h, forms)), nil
}

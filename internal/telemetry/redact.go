package telemetry

import (
	"log/slog"

	"github.com/fermata-run/fermata/internal/redact"
)

// Masked stands for a secret.
const Masked = redact.Masked

// forms knows no values: those are known to the host, which puts a redactor of its
// own before the logger.
var forms *redact.Redactor

// Scrub takes secrets out of a text.
func Scrub(s string) string { return forms.Line(s) }

// Redact hides secrets in an attribute. It is a slog ReplaceAttr function.
func Redact(_ []string, a slog.Attr) slog.Attr { return forms.Attr(a) }

package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// plain makes text from elsewhere safe to show: what a workflow, a model or a
// host says must not move the cursor or recolour the terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r) || bidi(r):
			return '\uFFFD'
		}
		return r
	}, s)
}

// bidi controls can make an approval read as something it is not.
func bidi(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

// paragraphs is plain for text of several lines, each behind a prefix.
func paragraphs(s, prefix string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		b.WriteString(prefix + plain(strings.TrimSuffix(line, "\r")) + "\n")
	}
	return b.String()
}

// maskControls writes the control characters that JSON allows inside strings as
// escapes.
func maskControls(b []byte) []byte {
	if !bytes.ContainsFunc(b, hostile) {
		return b
	}
	var out bytes.Buffer
	for _, r := range string(b) {
		if hostile(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

func hostile(r rune) bool { return r >= 0x7f && r <= 0x9f || bidi(r) }

// short cuts text to a width, with a sign that something is missing.
func short(s string, width int) string {
	if utf8.RuneCountInString(s) <= width || width < 1 {
		return s
	}
	r := []rune(s)
	return string(r[:width-1]) + "…"
}

// table aligns columns. The last one is left as it is.
type table struct {
	rows [][]string
}

func newTable(head ...string) *table { return &table{rows: [][]string{head}} }

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = plain(cells[i])
	}
	t.rows = append(t.rows, cells)
}

func (t *table) print(w io.Writer) {
	widths := make([]int, len(t.rows[0]))
	for _, r := range t.rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// stamp shows a time to a person; a dash for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// span shows a duration to a person: exact where it is short, round where not.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0ms"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

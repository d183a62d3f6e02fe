package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/fermata-run/fermata/client"
)

// liveView draws the board in place: one line a node, redrawn as things change.
type liveView struct {
	w      io.Writer
	board  *board
	size   func() Size
	colour bool

	drawn int // lines on the screen that are ours
	frame int // of the spinner
	held  bool
	now   time.Time
}

func newLiveView(w io.Writer, b *board, size func() Size, colour bool) *liveView {
	return &liveView{w: w, board: b, size: size, colour: colour, now: time.Now()}
}

const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[2K"
	clearBelow = "\x1b[J"
	resetStyle = "\x1b[0m"
)

var spinner = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// glyph is the sign of a state and its colour.
func (v *liveView) glyph(s state) (string, string) {
	switch s {
	case done:
		return "✓", "\x1b[32m"
	case broken:
		return "✗", "\x1b[31m"
	case waiting:
		return "?", "\x1b[33m"
	case retrying:
		return "↻", "\x1b[33m"
	case skipped:
		return "–", "\x1b[2m"
	case cancelled:
		return "⊘", "\x1b[2m"
	}
	return spinner[v.frame%len(spinner)], "\x1b[36m"
}

func (v *liveView) event(_ string, ev *client.Event, r *row) {
	if ev.Time.After(v.now) {
		v.now = ev.Time
	}
	if r == nil {
		if s := remark(ev); s != "" {
			v.note(s)
		}
		return
	}
	v.draw(false)
}

func (v *liveView) tick(now time.Time) {
	v.now = now
	v.frame++
	v.draw(false)
}

// note puts a line above the board.
func (v *liveView) note(line string) {
	v.erase()
	fmt.Fprintln(v.w, line)
	v.draw(false)
}

func (v *liveView) hold() {
	v.erase()
	v.held = true
	io.WriteString(v.w, showCursor) //nolint:errcheck // a terminal that is gone shows nothing
}

func (v *liveView) release() {
	v.held = false
	v.draw(false)
}

func (v *liveView) close() {
	v.held = false
	v.draw(true)
	v.drawn = 0
	io.WriteString(v.w, showCursor) //nolint:errcheck // a terminal that is gone shows nothing
}

func (v *liveView) erase() {
	if v.drawn > 0 {
		fmt.Fprintf(v.w, "\x1b[%dA\r%s", v.drawn, clearBelow)
		v.drawn = 0
	}
}

// draw writes the board over the one before, in one piece. All of it is shown at
// the end; before that, as much as the terminal holds.
func (v *liveView) draw(all bool) {
	if v.held {
		return
	}
	size := v.size()
	lines := v.render(size.Width)
	if most := size.Height - 1; !all && most > 0 && len(lines) > most {
		lines = v.fit(lines, most)
	}
	var b strings.Builder
	b.WriteString(hideCursor)
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", v.drawn)
	}
	for _, l := range lines {
		b.WriteString(clearLine + l + "\n")
	}
	b.WriteString(clearBelow)
	v.drawn = len(lines)
	io.WriteString(v.w, b.String()) //nolint:errcheck // a terminal that is gone shows nothing
}

func (v *liveView) render(width int) []string {
	lines := make([]string, len(v.board.rows))
	for i, r := range v.board.rows {
		g, c := v.glyph(r.state)
		text := r.title()
		if t := r.took(v.now); r.state != skipped && !r.started.IsZero() {
			text += "  " + span(t)
		}
		if r.note != "" {
			text += "  " + plain(r.note)
		}
		pad := strings.Repeat("  ", r.depth)
		text = clip(text, width-len(pad)-3)
		if v.colour {
			g = c + g + resetStyle
		}
		lines[i] = pad + g + " " + text
	}
	return lines
}

// fit leaves finished nodes out, the oldest first, until the rest fits.
func (v *liveView) fit(lines []string, most int) []string {
	gone, over := 0, len(lines)-most+1
	var out []string
	for i, r := range v.board.rows {
		if gone < over && r.state.over() {
			gone++
			continue
		}
		out = append(out, lines[i])
	}
	head := []string{fmt.Sprintf("  … %s not shown", plural(len(lines)-min(len(out), most-1), "node"))}
	return append(head, out[max(0, len(out)-most+1):]...)
}

// clip cuts a text to so many columns.
func clip(s string, columns int) string {
	total := 0
	for _, r := range s {
		total += columnsOf(r)
	}
	if total <= columns {
		return s
	}
	used := 0
	for i, r := range s {
		if used += columnsOf(r); used > columns-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// columnsOf is how wide a character is on most terminals.
func columnsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115F, r >= 0x2E80 && r <= 0xA4CF, r >= 0xAC00 && r <= 0xD7A3, r >= 0xF900 && r <= 0xFAFF,
		r >= 0xFE30 && r <= 0xFE6F, r >= 0xFF00 && r <= 0xFF60, r >= 0xFFE0 && r <= 0xFFE6,
		r >= 0x1F300 && r <= 0x1FAFF, r >= 0x20000 && r <= 0x3FFFD:
		return 2
	}
	return 1
}

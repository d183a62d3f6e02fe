package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
)

// view shows how a run goes on. Its methods are called from one goroutine.
type view interface {
	event(run string, ev *client.Event, changed *row) // after the board took it
	note(line string)                                 // something to say beside the board
	tick(now time.Time)                               // time has passed
	hold()                                            // a question is about to be asked
	release()                                         // it has been answered
	close()                                           // the run is over, or nobody watches any more
}

// newView chooses how to show: a board drawn in place on a terminal, lines
// elsewhere, events for programs.
func (a *app) newView(b *board, asJSON bool) view {
	switch {
	case asJSON:
		return &eventView{out: a.env.Stdout, err: a.env.Stderr}
	case a.isTerminal(a.env.Stderr):
		return newLiveView(a.env.Stderr, b, func() Size {
			s, _ := a.env.Terminal(a.env.Stderr)
			return s
		}, a.colours(a.env.Stderr))
	}
	return &lineView{out: a.env.Stderr}
}

// eventView prints each event as one line of JSON.
type eventView struct{ out, err io.Writer }

func (v *eventView) event(_ string, ev *client.Event, _ *row) {
	fmt.Fprintf(v.out, "%s\n", ev.Raw)
}
func (v *eventView) note(line string) { fmt.Fprintln(v.err, line) }
func (v *eventView) tick(time.Time)   {}
func (v *eventView) hold()            {}
func (v *eventView) release()         {}
func (v *eventView) close()           {}

// lineView prints a line for each change.
type lineView struct{ out io.Writer }

func (v *lineView) event(_ string, ev *client.Event, r *row) {
	at := ev.Time.Local().Format("15:04:05")
	switch {
	case r != nil && ev.Type != "output.chunk":
		line := fmt.Sprintf("%s  %-9s  %s%s", at, r.state, strings.Repeat("  ", r.depth), r.title())
		if r.state.over() && !r.started.IsZero() {
			line += "  " + span(r.took(ev.Time))
		}
		if r.note != "" {
			line += "  " + plain(r.note)
		}
		fmt.Fprintln(v.out, line)
	default:
		if s := remark(ev); s != "" {
			fmt.Fprintf(v.out, "%s  %s\n", at, s)
		}
	}
}

func (v *lineView) note(line string) { fmt.Fprintln(v.out, line) }
func (v *lineView) tick(time.Time)   {}
func (v *lineView) hold()            {}
func (v *lineView) release()         {}
func (v *lineView) close()           {}

// remark is what an event about no single node says to a person; empty for
// nothing.
func remark(ev *client.Event) string {
	var d details
	_ = ev.Decode(&d) // what is not there stays empty
	switch ev.Type {
	case "run.paused":
		return strings.TrimSuffix("the run is paused: "+plain(d.Reason), ": ")
	case "run.resumed":
		return "the run goes on"
	case "log.appended":
		if len(d.Mark) > 0 {
			return "" // the run's own bookkeeping
		}
		return strings.TrimPrefix(plain(ev.NodeID)+": "+plain(d.Message), ": ")
	}
	return ""
}

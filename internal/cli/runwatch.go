package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// lookEvery is how often files are looked at for changes.
const lookEvery = 250 * time.Millisecond

var errChanged = errors.New("a file has changed")

// runAgain runs the file, and again whenever it or a neighbour changes. A run
// that is still going on by then is cancelled. Only Ctrl-C ends it.
func (a *app) runAgain(ctx context.Context, o runOptions) error {
	for {
		before := fingerprint(a.workFiles(o.file))
		once, stop := context.WithCancelCause(ctx)
		ended := make(chan error, 1)
		go func() { ended <- a.runOnce(once, o) }()
		changed := a.waitForChange(ctx, o.file, before, ended, stop)
		stop(nil)
		if !changed {
			return nil
		}
		a.note("\n— %s changed, running again —", o.file)
	}
}

// waitForChange returns when a file has changed and the run has ended; false
// means that somebody wants to stop.
func (a *app) waitForChange(ctx context.Context, file, before string, ended chan error, stop context.CancelCauseFunc) bool {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	running, changed := true, false
	for {
		select {
		case err := <-ended:
			running = false
			if changed || ctx.Err() != nil {
				return changed && ctx.Err() == nil
			}
			if err != nil {
				a.fail(err)
			}
			a.note("watching %s; Ctrl-C ends it", file)
		case <-ticker.C:
			if changed || fingerprint(a.workFiles(file)) == before {
				continue
			}
			if changed = true; !running {
				return true
			}
			stop(errChanged)
		case <-ctx.Done():
			if running {
				<-ended // it ends in order, as it has the same context
			}
			return false
		}
	}
}

func (a *app) workFiles(file string) []string {
	w, err := neighbours(file)
	if err != nil {
		return []string{file}
	}
	return append([]string{file}, w...)
}

// fingerprint changes when a file's size or time of change does.
func fingerprint(files []string) string {
	var b strings.Builder
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			fmt.Fprintf(&b, "%s -\n", f)
			continue
		}
		fmt.Fprintf(&b, "%s %d %d\n", f, info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
}

package cli

import (
	"context"
	"fmt"
)

// loadFolder registers the workflows of a folder at the start. A bad file is
// reported and counted; it stops the start only where that is asked for.
func (a *app) loadFolder(ctx context.Context, h Host, dir string, strict bool) error {
	files, err := folder(dir)
	if err != nil {
		return fmt.Errorf("workflows: %w", err)
	}
	loaded, bad := 0, 0
	for _, f := range files {
		r, err := apply(ctx, h.Client(), f)
		if err != nil {
			return fmt.Errorf("workflows: %s: %w", f, err)
		}
		if r.Result != "refused" {
			loaded++
			continue
		}
		bad++
		for _, line := range r.Faults {
			a.note("%s", line)
		}
	}
	a.say("  workflows  %s from %s", plural(loaded, "workflow"), dir)
	if bad > 0 {
		a.note("warning: %s in %s refused", plural(bad, "file"), dir)
		if strict {
			return fmt.Errorf("workflows: %s refused, and --strict is given", plural(bad, "file"))
		}
	}
	return nil
}

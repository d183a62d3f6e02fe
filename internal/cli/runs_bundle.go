package cli

import (
	"encoding/json"
	"os"

	"github.com/spf13/cobra"
)

const bundleAbout = `Reads what there is to know of a run, in one JSON document to hand on with a report of a fault: the run,
its log from the beginning, and how they were masked. Sensitive values, known credentials and inputs
that the workflow does not declare are not in it. Still, look at it before it leaves the house: what a
workflow calls ordinary is there as it is.

  fermata runs bundle default/01m8q… --out bundle.json`

func (a *app) runsBundle(t *target) *cobra.Command {
	var out string
	var most int
	cmd := &cobra.Command{Use: "bundle RUN", Short: "Write a run's debug bundle", Long: bundleAbout, Args: exactly("a run id")}
	cmd.Flags().StringVar(&out, "out", "", "file to write, which must not be there yet; standard output without it")
	cmd.Flags().IntVar(&most, "max-events", 0, "at most this many events, the first ones; 0 for as many as fit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if most < 0 {
			return usage("--max-events: want a number from 0")
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		b, err := c.GetDebugBundle(cmd.Context(), runID(args[0]), most)
		if err != nil {
			return err
		}
		if out == "" {
			err = a.document(b.Raw)
		} else {
			err = a.newFile(out, b.Raw)
		}
		if err != nil {
			return err
		}
		if b.Truncated {
			a.note("The bundle does not hold everything: %s. It has the first %d events.", plain(b.TruncatedReason), len(b.Events))
		}
		if out != "" {
			a.say("Wrote %s: %d events.", out, len(b.Events))
		}
		return nil
	}
	return cmd
}

// newFile writes a document to a file that is not there yet, for its owner alone. A
// file that could not be written whole does not stay.
func (a *app) newFile(path string, doc json.RawMessage) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return usage("--out: %w", err)
	}
	_, err = f.Write(append(a.secrets.KnownJSON("", doc), '\n'))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(path) //nolint:errcheck // the first failure is what matters
	}
	return err
}

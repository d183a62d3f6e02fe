package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/config"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const pruneAbout = `Lets go of runs that are over, in the data folder of a host that is stopped. A host that runs does
so by itself, every ten minutes or so.

Without --older-than and --keep the bounds of the settings hold (see ` + "`fermata config`" + `). What is still
needed stays: a run that is not over, one whose parent or child is not, and whatever waits for it.
From then on every request that names such a run is answered with run_expired.`

// pruned is what `runs prune --json` prints.
type pruned struct {
	At      string         `json:"at"`
	DryRun  bool           `json:"dryRun"`
	Runs    int            `json:"runs"`
	Tenants map[string]int `json:"tenants"`
}

func (a *app) runsPrune() *cobra.Command {
	var r host.Prune
	var older string
	var keep int
	cmd := &cobra.Command{Use: "prune", Short: "Let go of old runs in a data folder", Long: pruneAbout, Args: noArgs}
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(settings, config.ServeOnly)
	fs := cmd.Flags()
	for _, name := range []string{config.FileFlag, "data", "store", "retention-max-age", "retention-max-runs", "retention-tenants"} {
		fs.AddFlag(settings.Lookup(name))
	}
	fs.StringVar(&older, "older-than", "", "let go of runs that ended longer ago than this, such as 30d or 12h")
	fs.IntVar(&keep, "keep", 0, "let go of all runs of a tenant but this many, those that ended last")
	fs.StringVar(&r.Tenant, "tenant", "", "only runs of this tenant")
	fs.BoolVar(&r.DryRun, "dry-run", false, "only say how many there are")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if fs.Changed("older-than") {
			d, err := config.Duration(older)
			if err != nil {
				return usage("--older-than: %q %w", older, err)
			}
			r.OlderThan = &d
		}
		if fs.Changed("keep") {
			if keep < 0 {
				return usage("--keep: %d is not a number of runs", keep)
			}
			r.Keep = &keep
		}
		cfg, _, err := config.Load(config.Input{Flags: fs, Getenv: a.env.Getenv})
		if err != nil {
			return usageError{err}
		}
		out, err := a.prune(cmd.Context(), cfg, r)
		if err != nil {
			return err
		}
		return a.reportPruned(out, r.DryRun, *asJSON)
	}
	return cmd
}

// prune opens the host of a data folder without starting it.
func (a *app) prune(ctx context.Context, cfg config.Config, r host.Prune) (out host.Pruned, err error) {
	if a.env.OpenHost == nil {
		return out, errors.New("this program carries no host")
	}
	if cfg.Store != "" {
		return a.pruneOpen(ctx, cfg, r)
	}
	if cfg.Data == "" {
		return out, usage("data: the environment does not say where your files are; give a folder by --data")
	}
	// Opening would make a database, and a key that nobody is shown.
	if _, err := os.Stat(filepath.Join(cfg.Data, "fermata.db")); errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("no host has kept anything in %q; give its folder by --data", cfg.Data)
	}
	if held, err := locked(filepath.Join(cfg.Data, lockName)); err == nil && held {
		return out, fmt.Errorf("a host is using %s; it lets go of old runs by itself, so stop it first or leave it to that", cfg.Data)
	}
	return a.pruneOpen(ctx, cfg, r)
}

func (a *app) pruneOpen(ctx context.Context, cfg config.Config, r host.Prune) (out host.Pruned, err error) {
	log, err := a.logger(cfg, a.env.Stderr)
	if err != nil {
		return out, usageError{err}
	}
	h, err := a.env.OpenHost(ctx, cfg, log)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, stopHost(h, 10*time.Second)) }()
	p, ok := h.(Pruner)
	if !ok {
		return out, errors.New("this host cannot let go of runs")
	}
	return p.Prune(ctx, r)
}

func (a *app) reportPruned(out host.Pruned, dry, asJSON bool) error {
	if asJSON {
		return a.value(pruned{At: out.At.Format(time.RFC3339), DryRun: dry, Runs: out.Total, Tenants: out.Tenants})
	}
	names := make([]string, 0, len(out.Tenants))
	for n := range out.Tenants {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		a.say("%s  %s", n, plural(out.Tenants[n], "run"))
	}
	what := "expired"
	if dry {
		what = "would expire"
	}
	a.say("%s %s, by the clock of %s.", plural(out.Total, "run"), what, stamp(out.At))
	return nil
}

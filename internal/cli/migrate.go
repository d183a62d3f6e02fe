package cli

import (
	"context"
	"errors"

	"github.com/fermata-run/fermata/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Schema says how far a shared database has been migrated.
type Schema struct {
	Version int `json:"version"` // migrations the database has had
	Needs   int `json:"needs"`   // the version a program must know to work with it
	Newest  int `json:"newest"`  // migrations this program has

	Partitions int `json:"partitions"` // of each table that grows with runs; 0 for none
}

// Migrator changes the schema of a database that several hosts share.
type Migrator interface {
	Status(ctx context.Context, store string) (Schema, error)
	// Up makes tables in so many partitions; 0 for none, or for those that are there.
	Up(ctx context.Context, store string, partitions int) (Schema, error)
}

const migrateAbout = `Looks after the schema of a database that several hosts share (--store).

A host brings the schema up to its own version when it starts. To do that before, with hosts of the
version before still working, run ` + "`fermata migrate up`" + `. Migrations go forward only. A host that is
too old for what is there says so and does not start.

With --partitions the tables of a new database that grow with runs are made in so many parts, by hash
of the run. That is decided once: to change it, restore a backup into a new database.`

func (a *app) migrateCommand() *cobra.Command {
	partitions := 0
	up := a.migration("up", "Bring the database to the schema of this program", func(m Migrator, ctx context.Context, store string) (Schema, error) {
		if partitions < 0 || partitions == 1 || partitions > 256 {
			return Schema{}, usage("partitions: %d is not 0, and not from 2 to 256", partitions)
		}
		return m.Up(ctx, store, partitions)
	})
	up.Flags().IntVar(&partitions, "partitions", 0, "parts of each table that grows with runs, from 2 to 256, when a database is made; 0 for none")
	g := group("migrate", "Look after the schema of a shared database",
		a.migration("status", "Say how far the database has been migrated", Migrator.Status), up)
	g.Long = migrateAbout
	return g
}

func (a *app) migration(use, short string, do func(Migrator, context.Context, string) (Schema, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: use, Short: short, Args: noArgs}
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(settings, config.ServeOnly)
	for _, name := range []string{config.FileFlag, "data", "store"} {
		cmd.Flags().AddFlag(settings.Lookup(name))
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, _, err := a.settings(cmd)
		switch {
		case err != nil:
			return usageError{err}
		case a.env.Migrator == nil:
			return errors.New("this program knows no shared database")
		case cfg.Store == "":
			return usage("store: give the address of the database; a host without one migrates its folder by itself")
		}
		is, err := do(a.env.Migrator, cmd.Context(), cfg.Store)
		if err != nil {
			return err
		}
		if asJSON {
			return a.value(is)
		}
		a.say("database  %s", config.HidePassword(cfg.Store))
		a.say("schema    version %d; this program knows %d", is.Version, is.Newest)
		if is.Partitions > 0 {
			a.say("tables    in %d partitions", is.Partitions)
		}
		switch {
		case is.Needs > is.Newest:
			a.say("          It needs a newer program.")
		case is.Version < is.Newest:
			a.say("          Run fermata migrate up, or start a host.")
		}
		return nil
	}
	return cmd
}

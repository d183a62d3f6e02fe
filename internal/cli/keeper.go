package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/fermata-run/fermata/internal/archive"
	"github.com/fermata-run/fermata/internal/config"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Keeper moves the stores of hosts, and looks at them from outside. A store is named
// by its folder of data or by the address of its database.
type Keeper interface {
	Backup(ctx context.Context, from string, w io.Writer) (archive.Report, error)
	Verify(r io.Reader) (archive.Header, archive.Report, error)
	Restore(ctx context.Context, r io.Reader, to string) (archive.Header, archive.Report, error)
	Copy(ctx context.Context, from, to string, online bool) (archive.Report, error)
	Examine(ctx context.Context, address string) []Finding
}

// Finding is the outcome of one check of a Keeper.
type Finding = finding

// errDamagedAudit is the end of a command that has done all it was asked to, and found
// something on the way.
var errDamagedAudit = errors.New("the audit log does not hold")

// storeFlags bind what says where a store is.
func storeFlags(cmd *cobra.Command) {
	settings := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Bind(settings, config.ServeOnly)
	for _, name := range []string{config.FileFlag, "data", "store"} {
		cmd.Flags().AddFlag(settings.Lookup(name))
	}
}

// theStore is where the settings say that the store is.
func (a *app) theStore(cmd *cobra.Command) (string, error) {
	cfg, _, err := a.settings(cmd)
	switch {
	case err != nil:
		return "", usageError{err}
	case a.env.Keeper == nil:
		return "", errors.New("this program carries no host")
	case cfg.Store != "":
		return cfg.Store, nil
	case cfg.Data == "":
		return "", usage("data: the environment does not say where your files are; give a folder by --data")
	}
	return cfg.Data, nil
}

func isAddress(of string) bool {
	return strings.HasPrefix(of, "postgres://") || strings.HasPrefix(of, "postgresql://")
}

// shown is a store as people may see it.
func shown(of string) string {
	if isAddress(of) {
		return config.HidePassword(of)
	}
	return of
}

// noPassword refuses a password where every user of the machine can read it.
func noPassword(flag, of string) error {
	if !isAddress(of) {
		return nil
	}
	u, err := url.Parse(of)
	if err != nil {
		return usage("--%s is no address such as postgres://user@host/name", flag)
	}
	if hasPassword(u) {
		return usage("--%s: a password among the arguments can be read by everybody on this machine; put it into PGPASSWORD or PGPASSFILE, or the whole address into a variable and say --%s '$NAME'", flag, flag)
	}
	return nil
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// settings are those of a host. A password of its database is not taken from an argument.
func (a *app) settings(cmd *cobra.Command) (config.Config, config.Sources, error) {
	cfg, src, err := config.Load(config.Input{Flags: cmd.Flags(), Getenv: a.env.Getenv})
	if err == nil {
		err = unexposed(cfg, src)
	}
	return cfg, src, err
}

// unexposed refuses a password in an argument that is a setting, too.
func unexposed(cfg config.Config, src config.Sources) error {
	for _, x := range []struct{ flag, address string }{{"store", cfg.Store}, {"store-listen", cfg.StoreListen}} {
		flag, address := x.flag, x.address
		if src[flag].Kind != config.FromFlag || !isAddress(address) {
			continue
		}
		if u, err := url.Parse(address); err == nil && hasPassword(u) {
			return usage("--%s: a password among the arguments can be read by everybody on this machine; put it into PGPASSWORD or PGPASSFILE, or the whole address into %s",
				flag, strings.ToUpper(strings.ReplaceAll("fermata-"+flag, "-", "_")))
		}
	}
	return nil
}

// explained says of an error what to do about it.
func explained(err error, where string) error {
	switch {
	case errors.Is(err, store.ErrInUse):
		return fmt.Errorf("%w: stop it first", err)
	case errors.Is(err, store.ErrUsed):
		return fmt.Errorf("%s is not empty, and nothing is ever written over: give an empty folder or database", where)
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("there is no host's data in %s", where)
	}
	return err
}

// moved prints what a store held.
func (a *app) moved(r archive.Report) {
	for _, x := range []struct{ name, table string }{
		{"tenants", "tenants"}, {"workflows", "workflows"}, {"runs", "runs"}, {"interrupts", "interrupts"}, {"webhooks", "webhooks"},
		{"credentials", "credentials"}, {"API keys", "keys"},
	} {
		a.say("  %-12s %d", x.name, r.Rows(x.table))
	}
	rows := int64(0)
	for _, s := range r.Tables {
		rows += s.Rows
	}
	a.say("  %-12s %d in %d tables", "rows", rows, len(r.Tables))
	text := "every entry follows from the one before"
	if len(r.Faults) > 0 {
		text = "DOES NOT HOLD"
	}
	a.say("  %-12s %d entries in %d chains: %s", "audit log", r.Entries, r.Chains, text)
	for _, f := range r.Faults {
		a.say("    %s", plain(f))
	}
	if len(r.Masters) > 0 {
		a.say("  %-12s %s: a host needs it to start, and it is not in here", "master key", strings.Join(r.Masters, ", "))
	}
}

// faulty ends a command that found an audit log which does not hold.
func faulty(r archive.Report) error {
	if len(r.Faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w; it was taken along as it is: look at it with `fermata audit verify`", errDamagedAudit)
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/spf13/cobra"
)

const copyAbout = `Copies everything a host keeps to another place: from a folder into a database, from a database into a
folder, or between two of a kind. What is copied stays as it is.

  fermata copy --from ~/.local/share/fermata --to postgres://fermata@db.example/fermata

It is all or nothing: every table is read back and compared, row for row, before it counts, and the
audit log is followed from its first entry to its last. The place that is copied to must be empty.

The host must be stopped, since what it does after the moment of the copy is not in it: two hosts would
then do the same work twice. With --online that is your decision: say it for a copy that no host is
going to be started on while the other one runs, such as one to look at.

Give passwords by PGPASSWORD or PGPASSFILE. If both are databases with passwords, put an address into a
variable and name that: --from '$OLD_STORE'.

A host on the copy needs the same master key: for one that comes from a folder, the file master.key in
it (--master-key-file), unless you gave it another one.`

func (a *app) copyCommand() *cobra.Command {
	var from, to string
	var online bool
	cmd := &cobra.Command{Use: "copy", Short: "Copy everything a host keeps into another folder or database", Long: copyAbout, Args: noArgs}
	cmd.Flags().StringVar(&from, "from", "", "folder, or address such as postgres://user@host/name, that is copied")
	cmd.Flags().StringVar(&to, "to", "", "empty folder or database that it is copied to")
	cmd.Flags().BoolVar(&online, "online", false, "copy although a host is using it")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.env.Keeper == nil {
			return errors.New("this program carries no host")
		}
		for _, x := range []struct {
			flag string
			of   *string
		}{{"from", &from}, {"to", &to}} {
			if err := a.named(x.flag, x.of); err != nil {
				return err
			}
		}
		if from == to {
			return usage("--from and --to are the same")
		}
		r, err := a.env.Keeper.Copy(cmd.Context(), from, to, online)
		if err != nil {
			where := shown(from)
			if errors.Is(err, store.ErrUsed) {
				where = shown(to)
			}
			return fmt.Errorf("nothing was copied: %w", explained(err, where))
		}
		if *asJSON {
			return errors.Join(a.value(map[string]any{"contents": r}), faulty(r))
		}
		a.say("%s is copied to %s, and every table reads back the same", shown(from), shown(to))
		a.moved(r)
		a.note("Start the next host on the copy only, or both would do the same work.")
		return faulty(r)
	}
	return cmd
}

// named reads a store that was given by an argument: as it is, or by the name of a
// variable that holds it.
func (a *app) named(flag string, of *string) error {
	if *of == "" {
		return usage("--%s names a folder or the address of a database", flag)
	}
	if name, is := strings.CutPrefix(*of, "$"); is {
		if *of = a.env.Getenv(name); *of == "" {
			return usage("--%s: the variable %s is empty", flag, name)
		}
		if isAddress(*of) {
			return nil
		}
	}
	if err := noPassword(flag, *of); err != nil {
		return err
	}
	if info, err := os.Stat(*of); err == nil && !info.IsDir() && !isAddress(*of) {
		return usage("--%s: %s is not a folder", flag, *of)
	}
	if strings.Contains(*of, "://") && !isAddress(*of) {
		return usage("--%s: %s is neither a folder nor an address such as postgres://user@host/name", flag, shown(*of))
	}
	return nil
}

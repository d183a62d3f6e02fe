package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/fermata-run/fermata/internal/archive"
	"github.com/spf13/cobra"
)

const backupAbout = `Writes everything a host keeps into one file, as it is at one moment. The host goes on meanwhile, on a
folder (--data) as on a database (--store).

The file has the same form for both: what was backed up from a folder can be restored into a database,
and the other way round. It is compressed and verifies itself. It appears under its name when it is
whole, readable by you alone; one that is there is not written over.

Secrets are in it as they are at rest: sealed. The master key is not in it, and without that key a
restored host does not start. Keep it elsewhere.

With --out - the file goes to the standard output.`

func (a *app) backupCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{Use: "backup", Short: "Write everything a host keeps into a file, while it runs", Long: backupAbout, Args: noArgs}
	storeFlags(cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to write, or - for the standard output")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		from, err := a.theStore(cmd)
		switch {
		case err != nil:
			return err
		case out == "":
			return usage("--out says which file to write")
		case out == "-" && *asJSON:
			return usage("--json and --out - both want the standard output")
		case out == "-" && a.isTerminal(a.env.Stdout):
			return usage("the file is nothing for a terminal: send it somewhere, or name a file")
		}
		r, err := a.backup(cmd.Context(), from, out)
		if err != nil {
			return fmt.Errorf("nothing was backed up: %w", explained(err, shown(from)))
		}
		switch {
		case *asJSON:
			err = a.value(map[string]any{"file": out, "contents": r})
		case out != "-":
			a.say("%s is backed up into %s", shown(from), out)
			a.moved(r)
		}
		return errors.Join(err, faulty(r))
	}
	return cmd
}

func (a *app) backup(ctx context.Context, from, out string) (r archive.Report, err error) {
	if out == "-" {
		return a.env.Keeper.Backup(ctx, from, a.env.Stdout)
	}
	err = newFile(out, func(w io.Writer) error {
		r, err = a.env.Keeper.Backup(ctx, from, w)
		return err
	})
	return r, err
}

// newFile makes a file that is there when it is whole and on the disk, and not before.
func newFile(name string, write func(w io.Writer) error) (err error) {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s is there already: give another name", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()           //nolint:errcheck // it may be closed
			os.Remove(f.Name()) //nolint:errcheck // the first failure counts
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link fails if somebody has made the file meanwhile, where a rename would not.
	switch err := os.Link(f.Name(), name); {
	case err == nil:
		err = os.Remove(f.Name())
		return errors.Join(err, syncFolder(filepath.Dir(name)))
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil { // a file system without links
		return err
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder makes the names in a folder durable, where a system knows of that.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

const restoreAbout = `Makes a host's data of a file that ` + "`fermata backup`" + ` has written, in a folder (--data) or a database
(--store) that is empty. Nothing that is there is ever written over.

It is all or nothing. The file is verified, and what was written is read back and compared, before it
counts. What an interrupted restore leaves is refused by every host until the restore is run again.

A host that starts on it needs the master key of the host that was backed up. It finds no host alive
and takes every run up where the file has it. What the former host did after the backup is not known
to it: calls that were made since may be made again.

With --check the file is only read and verified. With --in - it comes from the standard input.`

func (a *app) restoreCommand() *cobra.Command {
	var in string
	var check bool
	cmd := &cobra.Command{Use: "restore", Short: "Make a host's data of a backup", Long: restoreAbout, Args: noArgs}
	storeFlags(cmd)
	cmd.Flags().StringVarP(&in, "in", "i", "", "file to read, or - for the standard input")
	cmd.Flags().BoolVar(&check, "check", false, "verify the file and write nothing")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		to, err := a.theStore(cmd)
		if err != nil {
			return err
		}
		if in == "" {
			return usage("--in says which file to read")
		}
		var from io.Reader = a.env.Stdin
		if in != "-" {
			f, err := os.Open(in)
			if err != nil {
				return err
			}
			defer f.Close()
			from = f
		}
		var h archive.Header
		var r archive.Report
		if check {
			h, r, err = a.env.Keeper.Verify(from)
		} else {
			h, r, err = a.env.Keeper.Restore(cmd.Context(), from, to)
		}
		if err != nil {
			return fmt.Errorf("nothing was restored: %w", explained(err, shown(to)))
		}
		if *asJSON {
			return errors.Join(a.value(map[string]any{"header": h, "contents": r}), faulty(r))
		}
		what := "restored into " + shown(to)
		if check {
			what = "whole"
		}
		a.say("the backup of %s (%s, fermata %s) is %s", h.Taken.Format("2006-01-02 15:04:05 MST"), plain(h.Backend), plain(h.Program), what)
		a.moved(r)
		return faulty(r)
	}
	return cmd
}

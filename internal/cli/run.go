package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runOptions are the arguments of `fermata run`.
type runOptions struct {
	file    string
	inputs  inputFlags
	answers map[string]string
	tags    []string
	watch   bool
	asJSON  bool
	timeout time.Duration
	flags   *pflag.FlagSet
}

const runAbout = `Runs one workflow file in a host inside this process, shows how it goes, asks you what it wants to
know, and prints its outputs. Other *.json workflows in the same folder can be used as sub-workflows.

Everything is forgotten afterwards, unless --data names a folder to keep it in. Ctrl-C cancels the
run; with --data it stays, and a host on that folder goes on with it.

Exit codes: 0 completed, 1 failed or cancelled, 2 wrong arguments.`

func (a *app) runCommand() *cobra.Command {
	o := runOptions{answers: map[string]string{}}
	var answers []string
	var listen string
	cmd := &cobra.Command{Use: "run FILE", Short: "Run one workflow file right here", Long: runAbout, Args: exactly("a workflow file")}
	config.Bind(cmd.Flags(), config.Any)
	o.inputs.bind(cmd)
	fs := cmd.Flags()
	fs.Lookup("data").Usage = "folder to keep the run in (default: a temporary one, removed afterwards)"
	fs.StringVar(&listen, "listen", "", "also serve the API at this address while the run goes on, so that it can be answered from elsewhere")
	fs.StringArrayVar(&answers, "answer", nil, "an answer as node=value: an action such as accept, or JSON (repeatable)")
	fs.StringArrayVar(&o.tags, "tag", nil, "a tag of the run (repeatable)")
	fs.BoolVar(&o.watch, "watch", false, "run again whenever the file or one beside it changes")
	fs.DurationVar(&o.timeout, "timeout", 0, "cancel the run after this time")
	asJSON := fs.Bool("json", false, "print each event as a line of JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.file, o.asJSON, o.flags = args[0], *asJSON, cmd.Flags()
		for _, s := range answers {
			node, v, ok := strings.Cut(s, "=")
			if !ok || node == "" {
				return usage("--answer %q is not node=value", s)
			}
			o.answers[node] = v
		}
		if a.env.OpenHost == nil {
			return errors.New("this program carries no host")
		}
		if o.watch {
			return a.runAgain(cmd.Context(), o)
		}
		return a.runOnce(cmd.Context(), o)
	}
	return cmd
}

// runOnce runs the file in a host of its own.
func (a *app) runOnce(ctx context.Context, o runOptions) error {
	cfg, src, err := config.Load(config.Input{Flags: o.flags, Getenv: a.env.Getenv, OwnData: true})
	if err != nil {
		return usageError{err}
	}
	if !src.Given("log-level") {
		cfg.LogLevel = "warn" // the board says the rest
	}
	work, err := a.readWork(o.file)
	if err != nil {
		return err
	}
	in, err := a.inputs(o.inputs, work.head.Variables)
	if err != nil {
		return err
	}
	if err := work.knows(in, o.answers); err != nil {
		if !o.watch {
			return err
		}
		a.note("note: %v", err) // the file is being worked on
	}
	local, err := a.openLocal(ctx, cfg, src)
	if err != nil {
		return err
	}
	out, err := a.runIn(ctx, local, work, in, o)
	if cerr := local.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errChanged) {
		return told{ExitFailed} // the next run is what counts
	}
	return a.report(out, o.asJSON)
}

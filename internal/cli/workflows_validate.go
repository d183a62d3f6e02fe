package cli

import (
	"context"
	"encoding/json"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/spf13/cobra"
)

func (a *app) workflowsValidate(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "validate FILE|FOLDER...", Short: "Check workflow definitions without registering them", Args: some("a file or folder"),
		Long: "Checks definitions as registering them would, and prints everything that is wrong as\nfile:line: field: message. With the node types this program knows, no host is needed; with --server\nor FERMATA_SERVER, that host is asked, which may know more.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files, err := definitions(args)
		if err != nil {
			return err
		}
		check, err := a.checker(*t)
		if err != nil {
			return err
		}
		var out []applied
		for _, f := range files {
			r := applied{File: f, Result: "valid"}
			b, err := readDefinition(f)
			if err == nil {
				h := headOf(b)
				r.WorkflowID, r.Version = h.ID, h.Version
				err = check(cmd.Context(), b)
			}
			if err != nil {
				if r.Result, r.Faults = "invalid", faults(f, err); len(r.Faults) == 0 {
					return err
				}
			}
			out = append(out, r)
		}
		return a.reportValidated(out, *asJSON)
	}
	return cmd
}

// checker chooses who checks: this program, or the host that was named.
func (a *app) checker(t target) (func(context.Context, []byte) error, error) {
	named := t.server != "" || t.profile != "" || a.env.Getenv("FERMATA_SERVER") != ""
	if a.env.Catalog != nil && !named {
		return func(_ context.Context, b []byte) error {
			_, err := flow.Check(b, a.env.Catalog)
			return err
		}, nil
	}
	c, err := a.connect(t)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, b []byte) error { return checkThere(ctx, c, b) }, nil
}

// checkThere has a definition checked by a host. What is no JSON at all is told
// here, with its line.
func checkThere(ctx context.Context, c *client.Client, b []byte) error {
	if !json.Valid(b) {
		return unreadable(b)
	}
	_, err := c.ValidateWorkflow(ctx, b)
	return err
}

func (a *app) reportValidated(list []applied, asJSON bool) error {
	bad := 0
	for _, r := range list {
		if len(r.Faults) > 0 {
			bad++
		}
	}
	if asJSON {
		if err := a.value(list); err != nil {
			return err
		}
	} else {
		for _, r := range list {
			for _, f := range r.Faults {
				a.say("%s", f)
			}
			if len(r.Faults) == 0 {
				a.say("%s: valid (%s %s)", r.File, plain(r.WorkflowID), plain(r.Version))
			}
		}
	}
	if bad > 0 {
		if !asJSON {
			a.note("error: %d of %s not valid", bad, plural(len(list), "definition"))
		}
		return told{ExitFailed}
	}
	return nil
}

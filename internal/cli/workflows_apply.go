package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/spf13/cobra"
)

func (a *app) workflowsApply(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "apply FILE|FOLDER...", Short: "Register workflow definitions", Args: some("a file or folder"),
		Long: "Registers each definition under the id and version it names. A version never changes: the same\ndefinition again is fine, another one needs a new version. Of a folder, the *.json files in it are taken.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		files, err := definitions(args)
		if err != nil {
			return err
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var done []applied
		for _, f := range files {
			r, err := apply(cmd.Context(), c, f)
			if err != nil {
				return err
			}
			done = append(done, r)
		}
		return a.reportApplied(done, *asJSON)
	}
	return cmd
}

// applied is what became of one file.
type applied struct {
	File       string               `json:"file"`
	WorkflowID string               `json:"workflowId,omitempty"`
	Version    string               `json:"version,omitempty"`
	Result     string               `json:"result"` // created, unchanged or refused
	Faults     []string             `json:"faults,omitempty"`
	Info       *client.WorkflowInfo `json:"-"`
}

// apply registers one file. Its error is one that says nothing about the file:
// the host cannot be reached, or does not let this caller in.
func apply(ctx context.Context, c *client.Client, file string) (applied, error) {
	out := applied{File: file, Result: "refused"}
	b, err := readDefinition(file)
	if err != nil {
		out.Faults = []string{err.Error()}
		return out, nil
	}
	h := headOf(b)
	out.WorkflowID, out.Version = h.ID, h.Version
	info, err := c.PutWorkflow(ctx, json.RawMessage(b))
	if errors.Is(err, client.ErrNoWorkflowID) {
		err = unreadable(b)
	}
	if err != nil {
		if out.Faults = faults(file, err); len(out.Faults) == 0 {
			return out, err
		}
		return out, nil
	}
	out.WorkflowID, out.Version, out.Info, out.Result = info.WorkflowID, info.Version, info, "unchanged"
	if info.Created {
		out.Result = "created"
	}
	return out, nil
}

// unreadable says where a text goes wrong that holds no workflow id.
func unreadable(b []byte) error {
	if _, _, err := flow.Parse(b); err != nil {
		return err
	}
	return flow.Issues{{Field: "id", Line: 1, Message: "is required"}}
}

func (a *app) reportApplied(list []applied, asJSON bool) error {
	refused := 0
	t := newTable("WORKFLOW", "VERSION", "RESULT", "FILE")
	for _, r := range list {
		if r.Result == "refused" {
			refused++
		}
		t.add(dash(r.WorkflowID), dash(r.Version), r.Result, r.File)
	}
	if asJSON {
		if err := a.value(list); err != nil {
			return err
		}
	} else {
		t.print(a.env.Stdout)
		for _, r := range list {
			for _, f := range r.Faults {
				a.note("%s", f)
			}
		}
	}
	if refused > 0 {
		if !asJSON {
			a.note("error: %s of %d refused", plural(refused, "definition"), len(list))
		}
		return told{ExitFailed}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

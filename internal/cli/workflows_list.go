package cli

import (
	"encoding/json"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) workflowsList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the workflows of the host", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.WorkflowInfo
		var raws []json.RawMessage
		for cursor := ""; ; {
			page, err := c.ListWorkflows(cmd.Context(), client.PageOptions{Cursor: cursor})
			if err != nil {
				return err
			}
			all, raws = append(all, page.Workflows...), append(raws, page.Raw)
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("workflows", raws, "")
		}
		if len(all) == 0 {
			a.say("There are no workflows. Register one with `fermata workflows apply FILE`.")
			return nil
		}
		tab := newTable("WORKFLOW", "VERSION", "REGISTERED", "NAME")
		for _, w := range all {
			tab.add(w.WorkflowID, w.Version, stamp(w.CreatedAt), w.Name)
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

// joined prints the pages of a list as one document.
func (a *app) joined(member string, pages []json.RawMessage, nextCursor string) error {
	items := []json.RawMessage{}
	for _, p := range pages {
		var page map[string]json.RawMessage
		var list []json.RawMessage
		if err := json.Unmarshal(p, &page); err != nil {
			return err
		}
		if err := json.Unmarshal(page[member], &list); err != nil {
			return err
		}
		items = append(items, list...)
	}
	doc := map[string]any{member: items}
	if nextCursor != "" {
		doc["nextCursor"] = nextCursor
	}
	return a.value(doc)
}

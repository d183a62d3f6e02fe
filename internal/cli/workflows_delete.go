package cli

import "github.com/spf13/cobra"

func (a *app) workflowsDelete(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Hide a workflow, so that it cannot be started any more", Args: exactly("a workflow id"),
		Long: "Hides a workflow, so that no new run of it can be started. Its runs go on, and it can be\nregistered again.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if err := c.DeleteWorkflow(cmd.Context(), args[0]); err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{"workflowId": args[0], "deleted": true})
		}
		a.say("%s is hidden. Its runs go on.", plain(args[0]))
		return nil
	}
	return cmd
}

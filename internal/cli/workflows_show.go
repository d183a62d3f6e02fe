package cli

import "github.com/spf13/cobra"

func (a *app) workflowsShow(t *target) *cobra.Command {
	var version string
	cmd := &cobra.Command{Use: "show ID", Short: "Print a workflow's definition", Args: exactly("a workflow id")}
	cmd.Flags().StringVar(&version, "version", "", "version to show (default: the latest)")
	jsonFlag(cmd) // it is JSON either way
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		def, err := c.GetWorkflow(cmd.Context(), args[0], version)
		if err != nil {
			return err
		}
		return a.document(def)
	}
	return cmd
}

package cli

import "github.com/spf13/cobra"

// workflowsCommand holds the commands on a host's workflows.
func (a *app) workflowsCommand() *cobra.Command {
	var t target
	g := group("workflows", "Register, list, check and remove workflows",
		a.workflowsApply(&t), a.workflowsList(&t), a.workflowsShow(&t), a.workflowsValidate(&t), a.workflowsDelete(&t))
	t.bind(g)
	return g
}

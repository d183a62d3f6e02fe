package cli

import (
	"github.com/spf13/cobra"
)

const about = `fermata runs multi-agent workflows that people and programs can hold, answer,
replay and trust: an OpenWOP host in one program.

Run one workflow right here:

  fermata run hello.json --input name=Ada

Or start a host and work with it:

  fermata serve
  fermata workflows apply hello.json
  fermata runs start hello --input name=Ada --watch
  fermata approvals list`

// root is the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "fermata", Short: "A durable host for multi-agent workflows", Long: about,
		Version: a.env.Version, SilenceErrors: true, SilenceUsage: true,
		Args:              noArgs,
		PersistentPreRun:  func(*cobra.Command, []string) { a.ran = true },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(a.env.Stdin)
	root.SetOut(a.env.Stdout)
	root.SetErr(a.env.Stderr)
	root.SetVersionTemplate("fermata {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "here", Title: "On this machine:"},
		&cobra.Group{ID: "there", Title: "With a running host:"},
		&cobra.Group{ID: "about", Title: "About the program:"},
	)
	root.SetHelpCommandGroupID("about")
	root.SetCompletionCommandGroupID("about")
	for group, cmds := range map[string][]*cobra.Command{
		"here":  {a.serveCommand(), a.runCommand(), a.backupCommand(), a.restoreCommand(), a.copyCommand(), a.migrateCommand()},
		"there": {a.workflowsCommand(), a.schedulesCommand(), a.runsCommand(), a.approvalsCommand(), a.webhooksCommand(), a.credentialsCommand(), a.keysCommand(), a.membersCommand(), a.rolesCommand(), a.tenantsCommand(), a.auditCommand(), a.conformanceCommand()},
		"about": {a.doctorCommand(), a.configCommand(), a.versionCommand()},
	} {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	return root
}

// group is a command that only holds others.
func group(use, short string, cmds ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	g.AddCommand(cmds...)
	return g
}

func noArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
	case cmd.HasSubCommands():
		return usage("%q is not a command of `%s`", args[0], cmd.CommandPath())
	default:
		return usage("`%s` cannot use %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// exactly wants the arguments named, and no others.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage("`%s` needs %s", cmd.CommandPath(), names[len(args)])
		}
		if len(args) > len(names) {
			return usage("`%s` cannot use %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}

// some wants at least one argument of a kind.
func some(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("`%s` needs %s", cmd.CommandPath(), name)
		}
		return nil
	}
}

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON for programs")
}

package cli

import (
	"strconv"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// runsCompensation shows how a run is undone; its subcommands act on that.
func (a *app) runsCompensation(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "compensation RUN", Short: "Show how a run's effects are undone, or act on it", Args: exactly("a run id"),
		Long: "Shows what of a run's effects is to be undone, in order, and what has come of it.\n" +
			"The commands below act on it. They take a key with the scope fermata:compensation:operate.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		k, err := c.GetRunCompensation(cmd.Context(), runID(args[0]))
		if err != nil {
			return err
		}
		return a.printCompensation(k, *asJSON)
	}
	cmd.AddCommand(
		a.operation(t, "start", "Undo a run that has ended, if its workflow admits that"),
		a.operation(t, "retry", "Try an inverse action again, under the same name", "order"),
		a.operation(t, "skip", "Give an inverse action up", "order", "reason"),
		a.operation(t, "substitute", "Let another node type undo an effect", "order", "type"),
		a.operation(t, "terminate", "Give up whatever is not undone yet, for good", "reason"),
	)
	return cmd
}

// operation is one command of an operator, with the flags it understands.
func (a *app) operation(t *target, action, short string, flags ...string) *cobra.Command {
	cmd := &cobra.Command{Use: action + " RUN", Short: short, Args: exactly("a run id")}
	o := client.CompensationOperation{Action: action}
	for _, f := range flags {
		switch f {
		case "order":
			cmd.Flags().IntVar(&o.Order, "order", 0, "which action of the plan; if absent, the one it waits at")
		case "type":
			cmd.Flags().StringVar(&o.NodeTypeID, "type", "", "the node type that undoes it instead")
		case "reason":
			cmd.Flags().StringVar(&o.Reason, "reason", "", "why; it is recorded, and not shown to those who read the run")
		}
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		k, err := c.OperateCompensation(cmd.Context(), runID(args[0]), o)
		if err != nil {
			return err
		}
		return a.printCompensation(k, *asJSON)
	}
	return cmd
}

func (a *app) printCompensation(k *client.Compensation, asJSON bool) error {
	if asJSON {
		return a.document(k.Raw)
	}
	a.say("%s  %s", plain(k.RunID), plain(string(k.Status)))
	if len(k.Plan) == 0 {
		return nil
	}
	t := newTable("ORDER", "NODE", "EFFECT")
	for _, e := range k.Plan {
		effect := "can be undone"
		if e.IrreversibleEffect {
			effect = "cannot be undone"
		}
		t.add(strconv.Itoa(e.Order), e.NodeID, effect)
	}
	t.print(a.env.Stdout)
	if len(k.Attempts) == 0 {
		return nil
	}
	t = newTable("NODE", "ATTEMPT", "OUTCOME", "AT", "REASON")
	for _, x := range k.Attempts {
		t.add(x.NodeID, strconv.Itoa(x.Attempt), x.Outcome, stamp(x.At), x.Reason)
	}
	t.print(a.env.Stdout)
	return nil
}

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) runsEffects(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "effects RUN", Short: "Show what a run has done outside", Args: exactly("a run id"),
		Long: "Shows each attempt of a run at an effect outside: completed, released (it did not happen), escaped (nobody\nknows whether it did) or claimed (somebody is at it). Attempts of one effect share its id.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		l, err := c.GetRunEffects(cmd.Context(), runID(args[0]))
		if err != nil {
			return err
		}
		if *asJSON {
			return a.document(l.Raw)
		}
		if len(l.Effects) == 0 {
			a.say("The run has had no effects outside.")
			return nil
		}
		table := newTable("EFFECT", "NODE", "ATTEMPT", "STATE", "AT", "KEYING")
		for _, e := range l.Effects {
			table.add(plain(e.EffectID), plain(e.NodeID), fmt.Sprint(e.Attempt), plain(e.State), stamp(e.At), plain(e.Keying))
		}
		table.print(a.env.Stdout)
		return nil
	}
	return cmd
}

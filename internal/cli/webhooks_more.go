package cli

import (
	"encoding/json"
	"strconv"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) webhooksRotate(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate ID", Short: "Give a webhook another secret", Args: exactly("a webhook id"),
		Long: "Gives a webhook another secret: the one in FERMATA_WEBHOOK_SECRET, else one that is made and shown this\n" +
			"once. For a while deliveries are signed with both, so teach the receiver the new one within that time.\n" +
			"Only a webhook that was added with --standard can have it.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		secret := a.env.Getenv("FERMATA_WEBHOOK_SECRET")
		made := secret == ""
		if made {
			secret = client.NewWebhookSecret()
		}
		out, err := c.RotateWebhookSecret(cmd.Context(), args[0], secret)
		if err != nil {
			return err
		}
		if *asJSON {
			doc := map[string]any{"rotatedAt": out.RotatedAt, "previousSecretExpiresAt": out.PreviousSecretExpiresAt}
			if made {
				doc["secret"] = secret
			}
			return a.value(doc)
		}
		if made {
			a.say("secret   %s\n         It is shown this once: keep it.", secret)
		}
		a.say("The secret before it signs as well until %s.", stamp(out.PreviousSecretExpiresAt))
		return nil
	}
	return cmd
}

func (a *app) webhooksEnable(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "enable ID", Short: "Make a webhook active that was disabled", Args: exactly("a webhook id"),
		Long: "Makes a webhook active that was disabled because its endpoint took nothing for too long. What has\nwaited is delivered.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		out, err := c.EnableWebhook(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(out.Raw)
		}
		a.say("%s is %s.", plain(out.WebhookID), plain(out.State))
		return nil
	}
	return cmd
}

func (a *app) webhooksDeadLetters(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dead-letters ID", Short: "List deliveries that were given up", Args: exactly("a webhook id"),
		Long: "Lists the deliveries to a webhook that were given up, the newest first. What they held is in the logs of\ntheir runs: `fermata runs events RUN`.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.DeadLetter
		var raws []json.RawMessage
		for o := (client.PageOptions{}); ; {
			page, err := c.ListDeadLetters(cmd.Context(), args[0], o)
			if err != nil {
				return err
			}
			all, raws = append(all, page.Deliveries...), append(raws, page.Raw)
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("deliveries", raws, "")
		}
		if len(all) == 0 {
			a.say("Nothing was given up.")
			return nil
		}
		tab := newTable("SINCE", "RUN", "EVENT", "TYPE", "ATTEMPTS", "LAST", "REASON")
		for _, d := range all {
			last := "no answer"
			if d.LastStatus != 0 {
				last = "HTTP " + strconv.Itoa(d.LastStatus)
			}
			tab.add(stamp(d.DeadLetteredAt), d.RunID, d.EventID, d.EventType, strconv.Itoa(d.Attempts), last, d.Reason)
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

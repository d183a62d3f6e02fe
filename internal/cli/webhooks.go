package cli

import (
	"encoding/json"
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// webhooksCommand holds the commands on subscriptions.
func (a *app) webhooksCommand() *cobra.Command {
	var t target
	g := group("webhooks", "Have events delivered to URLs", a.webhooksAdd(&t), a.webhooksList(&t), a.webhooksDelete(&t),
		a.webhooksRotate(&t), a.webhooksEnable(&t), a.webhooksDeadLetters(&t))
	t.bind(g)
	return g
}

func (a *app) webhooksAdd(t *target) *cobra.Command {
	var r client.WebhookRegistration
	var standard bool
	cmd := &cobra.Command{
		Use: "add URL", Short: "Have events delivered to a URL", Args: exactly("a URL"),
		Long: "Has events of every run of the tenant delivered to a URL, from now on. The secret that signs them is made\n" +
			"by the host and shown this once, unless FERMATA_WEBHOOK_SECRET holds one.\n\n" +
			"With --standard, deliveries are signed by Standard Webhooks as well, the endpoint is asked whether it wants\n" +
			"them, and the secret can be rotated.",
	}
	cmd.Flags().StringSliceVar(&r.Events, "event", []string{"run.completed", "run.failed", "run.cancelled"}, "types of events wanted")
	cmd.Flags().StringSliceVar(&r.Tags, "tag", nil, "only runs with one of these tags")
	cmd.Flags().BoolVar(&standard, "standard", false, "sign by Standard Webhooks too")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		r.URL, r.Secret = args[0], a.env.Getenv("FERMATA_WEBHOOK_SECRET")
		if standard {
			r.SignatureAlgorithms = []string{"v1", "standard-webhooks-1"}
			if r.Secret == "" {
				// The endpoint must know it before it is asked, so it cannot be made here.
				return usage("--standard needs the endpoint's secret in FERMATA_WEBHOOK_SECRET: whsec_ and 24 to 64 random bytes in base64")
			}
		}
		out, err := c.RegisterWebhook(cmd.Context(), r)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(out.Raw)
		}
		a.say("webhook  %s", out.WebhookID)
		if out.Secret != "" {
			a.say("secret   %s\n         It is shown this once: keep it.", out.Secret)
		}
		return nil
	}
	return cmd
}

func (a *app) webhooksList(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the webhooks and how they are", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.Webhook
		var raws []json.RawMessage
		for o := (client.PageOptions{}); ; {
			page, err := c.ListWebhooks(cmd.Context(), o)
			if err != nil {
				return err
			}
			all, raws = append(all, page.Webhooks...), append(raws, page.Raw)
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		if *asJSON {
			return a.joined("webhooks", raws, "")
		}
		if len(all) == 0 {
			a.say("There are no webhooks. Add one with `fermata webhooks add URL`.")
			return nil
		}
		tab := newTable("WEBHOOK", "STATE", "SINCE", "URL", "EVENTS")
		for _, w := range all {
			since := w.CreatedAt
			if !w.DisabledAt.IsZero() {
				since = w.DisabledAt
			}
			tab.add(w.WebhookID, w.State, stamp(since), w.URL, strings.Join(w.Events, " "))
		}
		tab.print(a.env.Stdout)
		for _, w := range all {
			if w.Reason != "" {
				a.say("%s is disabled: %s. Enable it with `fermata webhooks enable %s`.", plain(w.WebhookID), plain(w.Reason), plain(w.WebhookID))
			}
		}
		return nil
	}
	return cmd
}

func (a *app) webhooksDelete(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete ID", Short: "End a webhook", Args: exactly("a webhook id"),
		Long: "Ends a webhook. Nothing more is sent to it, whatever was due, and its dead letters are gone.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if err := c.DeleteWebhook(cmd.Context(), args[0]); err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{"webhookId": args[0], "deleted": true})
		}
		a.say("%s is deleted.", plain(args[0]))
		return nil
	}
	return cmd
}

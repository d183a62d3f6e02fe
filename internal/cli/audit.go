package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

// auditCommand holds the commands on the audit log.
func (a *app) auditCommand() *cobra.Command {
	var t target
	var host bool
	g := group("audit", "Read, export and verify the audit log", a.auditList(&t, &host), a.auditExport(&t, &host), a.auditVerify(&t, &host),
		a.auditKeys(&t), a.auditRotate(&t))
	g.PersistentFlags().BoolVar(&host, "host", false, "the host's own chain, which is for its operator, in place of the tenant's")
	t.bind(g)
	return g
}

func (a *app) auditList(t *target, host *bool) *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List what was done, the newest first", Args: noArgs}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many entries")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if limit < 1 || limit > 100_000 {
			return usage("--limit: want a number from 1 to 100000")
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		var all []client.AuditEntry
		for o := (client.PageOptions{Limit: min(limit, 200)}); len(all) < limit; {
			page, err := c.ListAudit(cmd.Context(), *host, o)
			if err != nil {
				return err
			}
			for _, e := range page.Entries {
				all = append(all, e.Entry)
			}
			if o.Cursor = page.NextCursor; o.Cursor == "" {
				break
			}
		}
		all = all[:min(len(all), limit)]
		if *asJSON {
			return a.value(map[string]any{"entries": all})
		}
		tab := newTable("SEQ", "AT", "WHO", "ACTION", "OUTCOME", "TARGET", "DETAIL")
		for _, e := range all {
			tab.add(fmt.Sprint(e.Sequence), stamp(e.At), whoDid(e.Actor), e.Action, e.Outcome, strings.TrimSpace(e.Target.Type+" "+e.Target.ID), detailText(e.Detail))
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

func whoDid(x client.AuditActor) string {
	if x.SubjectID == "" {
		return x.Kind
	}
	return x.SubjectID
}

func detailText(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, " ")
}

const auditExportAbout = `Writes the whole audit log, one JSON object a line: the public keys, every entry, every signed
checkpoint, and an end that is signed. It can be verified anywhere, without the host:

  fermata audit export --out audit.ndjson
  fermata audit verify --offline audit.ndjson

Keep what it prints at its end somewhere else: the last checkpoint tells later whether
anything before it was taken away or rewritten.`

func (a *app) auditExport(t *target, host *bool) *cobra.Command {
	var out string
	cmd := &cobra.Command{Use: "export", Short: "Write the whole audit log", Long: auditExportAbout, Args: noArgs}
	cmd.Flags().StringVar(&out, "out", "", "file to write, which must not be there yet; standard output without it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		if out == "" {
			return c.ExportAudit(cmd.Context(), *host, a.env.Stdout)
		}
		f, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return usage("--out: %w", err)
		}
		err = c.ExportAudit(cmd.Context(), *host, f)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		r, err := verifyFile(out, nil, nil)
		if err != nil {
			return err
		}
		return a.exported(out, r)
	}
	return cmd
}

func (a *app) auditKeys(t *target) *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Show the public keys that have signed checkpoints", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		keys, err := c.AuditKeys(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{"keys": keys})
		}
		tab := newTable("KEY", "SIGNS", "PUBLIC KEY")
		for _, k := range keys {
			tab.add(k.KeyID, map[bool]string{true: "yes", false: "no more"}[k.Signs], k.PublicKey)
		}
		tab.print(a.env.Stdout)
		return nil
	}
	return cmd
}

func (a *app) auditRotate(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate-key", Short: "Sign checkpoints with a new key from now on", Args: noArgs,
		Long: "Makes a new key for checkpoints and destroys the one before. What it signed still verifies: its public\n" +
			"half stays published. It is for the host's operator.",
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		id, err := c.RotateAuditKey(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.value(map[string]any{"keyId": id})
		}
		a.say("Checkpoints are signed with %s from now on.", plain(id))
		return nil
	}
	return cmd
}

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/audit"
	"github.com/spf13/cobra"
)

// errTampered is the end of a verification that found something.
var errTampered = errors.New("the audit log does not hold")

const auditVerifyAbout = `Verifies the audit log: that no entry was changed, taken out, put in or moved, and that every signed
checkpoint holds. It fails if anything does not.

Without --offline the host does it itself. With --offline an exported file is verified here, and no
host is asked. Then give the public keys by --key, as ` + "`fermata audit keys`" + ` or discovery shows
them and as you have kept them: without any, the keys in the file count, which proves only that the
file is whole. Give checkpoints that you have kept by --anchor SEQ=ROOT: a log that was cut off
before them, or rewritten, does not have them.`

type verifyFlags struct {
	offline  string
	keys     []string
	anchors  []string
	from, to int64
}

func (a *app) auditVerify(t *target, host *bool) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{Use: "verify", Short: "Verify the audit log", Long: auditVerifyAbout, Args: noArgs}
	fs := cmd.Flags()
	fs.StringVar(&f.offline, "offline", "", "verify this exported file, without a host")
	fs.StringArrayVar(&f.keys, "key", nil, "a public key that counts, with --offline; may be repeated")
	fs.StringArrayVar(&f.anchors, "anchor", nil, "a checkpoint that must be there, as SEQ=ROOT, with --offline; may be repeated")
	fs.Int64Var(&f.from, "from", 0, "sequence to begin at")
	fs.Int64Var(&f.to, "to", 0, "sequence to end at")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.offline != "" {
			return a.verifyOffline(f, *asJSON)
		}
		if len(f.keys)+len(f.anchors) > 0 {
			return usage("--key and --anchor go with --offline")
		}
		c, err := a.connect(*t)
		if err != nil {
			return err
		}
		v, err := c.VerifyAudit(cmd.Context(), client.AuditRange{From: f.from, To: f.to, Host: *host})
		if err != nil {
			return err
		}
		return a.verdict(v, *asJSON)
	}
	return cmd
}

func (a *app) verdict(v *client.AuditVerdict, asJSON bool) error {
	if asJSON {
		if err := a.value(v.Raw); err != nil {
			return err
		}
	} else {
		for _, x := range v.Anomalies {
			a.say("at %d: want the previous hash %s, found %s", x.AtSeq, plain(x.ExpectedPrevHash), plain(cmp.Or(x.ActualPrevHash, "nothing")))
		}
		if v.CheckpointsValid != nil && !*v.CheckpointsValid {
			a.say("a checkpoint does not hold")
		}
		if n := len(v.Checkpoints); v.ChainValid && n > 0 {
			last := v.Checkpoints[n-1]
			a.say("The audit log holds. The last of %d checkpoints is %d=%s.", n, last.AtSequence, plain(last.MerkleRoot))
		} else if v.ChainValid {
			a.say("The audit log holds. No checkpoint has been signed yet.")
		}
	}
	if !v.ChainValid {
		return errTampered
	}
	return nil
}

func (a *app) verifyOffline(f verifyFlags, asJSON bool) error {
	if f.from != 0 || f.to != 0 {
		return usage("--from and --to do not go with --offline: a file is verified as a whole")
	}
	keys := audit.Keys{}
	for _, k := range f.keys {
		if err := keys.Add(k); err != nil {
			return usage("--key: %w", err)
		}
	}
	var anchors []audit.Anchor
	for _, s := range f.anchors {
		seq, root, ok := strings.Cut(s, "=")
		n, err := strconv.ParseInt(seq, 10, 64)
		if !ok || err != nil || n < 1 || len(root) != 64 {
			return usage("--anchor: %q is not SEQ=ROOT", s)
		}
		anchors = append(anchors, audit.Anchor{AtSequence: n, Root: root})
	}
	r, err := verifyFile(f.offline, keys, anchors)
	if err != nil {
		return err
	}
	if asJSON {
		if err := a.value(r); err != nil {
			return err
		}
	} else {
		a.reportFile(r, len(f.keys) > 0)
	}
	if !r.Valid {
		return errTampered
	}
	return nil
}

func verifyFile(name string, keys audit.Keys, anchors []audit.Anchor) (audit.Report, error) {
	in, err := os.Open(name)
	if err != nil {
		return audit.Report{}, usage("%w", err)
	}
	defer in.Close()
	return audit.VerifyExport(in, keys, anchors)
}

func (a *app) reportFile(r audit.Report, pinned bool) {
	for _, s := range r.Faults {
		a.say("%s", plain(s))
	}
	for _, x := range r.Anomalies {
		a.say("at %d: want the previous hash %s, found %s", x.AtSeq, plain(x.Expected), plain(cmp.Or(x.Actual, "nothing")))
	}
	if !r.Valid {
		return
	}
	a.say("The chain %s holds from %d to %d. %d checkpoints anchor it up to %d.", plain(r.Chain), r.First, r.Last, r.Checkpoints, r.Anchored)
	if !pinned {
		a.say("The keys in the file counted. Whoever made the file may have made them: give the host's by --key.")
	}
}

// exported says what an export has to be held against later.
func (a *app) exported(name string, r audit.Report) error {
	if !r.Valid {
		a.reportFile(r, true)
		return fmt.Errorf("%s is written, but %w", name, errTampered)
	}
	a.say("%s holds the chain %s from %d to %d.", name, plain(r.Chain), r.First, r.Last)
	if r.Anchored > 0 {
		a.say("Keep its last checkpoint elsewhere: --anchor %d=%s", r.Anchored, r.Root)
	}
	return nil
}

package cli

import (
	"context"
	"fmt"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/config"
	"github.com/spf13/cobra"
)

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do if it is not
}

func good(check, format string, args ...any) finding {
	return finding{Check: check, OK: true, Detail: fmt.Sprintf(format, args...)}
}

func bad(check, fix, format string, args ...any) finding {
	return finding{Check: check, Detail: fmt.Sprintf(format, args...), Fix: fix}
}

func (a *app) doctorCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check that everything is as it should be", Args: noArgs,
		Long: "Checks the settings of a host on this machine, its data folder or, with --store, its database, and\nwhether a host answers, speaks the same protocol and takes the API key. Says what to do about what is\nwrong. It changes nothing.",
	}
	t.bind(cmd)
	config.Bind(cmd.Flags(), config.ServeOnly)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var all []finding
		cfg, _, err := a.settings(cmd)
		if err != nil {
			all = append(all, bad("settings", "Correct the setting; `fermata config` shows all of them.", "%v", err))
		} else {
			all = append(all, good("settings", "all valid"))
			if cfg.Store == "" {
				all = append(all, checkData(cfg.Data)...)
			} else {
				all = append(all, a.checkStore(cmd.Context(), cfg.Store)...)
			}
		}
		all = append(all, a.checkHost(cmd.Context(), t)...)
		return a.diagnose(all, *asJSON)
	}
	return cmd
}

// checkStore looks at a shared database as a host on this machine would.
func (a *app) checkStore(ctx context.Context, address string) []finding {
	if a.env.Keeper == nil {
		return []finding{bad("store", "Use a program that carries a host.", "this program knows no shared database")}
	}
	return a.env.Keeper.Examine(ctx, address)
}

// diagnose prints the findings and fails if one of them is bad.
func (a *app) diagnose(all []finding, asJSON bool) error {
	faulty := 0
	for _, f := range all {
		if !f.OK {
			faulty++
		}
	}
	if asJSON {
		if err := a.value(all); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			sign := "✓"
			if !f.OK {
				sign = "✗"
			}
			a.say("%s %-10s %s", sign, f.Check, plain(f.Detail))
			if f.Fix != "" {
				a.say("             → %s", plain(f.Fix))
			}
		}
	}
	if faulty > 0 {
		return told{ExitFailed}
	}
	return nil
}

// checkHost looks at the host the other commands would talk to.
func (a *app) checkHost(ctx context.Context, t target) []finding {
	p, err := a.resolve(t)
	if err != nil {
		return []finding{bad("profile", "Correct the file or leave --profile out.", "%v", err)}
	}
	c, err := a.dial(p, client.WithRetry(client.Retry{Attempts: 1}))
	if err != nil {
		return []finding{bad("host", "Give the address as http://HOST:PORT.", "%v", err)}
	}
	caps, err := c.Capabilities(ctx)
	if err != nil {
		return []finding{bad("host", "Start one with `fermata serve`, or say where it is with --server or FERMATA_SERVER.",
			"%v (the address comes from the %s)", err, p.from)}
	}
	out := []finding{good("host", "%s %s answers at %s", caps.Implementation.Name, caps.Implementation.Version, p.server)}
	out = append(out, checkReady(ctx, c), checkProtocol(caps), checkKey(ctx, c, p))
	if !caps.Date.IsZero() {
		out = append(out, checkClock(caps))
	}
	return out
}

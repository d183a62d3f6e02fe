package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/fermata-run/fermata/client"
	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Say which version this is", Args: noArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		v := struct {
			Version  string `json:"version"`
			Protocol string `json:"protocolVersion"`
			Commit   string `json:"commit,omitempty"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{a.env.Version, client.ProtocolVersion, commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		if *asJSON {
			return a.value(v)
		}
		a.say("fermata %s (OpenWOP %s)", v.Version, v.Protocol)
		if v.Commit != "" {
			a.say("commit %s", v.Commit)
		}
		a.say("%s %s", v.Go, v.Platform)
		return nil
	}
	return cmd
}

// commit is the revision the program was built from, if the build knows it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " (changed)"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}

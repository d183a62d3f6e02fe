package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// runsCommand holds the commands on a host's runs.
func (a *app) runsCommand() *cobra.Command {
	var t target
	g := group("runs", "Start, list, follow, pause, cancel, fork and prune runs",
		a.runsStart(&t), a.runsList(&t), a.runsShow(&t), a.runsEvents(&t), a.runsEffects(&t), a.runsBundle(&t), a.runsCancel(&t), a.runsPause(&t), a.runsResume(&t),
		a.runsFork(&t), a.runsDiff(&t), a.runsAncestry(&t), a.runsCompensation(&t), a.runsPrune())
	t.bind(g)
	return g
}

// runID takes a run's id as the host prints it or as a link carries it.
func runID(s string) string {
	if strings.Contains(s, "/") {
		return s
	}
	return strings.Replace(s, "~2F", "/", 1)
}

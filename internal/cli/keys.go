package cli

import "github.com/spf13/cobra"

// keysCommand holds the commands on API keys.
func (a *app) keysCommand() *cobra.Command {
	return group("keys", "Make API keys", a.keysCreate())
}

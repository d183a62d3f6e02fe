package fermata

import (
	"fmt"
	"slices"

	"github.com/fermata-run/fermata/internal/relax"
)

// relaxations lists what the configuration loosens.
func (c *Config) relaxations() []relax.Relaxation {
	return slices.Concat(relax.Egress(c.AllowEgress), relax.Webhooks(c.Webhooks.Allow), relax.Issuers(c.Lanes.OIDC.Plain() || c.Lanes.OAuth2.Plain()), relax.Seams(c.ConformanceSeams))
}

// checkMode gives the mode its default and holds the configuration to it.
func (c *Config) checkMode() error {
	if c.Mode == "" {
		c.Mode = string(relax.Development)
	}
	m := relax.Mode(c.Mode)
	if !m.Valid() {
		return fmt.Errorf("fermata: Config.Mode %q is not %s or %s", c.Mode, relax.Development, relax.Production)
	}
	if err := relax.Check(m, c.relaxations()); err != nil {
		return fmt.Errorf("fermata: %w", err)
	}
	return nil
}

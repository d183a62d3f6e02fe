package host

import (
	"context"
	"strings"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// fixturePrefixes begin the ids of the protocol's own workflows.
var fixturePrefixes = []string{"conformance-", "openwop-smoke-"}

// Fixtures are the ids of the protocol's own workflows that the operator's tenant
// has, on a host that was started for a conformance suite; nil on any other, whose
// workflows are nobody's business who has no credential.
func (h *Host) Fixtures(ctx context.Context) ([]string, error) {
	if !h.cfg.ConformanceSeams {
		return nil, nil
	}
	out := []string{}
	for _, prefix := range fixturePrefixes {
		after := strings.TrimSuffix(prefix, "-") // sorts before all of them
		for {
			rows, err := h.store.Workflows().List(ctx, h.cfg.Audit.Operator, after, h.cfg.Limits.MaxPageSize)
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				if strings.HasPrefix(r.ID, prefix) {
					out = append(out, r.ID)
				}
			}
			if len(rows) < h.cfg.Limits.MaxPageSize || !strings.HasPrefix(rows[len(rows)-1].ID, prefix) {
				break
			}
			after = rows[len(rows)-1].ID
		}
	}
	return out, nil
}

// Unprovided refuses an operation of a family that this host does not have, to a
// caller who might read runs.
func (h *Host) Unprovided(c identity.Caller, family string) error {
	if err := h.allow(c, identity.RunsRead); err != nil {
		return err
	}
	return problem.New(problem.CapabilityNotProvided, "this host does not provide %s", family).With("requiredCapability", family)
}

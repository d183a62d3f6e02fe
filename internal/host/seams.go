package host

import (
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// SeamsProfile is the profile of hosts with conformance seams (spec v2
// conformance.md §The seams profile).
const SeamsProfile = "openwop-conformance-seams-v2"

// seam admits a caller to a seam: the host was started for it, and the credential
// has the scope.
func (h *Host) seam(c identity.Caller) error {
	if err := h.allow(c, identity.Seams); err != nil {
		return err
	}
	if !h.cfg.ConformanceSeams {
		return problem.New(problem.NotFound, "this host was not started for a conformance suite")
	}
	return nil
}

package host

import (
	"context"

	"github.com/fermata-run/fermata/internal/problem"
)

// Ready reports whether the host can take on work: its store answers, and its
// engine neither stops nor has been declared lost.
func (h *Host) Ready(ctx context.Context) error {
	if !h.engine.Working() {
		return problem.New(problem.ServiceUnavailable, "the host takes on no work")
	}
	return h.store.Ping(ctx)
}

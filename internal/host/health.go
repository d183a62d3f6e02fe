package host

import (
	"context"

	"github.com/fermata-run/fermata/internal/problem"
)

// Ready reports whether the host can take on work: its store answers and takes
// writes, its engine neither stops nor has been declared lost, and nobody has said that
// it is about to stop.
func (h *Host) Ready(ctx context.Context) error {
	if !h.engine.Working() {
		return problem.New(problem.ServiceUnavailable, "the host takes on no work")
	}
	if h.leaving.Load() {
		return problem.New(problem.ServiceUnavailable, "the host is about to stop")
	}
	return h.store.Ping(ctx)
}

// Leave has Ready say that the host is about to stop. Everything else goes on.
func (h *Host) Leave() { h.leaving.Store(true) }

package host

import (
	"context"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// Effects reads the attempts of a run at effects outside, oldest first (spec v2
// idempotency.md §Witness). What was sent and received is no part of it.
func (h *Host) Effects(ctx context.Context, c identity.Caller, id ids.Run) ([]store.EffectAttempt, error) {
	if _, err := h.Head(ctx, c, id); err != nil {
		return nil, err
	}
	return h.store.Effects().Attempts(ctx, id, 0, 0)
}

package host

import "context"

// Ready reports whether the host can take on work: its store answers.
func (h *Host) Ready(ctx context.Context) error { return h.store.Ping(ctx) }

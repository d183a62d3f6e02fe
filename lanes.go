package fermata

import "github.com/fermata-run/fermata/internal/identity"

// pipeline puts the lanes together that callers come in by.
func (h *Host) pipeline() (*identity.Pipeline, error) {
	return identity.NewPipeline(nil, h.keys.Lane())
}

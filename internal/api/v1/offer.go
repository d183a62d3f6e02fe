package v1

import (
	"context"

	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
)

// offer adds to an open interrupt where it is answered: a token that does what the reader
// may do without it, and the URL it is brought to. An interrupt that has been answered
// since the snapshot was made has none.
func (a *API) offer(ctx context.Context, c identity.Caller, d *host.RunDetail, x *openInterrupt) error {
	id, err := ids.ParseRun(d.RunID)
	if err != nil {
		return err
	}
	t, err := a.host.OfferToken(ctx, c, id, x.NodeID)
	switch {
	case problem.Is(err, problem.InterruptAlreadyResolved), problem.Is(err, problem.NotFound):
		return nil
	case err != nil:
		return err
	}
	x.Token, x.CallbackURL = t.Token, tokenURL(a.base, t.Token)
	return nil
}

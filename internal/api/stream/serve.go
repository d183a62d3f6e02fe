package stream

import (
	"context"
	"errors"
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
)

// Wire is how a major of the protocol shows a run on a stream.
type Wire struct {
	*sse.Wire

	// Snapshot writes a state as the values mode shows it, and Follows says which
	// events it does so after.
	Snapshot func(*run.State) ([]byte, error)
	Follows  func(event.Type) bool

	// Clean takes out of a frame's data what is not to be shown.
	Clean func([]byte) []byte
}

// begun is a subscription that has been let in.
type begun struct {
	h       *host.Host
	id      ids.Run
	wire    Wire
	after   int64
	resumed bool
}

// allowed says whether whoever opened a stream may still read the run: its credential
// may have been revoked since, its tenant suspended, its role taken away. Nil if nothing
// of that can be asked again. That the store is away is no reason to turn anybody out.
func allowed(h *host.Host, r *api.Request, id ids.Run) func(context.Context) bool {
	if r.Still == nil {
		return nil
	}
	return func(ctx context.Context) bool {
		c, err := r.Still(ctx)
		if err == nil {
			_, err = h.Head(ctx, c, id)
		}
		var p *problem.Error
		return !errors.As(err, &p) || p.Status() >= http.StatusInternalServerError || p.Status() == http.StatusTooManyRequests
	}
}

// Serve answers with the run's events until its last, as long as the caller's
// credential lasts.
func Serve(h *host.Host, w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run, ask Ask, wire Wire) error {
	// The cursor is looked at only once the caller may read the run, so that it
	// never changes the answer for one he may not.
	if _, err := h.Head(r.Context(), c, id); err != nil {
		return err
	}
	after, resumed, err := LastEventID(r)
	if err != nil {
		return err
	}
	log, err := h.OpenLog(r.Context(), c, id, after)
	if err != nil {
		return err
	}
	defer log.Close()
	out, err := sse.Begin(w, ask.Mode, wire.Wire)
	if err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	out.Clean = wire.Clean
	s := stream{log: log, out: out, buffer: ask.Buffer, allowed: allowed(h, r, id), recheck: r.Recheck}
	if ask.Mode.Values {
		b := begun{h: h, id: id, wire: wire, after: after, resumed: resumed}
		if s.fold, err = b.folder(r.Context(), out); err != nil {
			if errors.Is(log.Cause(err), host.ErrShutdown) {
				return nil
			}
			return err
		}
	}
	// What the credential allowed when the stream began ends with it. A follower
	// comes back with a fresh one, and goes on behind what it has read.
	ctx, stop := r.Context(), func() {}
	if !c.Expires.IsZero() {
		ctx, stop = context.WithTimeout(ctx, c.Expires.Sub(h.Now()))
	}
	defer stop()
	return s.run(ctx)
}

package effect

import (
	"context"
	"errors"

	"github.com/fermata-run/fermata/node"
)

// Codes of a seam that is not passed.
const (
	codeReplay = "replay_source_missing" // spec v2 replay.md §Suppression, rule 3
	codeDenied = "egress_denied"
)

// markKey is where a context says what its call may do.
type markKey struct{}

// mark is nil for a call that nothing has been said of.
type mark struct {
	forbidden bool
	seams     *Registry
}

// Permit says that a call may pass the seams listed in r. What has been forbidden
// stays forbidden.
func Permit(ctx context.Context, r *Registry) context.Context {
	if Forbidden(ctx) {
		return ctx
	}
	return context.WithValue(ctx, markKey{}, &mark{seams: r})
}

// Forbid says that a call runs for a replay: it may pass no seam at all, and
// nothing made of ctx can take that back.
func Forbid(ctx context.Context) context.Context {
	return context.WithValue(ctx, markKey{}, &mark{forbidden: true})
}

// Forbidden reports whether ctx runs for a replay.
func Forbidden(ctx context.Context) bool {
	m, _ := ctx.Value(markKey{}).(*mark)
	return m != nil && m.forbidden
}

// Guard lets a call pass a seam: nil if its context permits effects and the seam is
// listed, else an error that wraps a *node.Error which is not retried. Every seam calls it before
// anything leaves the host. A context of which nothing is known is denied: a
// node that calls out with a context of its own gets nowhere.
func Guard(ctx context.Context, seam string) error {
	if err := Replayed(ctx, seam); err != nil {
		return err
	}
	m, _ := ctx.Value(markKey{}).(*mark)
	if m == nil {
		return denied(codeDenied, seam, "no-permission", "the seam %s was reached by a call that may have no effects", seam)
	}
	if !m.seams.Has(seam) {
		return denied(codeDenied, seam, "unlisted-seam", "the seam %q is not listed by this host", seam)
	}
	return nil
}

// Replayed refuses a call that runs for a replay and no other. It is for what
// lies below the seams, such as the dialer that the host's own calls use too.
func Replayed(ctx context.Context, seam string) error {
	if !Forbidden(ctx) {
		return nil
	}
	return denied(codeReplay, seam, "replay", "the seam %s was reached in a replay, which has no effects", seam)
}

// refusal marks an error of this package.
type refusal struct{ err *node.Error }

func (r refusal) Error() string { return r.err.Error() }
func (r refusal) Unwrap() error { return r.err }

// Refused reports whether err says that a seam was not passed, so that nothing has
// happened outside.
func Refused(err error) bool {
	var r refusal
	return errors.As(err, &r)
}

func denied(code, seam, reason, format string, args ...any) error {
	e := node.Fail(code, format, args...)
	e.Details = map[string]any{"seam": seam, "reason": reason}
	return refusal{e}
}

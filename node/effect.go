package node

import (
	"context"
	"encoding/json"
	"errors"
)

// Effect says what a node is about to do outside. The host claims it in its ledger
// before it happens and keeps the outcome, so that whoever wants the same effect
// again, the same node after a crash or another run, is given the outcome instead
// (spec v2 idempotency.md §Layer 2).
type Effect struct {
	// Seam is the way out, one of the type's Seams. Empty stands for the only one.
	Seam string

	// Key names the business operation: "order-17". Two effects of a tenant with
	// one Operation and Key are one effect, whichever runs, nodes and entry points
	// they come from. Without a Key the effect is that of this visit of this node.
	Key string
	// Operation is what Key counts within, such as "acme.payment.charge"; by
	// default the type's id.
	Operation string
	// Name tells the effects of one visit apart, where there is no Key. By default
	// they are counted, in the order in which a call performs them.
	Name string

	// InDoubt says what to do if nobody knows whether the effect has happened.
	InDoubt InDoubt

	// NoKey says that the other side is shown no key, or not the one the host makes,
	// so that none is listed with the effect.
	NoKey bool
	// InvocationID is the other side's or the node's own name for the call; it is
	// shown to everybody who may see the run.
	InvocationID string
}

// InDoubt is how to go on where the process was killed, or the connection broke,
// between an effect and the news of it.
type InDoubt uint8

const (
	// StopInDoubt fails the node with upstream_unavailable, details.reason
	// outcome-unknown, and no retry. Somebody has to look.
	StopInDoubt InDoubt = iota
	// RepeatInDoubt performs the effect again with the same key. It is right if the
	// other side knows the key again, or if once more does no harm.
	RepeatInDoubt
)

// Perform brings an effect about. key is the same for every attempt at it: hand it
// to the other side as its idempotency key. The outcome is JSON, at most 16 MiB
// (none stands for null), and what Services.Effect returns now and ever after; an error wrapped in NotDone
// says that the effect has not happened, any other that it may have.
type Perform func(ctx context.Context, key string) (outcome json.RawMessage, err error)

// NotDone marks an error by which it is certain that nothing has happened
// outside: no connection was made, or the other side refused. The effect may then
// be attempted anew, whatever Effect.InDoubt says.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return notDone{err}
}

// IsNotDone reports whether err, or one it wraps, was marked with NotDone.
func IsNotDone(err error) bool {
	var n notDone
	return errors.As(err, &n)
}

type notDone struct{ err error }

func (n notDone) Error() string { return n.err.Error() }
func (n notDone) Unwrap() error { return n.err }

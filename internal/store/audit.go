package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
)

// Audit keeps the audit log: one chain of entries for each tenant, and the host's
// own (audit.HostChain). Entries are placed by the backend, which alone knows where
// a chain ends: two writers can neither fork a chain nor leave a gap in it. Nothing
// changes an entry, and nothing but Cut removes one.
//
// An entry that belongs to a change is written with it: see Audited.
type Audit interface {
	// Append writes drafts that belong to no other change.
	Append(ctx context.Context, drafts ...*Draft) error
	// Head is where a chain ends; the zero Head but for its Chain if it is empty.
	Head(ctx context.Context, chain string) (Head, error)
	// Entries reads entries after a sequence, in order.
	Entries(ctx context.Context, chain string, after int64, limit int) ([]Entry, error)
	// Latest reads entries below a sequence, newest first; 0 stands for the end.
	Latest(ctx context.Context, chain string, below int64, limit int) ([]Entry, error)
	// Checkpoints reads checkpoints at sequences above after, in order.
	Checkpoints(ctx context.Context, chain string, after int64, limit int) ([]audit.Checkpoint, error)
	// Anchor adds a checkpoint and makes c.AtSequence what is anchored. waiting is
	// the time of the first entry behind it, zero if there is none. ErrStale if the
	// chain is anchored elsewhere than at c.From, or does not reach as far.
	Anchor(ctx context.Context, chain string, c audit.Checkpoint, waiting time.Time) error
	// Unanchored reads the heads of chains with entries that no checkpoint anchors,
	// by name after the given one.
	Unanchored(ctx context.Context, after string, limit int) ([]Head, error)
	// Heads reads the heads of all chains, by name after the given one.
	Heads(ctx context.Context, after string, limit int) ([]Head, error)
	// Cut removes up to limit of the oldest entries up to m.Sequence and records m
	// as the chain's cut. It returns how many it removed. ErrStale if the chain is
	// cut beyond m already, or not anchored as far. Checkpoints stay.
	Cut(ctx context.Context, chain string, m audit.Mark, limit int) (int, error)
	// LastCut is the chain's cut; ErrNotFound if there is none.
	LastCut(ctx context.Context, chain string) (audit.Mark, error)
}

// Head is where a chain ends.
type Head struct {
	Chain string
	audit.Position
	Anchored int64     // the last entry that a checkpoint anchors
	Waiting  time.Time // of the first entry that none anchors; zero if there is none
}

// Entry is an entry as it is kept: its canonical bytes, and the sequence under which
// they are found, which may not be what they say.
type Entry struct {
	Sequence int64
	Body     []byte
}

// Draft is a fact that is to be written to a chain. Whoever makes one may change it
// until it is handed to the store, and a write that it goes along with until the
// write begins.
type Draft struct {
	Chain string
	audit.Fact

	written atomic.Bool
	placed  atomic.Pointer[Entry]
}

// Place remembers where a write whose outcome may stay unknown has put the draft. It is
// for backends, whose next try looks whether it is there: the entry holds the hash of the
// one before it, so that none but it has its bytes in its place.
func (d *Draft) Place(e Entry) { d.placed.Store(&e) }

// Placed is what Place was told last; nil for nothing.
func (d *Draft) Placed() *Entry { return d.placed.Load() }

// Written reports whether the draft is durable.
func (d *Draft) Written() bool { return d.written.Load() }

// Keep marks drafts as durable. It is for backends.
func Keep(drafts []*Draft) {
	for _, d := range drafts {
		d.written.Store(true)
	}
}

type draftsKey struct{}

// Audited has drafts written along with the next change that is made with the
// context: in the same transaction, or not at all. A change that fails takes no
// draft with it, nor does a read. Each draft is written once.
func Audited(ctx context.Context, drafts ...*Draft) context.Context {
	if len(drafts) == 0 {
		return ctx
	}
	return context.WithValue(ctx, draftsKey{}, drafts)
}

// Unaudited is the context without its drafts, for changes that are only on the
// way to the one that counts.
func Unaudited(ctx context.Context) context.Context {
	if ctx.Value(draftsKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, draftsKey{}, []*Draft(nil))
}

// Drafts are those of the context that are still to be written.
func Drafts(ctx context.Context) []*Draft {
	all, _ := ctx.Value(draftsKey{}).([]*Draft)
	for i, d := range all {
		if !d.Written() {
			continue
		}
		open := append([]*Draft(nil), all[:i]...)
		for _, d := range all[i+1:] {
			if !d.Written() {
				open = append(open, d)
			}
		}
		return open
	}
	return all
}

package cli

import (
	"context"
	"slices"
)

// maxFollowed bounds the child runs that are followed at the same time. Others
// wait for their turn: a map over thousands of items must not open thousands of
// streams.
const maxFollowed = 32

// children are the child runs of a session.
type children struct {
	s    *session
	ctx  context.Context
	open []string        // being followed
	next []string        // waiting for their turn
	seen map[string]bool // ever
}

func (k *children) init(s *session, ctx context.Context) {
	k.s, k.ctx, k.seen = s, ctx, map[string]bool{}
}

func (k *children) begin(run string) {
	if k.seen[run] {
		return
	}
	k.seen[run] = true
	k.next = append(k.next, run)
	k.fill()
}

func (k *children) fill() {
	for len(k.next) > 0 && len(k.open) < maxFollowed {
		run := k.next[0]
		k.next = k.next[1:]
		k.open = append(k.open, run)
		go k.s.follow(k.ctx, run)
	}
}

func (k *children) ended(run string) {
	k.open = slices.DeleteFunc(k.open, func(r string) bool { return r == run })
	k.fill()
}

// settled reports whether no child run is worth waiting for once the run itself
// is over. Those that are over too only have their last events on the way; those
// that are not were set free and go on by themselves.
func (k *children) settled(ctx context.Context) bool {
	k.next = nil
	k.open = slices.DeleteFunc(k.open, func(run string) bool {
		r, err := k.s.c.GetRun(ctx, run)
		return err != nil || !r.Status.Terminal()
	})
	return len(k.open) == 0
}

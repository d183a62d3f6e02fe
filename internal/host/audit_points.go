package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/relax"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// Audit says how the audit log is kept. The zero value is a good choice.
type Audit struct {
	Entries   int           // the most that one checkpoint anchors; default 1,000
	Interval  time.Duration // the longest an entry waits for a checkpoint; default 1 min
	Retention time.Duration // for which entries are kept; zero for ever
	Runs      bool          // record the start of every run, too
	Operator  string        // the tenant that may see the host's own chain
}

func (a *Audit) defaults() {
	if a.Entries <= 0 {
		a.Entries = 1000
	}
	if a.Interval <= 0 {
		a.Interval = time.Minute
	}
}

const (
	headPage   = 200
	maxFlush   = 10 * time.Second // of what is written at the end
	cutsEvery  = time.Hour
	firstWord  = "host.start"
	lastWord   = "host.stop"
	cutEntries = "audit.cut"
)

// Audit writes what has been denied and signs checkpoints, until ctx ends; then it
// does both for the last time. Two replicas that do it at once do no harm.
func (h *Host) Audit(ctx context.Context) {
	h.note(ctx, h.fact(audit.HostChain, firstWord, audit.Target{Type: "host"}, relaxed(h.cfg.Version, h.cfg.Relaxations)))
	wait := max(h.cfg.Audit.Interval/4, 10*time.Millisecond)
	var flushed, cut time.Time
	for ctx.Err() == nil {
		now := h.clock.Now()
		if now.Sub(flushed) >= denialsEvery || now.Before(flushed) {
			h.note(ctx, h.denials.take(now)...)
			flushed = now
		}
		h.complain(ctx, h.anchorAll(ctx, false))
		if h.cfg.Audit.Retention > 0 && now.Sub(cut) >= cutsEvery {
			h.complain(ctx, h.cutAll(ctx))
			cut = now
		}
		select {
		case <-ctx.Done():
		case <-h.clock.After(wait):
		}
	}
	end, done := context.WithTimeout(context.WithoutCancel(ctx), maxFlush)
	defer done()
	h.note(end, append(h.denials.take(h.clock.Now()), h.fact(audit.HostChain, lastWord, audit.Target{Type: "host"}, nil))...)
	h.complain(end, h.anchorAll(end, true))
}

// relaxed says with what protections loosened the host has started.
func relaxed(version string, list []relax.Relaxation) map[string]string {
	out := map[string]string{"version": version}
	for i, r := range list {
		if i == 10 {
			out["relaxations"] = strconv.Itoa(len(list))
			break
		}
		out["relaxation-"+strconv.Itoa(i+1)] = r.Name
	}
	return out
}

// note writes drafts that no caller waits for.
func (h *Host) note(ctx context.Context, drafts ...*store.Draft) {
	if len(drafts) > 0 {
		h.complain(ctx, h.store.Audit().Append(ctx, drafts...))
	}
}

func (h *Host) complain(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) && h.cfg.Log != nil {
		h.cfg.Log.Error("the audit log is not in order", "err", err)
	}
}

// anchorAll signs checkpoints of every chain that is due for one: enough entries,
// or one that has waited for half of what it may; with all, of every entry.
func (h *Host) anchorAll(ctx context.Context, all bool) error {
	if err := h.auditKeys.load(ctx); err != nil {
		return err
	}
	var errs []error
	for after := ""; ; {
		heads, err := h.store.Audit().Unanchored(ctx, after, headPage)
		if err != nil {
			return err
		}
		for _, head := range heads {
			due := all || h.clock.Now().Sub(head.Waiting) >= h.cfg.Audit.Interval/2 || h.clock.Now().Before(head.Waiting)
			if err := h.anchor(ctx, head, due); err != nil {
				errs = append(errs, fmt.Errorf("chain %s: %w", head.Chain, err))
			}
		}
		if len(heads) < headPage {
			return errors.Join(errs...)
		}
		after = heads[len(heads)-1].Chain
	}
}

// anchor signs what of a chain no checkpoint anchors. It verifies what it signs:
// what was changed before is not made good by a signature.
func (h *Host) anchor(ctx context.Context, head store.Head, due bool) error {
	signer, ok := h.auditKeys.signer()
	if !ok {
		return errors.New("there is no key to sign checkpoints with")
	}
	for most := int64(h.cfg.Audit.Entries); head.Sequence-head.Anchored >= most || due && head.Sequence > head.Anchored; {
		n := min(most, head.Sequence-head.Anchored)
		start, err := h.position(ctx, head.Chain, head.Anchored)
		if err != nil {
			return err
		}
		// One more, to know since when it waits.
		list, err := h.store.Audit().Entries(ctx, head.Chain, head.Anchored, int(n)+1)
		if err != nil {
			return err
		}
		w := audit.Walk(head.Chain, start, nil, nil)
		for _, e := range list[:min(len(list), int(n))] {
			w.Add(e.Sequence, e.Body)
		}
		end := w.End()
		if !w.Valid() || end.Sequence != head.Anchored+n || end.Sequence == head.Sequence && end.Hash != head.Hash {
			return fmt.Errorf("its entries from %d to %d do not hold and are not signed", head.Anchored+1, head.Anchored+n)
		}
		var waiting time.Time
		if len(list) > int(n) {
			waiting = timeOf(list[n].Body)
		}
		err = h.store.Audit().Anchor(ctx, head.Chain, signer.Seal(head.Chain, head.Anchored, w.Leaves(), h.clock.Now()), waiting)
		if err != nil && !errors.Is(err, store.ErrStale) {
			return err
		}
		if err != nil { // somebody else has signed it
			now, err := h.store.Audit().Head(ctx, head.Chain)
			if err != nil || now.Anchored <= head.Anchored {
				return err
			}
			end.Sequence = now.Anchored
		}
		head.Anchored = end.Sequence
	}
	return nil
}

func timeOf(body []byte) time.Time {
	var e struct {
		At time.Time `json:"at"`
	}
	if json.Unmarshal(body, &e) != nil {
		return time.Time{}
	}
	return e.At
}

// position is the place in a chain after a sequence: the start, the cut, or an
// entry that is there. Where none of them is, the hash is empty and nothing that
// follows can hold.
func (h *Host) position(ctx context.Context, chain string, sequence int64) (audit.Position, error) {
	if sequence == 0 {
		return audit.Position{}, nil
	}
	cut, err := h.store.Audit().LastCut(ctx, chain)
	switch {
	case err == nil && cut.Sequence == sequence:
		return audit.Position{Sequence: sequence, Hash: cut.Hash}, nil
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return audit.Position{}, err
	}
	list, err := h.store.Audit().Entries(ctx, chain, sequence-1, 1)
	if err != nil || len(list) == 0 || list[0].Sequence != sequence {
		return audit.Position{Sequence: sequence}, err
	}
	return audit.Position{Sequence: sequence, Hash: audit.Hash(list[0].Body)}, nil
}

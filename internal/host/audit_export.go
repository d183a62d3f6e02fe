package host

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

// AuditPage is one page of entries, the newest first.
type AuditPage struct {
	Entries    []AuditEntry `json:"entries"`
	NextCursor string       `json:"nextCursor,omitzero"`
}

// AuditEntry is an entry with its hash.
type AuditEntry struct {
	Hash  string         `json:"hash"`
	Entry jsontext.Value `json:"entry"`
}

func sequenceText(n int64) string { return strconv.FormatInt(n, 10) }

// sequenceOf is 0 for what is no sequence.
func sequenceOf(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// ListAudit reads a page of a chain, the newest first.
func (h *Host) ListAudit(ctx context.Context, c identity.Caller, which, cursor string, limit int) (AuditPage, error) {
	chain, err := h.chain(c, which)
	if err != nil {
		return AuditPage{}, err
	}
	key, below := "audit\x00"+chain, int64(0)
	if cursor != "" {
		s, ok := readCursor(cursor, key)
		if below = sequenceOf(s); !ok || below == 0 {
			return AuditPage{}, problem.Invalid("cursor", "is not a cursor of this list")
		}
	}
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, h.cfg.Limits.MaxPageSize)
	rows, err := h.store.Audit().Latest(ctx, chain, below, limit+1)
	if err != nil {
		return AuditPage{}, err
	}
	page := AuditPage{Entries: []AuditEntry{}}
	if len(rows) > limit {
		rows = rows[:limit]
		page.NextCursor = makeCursor(sequenceText(rows[limit-1].Sequence), key)
	}
	for _, r := range rows {
		page.Entries = append(page.Entries, AuditEntry{audit.Hash(r.Body), r.Body})
	}
	return page, nil
}

// ExportAudit hands out a whole chain, line by line, so that it can be verified
// elsewhere without the host (audit.VerifyExport). It ends at a checkpoint that is
// made for it. A chain that does not hold is exported as it is. After the first
// line, an error means that the export broke off.
func (h *Host) ExportAudit(ctx context.Context, c identity.Caller, which string, emit func(audit.Line) error) error {
	chain, err := h.chain(c, which)
	if err != nil {
		return err
	}
	if err := h.auditKeys.load(ctx); err != nil {
		return err
	}
	head, err := h.store.Audit().Head(ctx, chain)
	if err != nil {
		return err
	}
	h.complain(ctx, h.anchor(ctx, head, true))
	if head, err = h.store.Audit().Head(ctx, chain); err != nil {
		return err
	}
	x := export{h: h, chain: chain, end: head.Position, anchored: head.Anchored, emit: emit}
	return x.all(ctx)
}

// export is a chain on its way out.
type export struct {
	h      *Host
	chain  string
	end    audit.Position // as the head has it
	at     audit.Position
	points []audit.Checkpoint

	anchored int64 // as the head has it: what is signed meanwhile is for another time
	seen     int64 // the last checkpoint that was read
	emit     func(audit.Line) error
}

func (x *export) all(ctx context.Context) error {
	if err := x.begin(ctx); err != nil {
		return err
	}
	for x.at.Sequence < x.end.Sequence {
		list, err := x.h.store.Audit().Entries(ctx, x.chain, x.at.Sequence, auditPage)
		if err != nil {
			return err
		}
		before := x.at.Sequence
		for _, e := range list {
			if e.Sequence > x.end.Sequence {
				break
			}
			if err := x.emit(audit.Line{Type: "entry", Entry: e.Body}); err != nil {
				return err
			}
			x.at = audit.Position{Sequence: e.Sequence, Hash: audit.Hash(e.Body)}
			if err := x.pass(ctx); err != nil {
				return err
			}
		}
		if x.at.Sequence == before {
			break
		}
	}
	if err := x.rest(ctx); err != nil {
		return err
	}
	signer, ok := x.h.auditKeys.signer()
	if !ok {
		return errors.New("there is no key to sign the end of an export with")
	}
	// What the head says counts, not what the entries came to.
	m := signer.End(x.chain, x.end, x.h.clock.Now())
	return x.emit(audit.Line{Type: "end", End: &m})
}

func (x *export) begin(ctx context.Context) error {
	header := audit.Line{Type: "header", Format: audit.Format, Chain: x.chain}
	cut, err := x.h.store.Audit().LastCut(ctx, x.chain)
	switch {
	case err == nil:
		header.Cut, x.at, x.seen = &cut, audit.Position{Sequence: cut.Sequence, Hash: cut.Hash}, cut.Sequence
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if err := x.emit(header); err != nil {
		return err
	}
	for _, k := range x.h.auditKeys.texts() {
		if err := x.emit(audit.Line{Type: "key", PublicKey: k}); err != nil {
			return err
		}
	}
	return nil
}

// pass emits the checkpoints that end at or before the entry just emitted.
func (x *export) pass(ctx context.Context) error {
	for {
		if len(x.points) == 0 {
			list, err := x.h.store.Audit().Checkpoints(ctx, x.chain, x.seen, auditPage)
			if err != nil || len(list) == 0 {
				return err
			}
			x.points = list
		}
		p := x.points[0]
		if p.AtSequence > x.at.Sequence || p.AtSequence > x.anchored {
			return nil
		}
		if err := x.emit(audit.Line{Type: "checkpoint", Checkpoint: &p}); err != nil {
			return err
		}
		x.points, x.seen = x.points[1:], p.AtSequence
	}
}

// rest emits checkpoints of entries that are gone: whoever verifies the export is
// to see that they were there.
func (x *export) rest(ctx context.Context) error {
	head, err := x.h.store.Audit().Head(ctx, x.chain)
	if err != nil {
		return err
	}
	if head.Anchored <= x.anchored { // the head does not say that anything was signed meanwhile
		x.anchored = 1<<63 - 1
	}
	at := x.at
	x.at.Sequence = 1<<63 - 1
	err = x.pass(ctx)
	x.at = at
	return err
}

// cutAll removes entries that are older than the operator wants them. Where a
// chain does not hold, nothing is removed of it.
func (h *Host) cutAll(ctx context.Context) error {
	var errs []error
	for after := ""; ; {
		heads, err := h.store.Audit().Heads(ctx, after, headPage)
		if err != nil {
			return err
		}
		for _, head := range heads {
			errs = append(errs, h.cutChain(ctx, head))
		}
		if len(heads) < headPage {
			return errors.Join(errs...)
		}
		after = heads[len(heads)-1].Chain
	}
}

func (h *Host) cutChain(ctx context.Context, head store.Head) error {
	old := h.clock.Now().Add(-h.cfg.Audit.Retention)
	v := verification{h: h, chain: head.Chain, head: head, keys: h.auditKeys.published()}
	if err := v.findCut(ctx); err != nil {
		return err
	}
	at := v.cut.Sequence
	for more := true; more; {
		list, err := h.store.Audit().Checkpoints(ctx, head.Chain, at, auditPage)
		if err != nil {
			return err
		}
		more = len(list) == auditPage
		for _, p := range list {
			t, err := time.Parse(time.RFC3339, p.At)
			if err != nil || t.After(old) {
				more = false
				break
			}
			at = p.AtSequence
		}
	}
	m := v.cut
	if at > v.cut.Sequence {
		v.from, v.to = v.cut.Sequence+1, at
		if err := v.walk(ctx); err != nil {
			return err
		}
		signer, ok := h.auditKeys.signer()
		if !ok || !v.w.Valid() || v.cutBad || v.w.End().Sequence != at {
			return errors.New("chain " + head.Chain + " does not hold: its old entries are not removed")
		}
		m = signer.Cut(head.Chain, v.w.End(), h.clock.Now())
		ctx = store.Audited(ctx, h.fact(head.Chain, cutEntries, audit.Target{Type: "audit", ID: head.Chain},
			map[string]string{"first": sequenceText(v.cut.Sequence + 1), "last": sequenceText(at)}))
	}
	for n := sweepBatch; n == sweepBatch && m.Sequence > 0; { // an interrupted one goes on
		var err error
		if n, err = h.store.Audit().Cut(ctx, head.Chain, m, sweepBatch); err != nil {
			if errors.Is(err, store.ErrStale) {
				return nil
			}
			return err
		}
	}
	return nil
}

package host

import (
	"context"
	"errors"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

const (
	auditPage = 500
	// maxVerify bounds how many entries one request has walked.
	maxVerify = 250_000
	// ToTheEnd stands for the end of a chain.
	ToTheEnd = -1
)

// AuditVerdict is the answer of verifyAuditLog.
type AuditVerdict struct {
	From             int64             `json:"fromSeq"`
	To               int64             `json:"toSeq"`
	ChainValid       bool              `json:"chainValid"`
	CheckpointsValid bool              `json:"checkpointsValid"`
	Checkpoints      []AuditCheckpoint `json:"checkpoints"`
	Anomalies        []audit.Anomaly   `json:"anomalies"`
}

// AuditCheckpoint is a checkpoint as the protocol shows it.
type AuditCheckpoint struct {
	Checkpoint string `json:"checkpoint"`
	AtSequence int64  `json:"atSequence"`
	MerkleRoot string `json:"merkleRoot"`
	Signature  string `json:"signature"`
}

// VerifyAudit walks a chain from one sequence to another and says whether it holds
// (spec v2 security-defaults.md §Audit-log integrity). Every checkpoint it shows
// verifies under the key of discovery: one that an older key has signed, and that
// holds, is signed again.
func (h *Host) VerifyAudit(ctx context.Context, c identity.Caller, which string, from, to int64) (AuditVerdict, error) {
	chain, err := h.chain(c, which)
	if err != nil {
		return AuditVerdict{}, err
	}
	if to < from && to != ToTheEnd {
		return AuditVerdict{}, problem.Invalid("toSeq", "must not be below fromSeq")
	}
	if err := h.auditKeys.load(ctx); err != nil {
		return AuditVerdict{}, err
	}
	head, err := h.store.Audit().Head(ctx, chain)
	if err != nil {
		return AuditVerdict{}, err
	}
	if to == ToTheEnd {
		to = max(from, head.Sequence)
	}
	if min(to, head.Sequence)-from > maxVerify {
		return AuditVerdict{}, problem.Invalid("toSeq", "at most %d entries can be verified at once", maxVerify).With("limit", maxVerify)
	}
	v := verification{h: h, chain: chain, head: head, from: from, to: to, keys: h.auditKeys.published()}
	if err := v.walk(ctx); err != nil {
		return AuditVerdict{}, err
	}
	return v.verdict(), nil
}

// verification is one walk over a chain.
type verification struct {
	h        *Host
	chain    string
	head     store.Head
	from, to int64
	keys     audit.Keys

	cut    audit.Mark
	isCut  bool
	cutBad bool
	points []audit.Checkpoint // from the last one before the range to its end
	w      *audit.Walker
}

func (v *verification) walk(ctx context.Context) error {
	if err := v.findCut(ctx); err != nil {
		return err
	}
	start, err := v.start(ctx)
	if err != nil {
		return err
	}
	points := v.points
	for len(points) > 0 && points[0].AtSequence <= start.Sequence {
		points = points[1:]
	}
	v.w = audit.Walk(v.chain, start, v.keys, points)
	end := min(v.to, v.head.Sequence)
	if err := v.pages(ctx, end); err != nil {
		return err
	}
	if v.to < max(v.head.Sequence, v.head.Anchored) {
		v.w.Until(v.to)
		return nil
	}
	return v.close(ctx)
}

// pages walks as far as the head says that the chain reaches.
func (v *verification) pages(ctx context.Context, end int64) error {
	for after := v.w.End().Sequence; after < end; after = v.w.End().Sequence {
		list, err := v.h.store.Audit().Entries(ctx, v.chain, after, int(min(auditPage, end-after)))
		if err != nil {
			return err
		}
		for _, e := range list {
			if e.Sequence <= end {
				v.w.Add(e.Sequence, e.Body)
			}
		}
		if v.w.End().Sequence == after {
			return nil
		}
	}
	return nil
}

// close holds the walk's end against the head. An entry or a checkpoint behind the
// head is there for a good reason only if the head has moved since.
func (v *verification) close(ctx context.Context) error {
	more, err := v.h.store.Audit().Entries(ctx, v.chain, v.head.Sequence, 1)
	if err != nil {
		return err
	}
	signed, err := v.h.store.Audit().Checkpoints(ctx, v.chain, v.head.Anchored, 1)
	if err != nil {
		return err
	}
	now, err := v.h.store.Audit().Head(ctx, v.chain)
	if err != nil {
		return err
	}
	if len(more) > 0 && now.Sequence <= v.head.Sequence {
		v.w.Add(more[0].Sequence, more[0].Body)
	}
	if len(signed) > 0 && now.Anchored <= v.head.Anchored {
		v.w.Bad(signed[0].AtSequence)
	}
	v.w.Close(v.head.Position, v.head.Anchored)
	return nil
}

func (v *verification) findCut(ctx context.Context) error {
	cut, err := v.h.store.Audit().LastCut(ctx, v.chain)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	v.cut, v.isCut, v.cutBad = cut, true, !v.keys.Removed(v.chain, cut)
	return nil
}

// start finds the last checkpoint before the range, where a walk can begin that
// recomputes every root within it, and reads the checkpoints from there on.
func (v *verification) start(ctx context.Context) (audit.Position, error) {
	floor := int64(0)
	if v.isCut {
		floor = v.cut.Sequence
	}
	look := max(v.from-1-int64(v.h.cfg.Audit.Entries), floor)
	at, err := v.scan(ctx, look)
	if err == nil && at == look && look > floor { // they were farther apart once
		at, err = v.scan(ctx, floor)
	}
	if err != nil {
		return audit.Position{}, err
	}
	return v.h.position(ctx, v.chain, at)
}

// scan reads the checkpoints after a sequence. It returns the last one before the
// range, or that sequence.
func (v *verification) scan(ctx context.Context, after int64) (int64, error) {
	v.points = nil
	for at := after; ; {
		list, err := v.h.store.Audit().Checkpoints(ctx, v.chain, after, auditPage)
		if err != nil {
			return 0, err
		}
		for _, p := range list {
			if after = p.AtSequence; after < v.from {
				at = after
			}
			// What was anchored after the head was read is for another time.
			if after <= v.to && after <= v.head.Anchored {
				v.points = append(v.points, p)
			}
		}
		if len(list) < auditPage || after >= v.to {
			return at, nil
		}
	}
}

func (v *verification) verdict() AuditVerdict {
	out := AuditVerdict{
		From: v.from, To: v.to, Checkpoints: []AuditCheckpoint{}, Anomalies: []audit.Anomaly{},
		CheckpointsValid: len(v.w.BadCheckpoints) == 0 && !v.cutBad,
	}
	signer, _ := v.h.auditKeys.signer()
	for _, p := range v.points {
		if p.AtSequence < v.from {
			continue
		}
		switch good := v.keys.Signed(p); {
		case !good:
			out.CheckpointsValid = false
		case p.KeyID != signer.KeyID:
			p = signer.Again(p)
		}
		out.Checkpoints = append(out.Checkpoints, AuditCheckpoint{p.ID, p.AtSequence, p.Root, p.Signature})
	}
	out.Anomalies = append(out.Anomalies, v.w.Anomalies...)
	out.ChainValid = len(out.Anomalies) == 0 && out.CheckpointsValid
	return out
}

package host

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json/jsontext"
)

// ForkRun is the request of forkRun, decoded.
type ForkRun struct {
	Mode    string
	FromSeq *int64            // nil if it is not given
	Options event.ForkOptions // of a branch, in place of its source's
	Written jsontext.Value    // their configurable in the form of an older major, if it came so
}

// Forked is a fork that has come into being.
type Forked struct {
	ID      ids.Run
	Source  ids.Run
	FromSeq int64
	Mode    string
	Status  string
}

// ForkRun makes a run that begins with the log of another (spec v2 runs.md §Fork).
func (h *Host) ForkRun(ctx context.Context, c identity.Caller, source ids.Run, r ForkRun) (Forked, error) {
	if err := h.allow(c, identity.RunsCreate); err != nil {
		return Forked{}, err
	}
	if err := h.admit(ctx, c, identity.RunsRead, source); err != nil {
		return Forked{}, err
	}
	seq, err := r.check()
	if err != nil {
		return Forked{}, err
	}
	out := Forked{Source: source, FromSeq: seq, Mode: r.Mode}
	try := attemptIn(ctx)
	if made, done, err := h.created(ctx, try); done || err != nil {
		out.ID, out.Status = made.ID, made.Status
		return out, err
	}
	row, err := h.store.Runs().Get(ctx, source)
	if err != nil {
		return Forked{}, notFound(err)
	}
	if seq > row.Seq {
		return Forked{}, problem.New(problem.ForkPointInvalid, "the run has no event %d", seq).
			With("field", "fromSeq").With("fromSeq", seq).With("lastSequence", row.Seq)
	}
	f := run.Fork{Mode: r.Mode, Seq: seq}
	if f.Options, err = h.overlay(ctx, &row, r.Options, r.Written); err != nil {
		return Forked{}, err
	}
	id := try.run
	if id.IsZero() {
		id = h.engine.NewID(c.Tenant())
	}
	d := onRun("run.fork", id).with("source", source.String()).with("mode", r.Mode).with("fromSeq", sequenceText(seq))
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (Forked, error) {
		return h.fork(ctx, id, &row, f, out)
	})
}

func (h *Host) fork(ctx context.Context, id ids.Run, row *store.Run, f run.Fork, out Forked) (Forked, error) {
	try := attemptIn(ctx)
	begun, err := h.active.begin(ctx, id.Tenant)
	if err != nil {
		return Forked{}, err
	}
	defer begun()
	o, err := h.engine.Fork(ctx, id, row, f)
	if errors.Is(err, store.ErrExists) { // an earlier try came through after all
		if made, done, err := h.created(ctx, try); done || err != nil {
			out.ID, out.Status = made.ID, made.Status
			return out, err
		}
	}
	if err != nil {
		return Forked{}, err
	}
	out.ID, out.Status = id, accepted(o.Status)
	return out, nil
}

// check refuses what no source could make valid, and fills in what may be left
// out.
func (r *ForkRun) check() (seq int64, err error) {
	switch r.Mode {
	case run.ModeReplay:
		if !r.Options.IsZero() {
			return 0, problem.Invalid("runOptionsOverlay", "goes with the mode branch only")
		}
	case run.ModeBranch:
		if r.FromSeq == nil {
			return 0, problem.Invalid("fromSeq", "is required for the mode branch")
		}
	case "":
		return 0, problem.Invalid("mode", "is required: replay or branch")
	default:
		return 0, problem.Invalid("mode", "%q is not replay or branch", r.Mode)
	}
	if r.FromSeq == nil {
		return 0, nil
	}
	if *r.FromSeq < 0 {
		return 0, problem.Invalid("fromSeq", "must not be negative")
	}
	return *r.FromSeq, nil
}

// overlay is a branch's own options, held to the rules of createRun.
func (h *Host) overlay(ctx context.Context, row *store.Run, o event.ForkOptions, written jsontext.Value) (*event.ForkOptions, error) {
	if o.IsZero() {
		return nil, nil
	}
	if err := within("runOptionsOverlay.", checkOptions(CreateRun{Tags: o.Tags, Metadata: o.Metadata})); err != nil {
		return nil, err
	}
	if len(o.Configurable) > 0 {
		wf, err := h.engine.Definitions().Get(ctx, row.ID.Tenant, row.WorkflowID, row.WorkflowVersion)
		if err != nil {
			return nil, err
		}
		if err := within("runOptionsOverlay.", checkConfigurable(wf, o.Configurable, written)); err != nil {
			return nil, err
		}
	}
	return h.shownOptions(row.ID.Tenant, o), nil
}

// shownOptions are options without the secrets that may be in them, as those of a
// new run are recorded.
func (h *Host) shownOptions(tenant string, o event.ForkOptions) *event.ForkOptions {
	r := h.cfg.Redact
	o.Configurable, o.Metadata = r.JSON(tenant, o.Configurable), r.JSON(tenant, o.Metadata)
	tags := slices.Clone(o.Tags)
	for i := range tags {
		tags[i] = r.Text(tenant, tags[i])
	}
	o.Tags = tags
	return &o
}

// within puts the field a refusal names below another.
func within(path string, err error) error {
	var p *problem.Error
	if !errors.As(err, &p) {
		return err
	}
	if field, ok := p.Details["field"].(string); ok {
		return p.With("field", path+field)
	}
	return err
}

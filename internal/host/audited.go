package host

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// deed is what a caller changes, in words that may be kept for ever: ids, names,
// and words of a fixed list. No secret, no token, no payload, no free text.
type deed struct {
	chain  string // the caller's tenant if empty
	action string
	target audit.Target
	detail map[string]string
}

func onRun(action string, id ids.Run) deed {
	return deed{action: action, target: audit.Target{Type: "run", ID: id.String()}}
}

// with adds a detail, unless it says nothing.
func (d deed) with(name, value string) deed {
	if value == "" {
		return d
	}
	d.detail = maps.Clone(d.detail)
	if d.detail == nil {
		d.detail = map[string]string{}
	}
	d.detail[name] = value
	return d
}

// audited is the one way in which a use case changes something for a caller. The
// entry becomes durable in the same transaction as the change, or, where nothing
// had to be changed, before the caller hears of it. What is refused changes nothing;
// that somebody was not allowed is counted (denials).
func audited[T any](ctx context.Context, h *Host, c identity.Caller, d deed, do func(context.Context, *store.Draft) (T, error)) (T, error) {
	draft := h.draft(ctx, c, d)
	out, err := do(store.Audited(ctx, draft), draft)
	if err != nil {
		h.refused(c, d, err)
		return out, err
	}
	if draft.Written() {
		return out, nil
	}
	if err := h.store.Audit().Append(ctx, draft); err != nil {
		var none T
		return none, err
	}
	return out, nil
}

// audits is audited for a change without a result.
func (h *Host) audits(ctx context.Context, c identity.Caller, d deed, do func(context.Context) error) error {
	_, err := audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

func (h *Host) draft(ctx context.Context, c identity.Caller, d deed) *store.Draft {
	try := attemptIn(ctx)
	if try.again {
		d = d.with("attempt", "repeated")
	}
	chain := d.chain
	if chain == "" {
		chain = c.Tenant()
	}
	return &store.Draft{Chain: chain, Fact: audit.Fact{
		At: h.clock.Now(), Actor: actorOf(c), Action: d.action, Outcome: audit.Done, Target: d.target,
		Request: try.mark, Detail: d.detail,
	}}
}

// refused counts what a caller was not allowed to do for another reason than a
// scope, which allow has counted.
func (h *Host) refused(c identity.Caller, d deed, err error) {
	var p *problem.Error
	if errors.As(err, &p) && p.Code == problem.Forbidden && p.Details["requiredScope"] == nil {
		reason, _ := p.Details["reason"].(string)
		h.denials.note(c, d.action, reason, h.clock.Now())
	}
}

// actorOf is a caller as entries name it.
func actorOf(c identity.Caller) audit.Actor {
	a := subjectOf(&c.Subject)
	// How strongly the request was tied to who made it (spec v2 identity.md §2.3);
	// nobody has looked at a credential of a request that this process itself makes.
	a.Assurance = cmp.Or(c.Assurance, identity.Bearer)
	return *a
}

func subjectOf(s *event.Subject) *audit.Actor {
	if s == nil {
		return nil
	}
	return &audit.Actor{
		Issuer: s.Issuer, SubjectID: s.SubjectID, Tenant: s.Tenant, Lane: s.Lane, Kind: s.Kind, Via: subjectOf(s.Actor),
	}
}

// itself is the host as an actor.
var itself = audit.Actor{Kind: "host"}

// fact is something that the host itself does.
func (h *Host) fact(chain, action string, target audit.Target, detail map[string]string) *store.Draft {
	return &store.Draft{Chain: chain, Fact: audit.Fact{
		At: h.clock.Now(), Actor: itself, Action: action, Outcome: audit.Done, Target: target, Detail: detail,
	}}
}

// Bootstrapping has an API key recorded that comes from the host's own shell, such
// as the first one of a data folder, along with the change that adds it.
func Bootstrapping(ctx context.Context, tenant, id string, at time.Time) context.Context {
	return store.Audited(ctx, &store.Draft{Chain: tenant, Fact: audit.Fact{
		At: at, Actor: itself, Action: "key.bootstrap", Outcome: audit.Done, Target: audit.Target{Type: "key", ID: id},
	}})
}

// witness makes a judge that takes down on what ground it let an answer count, and
// what a person said to an approval.
func witness(judge run.Judge, draft *store.Draft, value jsontext.Value) run.Judge {
	return func(i *run.Interrupt) (run.Ground, error) {
		g, err := judge(i)
		if err != nil {
			return g, err
		}
		d := deed{detail: draft.Detail}.with("interruptId", i.ID.String()).with("kind", i.Request.Kind).
			with("eligibility", g.Eligibility).with("ref", g.Ref).with("source", g.Source)
		if g.Override {
			d = d.with("override", "true")
		}
		if i.Request.Kind == "approval" {
			d = d.with("decision", decision(value))
		}
		draft.Detail = d.detail
		return g, nil
	}
}

// decision is the word of an approval's answer, if it is one of the protocol's.
func decision(value jsontext.Value) string {
	var v struct {
		Action string `json:"action"`
	}
	if json.Unmarshal(value, &v) != nil {
		return ""
	}
	switch v.Action {
	case "accept", "reject", "edit-accept", "refine", "ask":
		return v.Action
	}
	return "other"
}

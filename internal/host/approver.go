package host

import (
	"context"
	"slices"
	"strings"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
)

// Directory says what a party belongs to, at the moment it is asked.
type Directory interface {
	Memberships(ctx context.Context, s event.Subject) (identity.Membership, error)
}

// Override names the override principals of a host: who may release a gate alone,
// if the gate allows it. Each entry is group:NAME, role:NAME or an entry of an
// approversList.
type Override []string

// member is a party with what is known of its memberships.
type member struct {
	by     event.Subject
	of     identity.Membership
	failed error // the directory could not say
}

// Approver judges for one party which interrupts it may answer (spec v2
// interrupt.md §Approver enforcement). It is asked for every answer, whatever
// the route, after the right to answer at all. Who is listed, in a group that is
// named, or the holder of a role that is named may answer; a gate that names
// nobody is open to everybody. What a party cannot be shown to belong to, it does
// not belong to: then the gate stays shut.
func Approver(by event.Subject, of identity.Membership, override Override) run.Judge {
	return member{by: by, of: of}.judge(override)
}

func (m member) judge(override Override) run.Judge {
	return func(i *run.Interrupt) (run.Ground, error) {
		if i.Request.Kind != "approval" {
			return run.Ground{}, nil
		}
		g, ok := m.ground(i.Approvers())
		if !ok {
			return run.Ground{}, m.refusal(i.Approvers())
		}
		if m.overrides(override) {
			g.Override, g.Source = true, m.of.Source
		}
		return g, nil
	}
}

// vouching judges a vote that the party brings for somebody else. The party must be able
// to answer itself, and the voter must be one whom the gate lists, if it is not open to
// everybody: what else a voter belongs to is known from nobody but him.
func (m member) vouching(voter string, judge run.Judge) run.Judge {
	if voter == "" {
		return judge
	}
	return func(i *run.Interrupt) (run.Ground, error) {
		g, err := judge(i)
		if err != nil {
			return g, err
		}
		g.Override = false
		other := member{by: event.Subject{Issuer: m.by.Issuer, SubjectID: voter}}
		if a := i.Approvers(); !a.Open() && !slices.ContainsFunc(a.Subjects, other.is) {
			return run.Ground{}, problem.New(problem.Forbidden, "the voter is not among the approvers of this gate").With("reason", "not-an-approver")
		}
		return g, nil
	}
}

// ground finds by what right the party may answer; false if by none.
func (m member) ground(a run.Approvers) (run.Ground, bool) {
	if a.Open() {
		return run.Ground{Eligibility: "open"}, true
	}
	if slices.ContainsFunc(a.Subjects, m.is) {
		return run.Ground{Eligibility: "listed"}, true
	}
	for _, kind := range []struct {
		name        string
		refs, holds []string
	}{{"group", a.Groups, m.of.Groups}, {"role", a.Roles, m.of.Roles}} {
		for _, ref := range kind.refs {
			if slices.Contains(kind.holds, ref) {
				return run.Ground{Eligibility: kind.name, Ref: ref, Source: m.of.Source}, true
			}
		}
	}
	return run.Ground{}, false
}

func (m member) refusal(a run.Approvers) error {
	if m.failed != nil && len(a.Groups)+len(a.Roles) > 0 {
		// Nobody can say that they may not, either. They may try again.
		p := problem.New(problem.ServiceUnavailable, "who belongs to the approvers of this gate cannot be looked up now")
		p.Cause = m.failed
		return p
	}
	return problem.New(problem.Forbidden, "you are not among the approvers of this gate").With("reason", "not-an-approver")
}

// is reports whether an entry means this very party. An entry is a subjectId, which
// holds neither a slash nor a space, or <issuer>/<subjectId> where the same id may
// come from more than one issuer.
func (m member) is(entry string) bool {
	if at := strings.LastIndexByte(entry, '/'); at >= 0 {
		return entry[:at] == m.by.Issuer && entry[at+1:] == m.by.SubjectID
	}
	return entry == m.by.SubjectID
}

func (m member) overrides(list Override) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if g, ok := strings.CutPrefix(entry, "group:"); ok {
			return slices.Contains(m.of.Groups, g)
		}
		if r, ok := strings.CutPrefix(entry, "role:"); ok {
			return slices.Contains(m.of.Roles, r)
		}
		return m.is(entry)
	})
}

// member finds out what a party belongs to. An embedder's directory, if there is
// one, knows better than the credential; without one, a party that came without
// its credential (by token) is looked up.
func (h *Host) member(ctx context.Context, c identity.Caller) (member, error) {
	m := member{by: c.Subject, of: c.Membership}
	dir := h.cfg.Directory
	if dir == nil && h.cfg.Keys != nil && c.Source == "" {
		dir = ownDirectory{h}
	}
	if dir == nil {
		return m, nil
	}
	of, err := dir.Memberships(ctx, c.Subject)
	if problem.Is(err, problem.CredentialRevoked) {
		return member{}, problem.New(problem.Forbidden, "the token speaks for a credential that has been revoked").With("reason", "credential-revoked")
	}
	if err != nil {
		m.of, m.failed = identity.Membership{}, err
		return m, nil
	}
	m.of = of
	return m, nil
}

// ownDirectory knows what keys and a tenant's list of members say.
type ownDirectory struct{ h *Host }

// Memberships implements Directory.
func (d ownDirectory) Memberships(ctx context.Context, s event.Subject) (identity.Membership, error) {
	of, err := d.h.cfg.Keys.Memberships(ctx, s)
	if err != nil {
		return identity.Membership{}, err
	}
	st, err := d.h.standing(ctx, s)
	if err != nil {
		return identity.Membership{}, err
	}
	return of.And(belongs(st.Member)), nil
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
)

// Resolve finds the credential that a reference names, on behalf of a run's owner.
// Its error is a *problem.Error with one of the credential codes.
type Resolve func(ctx context.Context, owner event.Owner, id ids.Run, ref node.CredentialRef) (Credential, error)

// Credential is a credential with what decides where it may go (spec v2 schemas:
// credential-provenance).
type Credential struct {
	Ref                string
	Kind               string
	Audiences          []string // hosts, or *.domain
	ExpiresAt          time.Time
	Downgrade          bool // a call elsewhere may be made without it
	AuditCorrelationID string
	Material           node.Material
}

// Decisions on an outbound call that would carry a credential, and their reasons.
const (
	allowed    = "allowed"
	denied     = "denied"
	downgraded = "downgraded"

	outOfAudience = "out-of-audience"
	expired       = "expired"
	unevaluable   = "provenance-unevaluable"
)

// judge decides on a call to a host. Where it cannot, it denies.
func (c *Credential) judge(host, refused string, now time.Time) (decision, reason string) {
	switch {
	case refused != "":
		return denied, refused
	case len(c.Audiences) == 0 || host == "":
		return denied, unevaluable
	case !c.ExpiresAt.IsZero() && !now.Before(c.ExpiresAt):
		return denied, expired
	}
	for _, a := range c.Audiences {
		if audience(a, host) {
			return allowed, "ok"
		}
	}
	if c.Downgrade {
		return downgraded, outOfAudience
	}
	return denied, outOfAudience
}

// audience reports whether a host is the one named, or below the domain of a name
// that begins with *.
func audience(a, host string) bool {
	if domain, ok := strings.CutPrefix(a, "*."); ok {
		below, ok := strings.CutSuffix(host, "."+domain)
		return ok && below != ""
	}
	return a == host
}

// credentials is node.Services.Credential of one call.
type credentials struct {
	e     *Engine
	in    *node.Input
	id    ids.Run
	owner event.Owner
	typ   *node.Type
	x     run.Execute
}

func (c *credentials) resolve(ctx context.Context, ref node.CredentialRef) (*node.Credential, error) {
	if err := effect.Replayed(ctx, "credentials"); err != nil {
		return nil, err
	}
	if c.e.cfg.Resolve == nil {
		return nil, node.Fail("credential_unavailable", "this host keeps no credentials")
	}
	if !c.declared(ref) {
		return nil, node.Fail(string(problem.CredentialForbidden), "the node's config does not name this credential")
	}
	found, err := c.e.cfg.Resolve(ctx, c.owner, c.id, ref)
	if err != nil {
		return nil, err
	}
	return node.NewCredential(found.Ref, found.Kind, func(ctx context.Context, host, refused string) (node.Material, error) {
		return c.decide(ctx, &found, host, refused)
	}), nil
}

// declared reports whether a member of the config that is made for it names ref.
func (c *credentials) declared(ref node.CredentialRef) bool {
	var config map[string]json.RawMessage
	if json.Unmarshal(c.in.Config, &config) != nil {
		return false
	}
	for _, name := range c.typ.Credentials {
		var named node.CredentialRef
		if raw, ok := config[name]; ok && json.Unmarshal(raw, &named) == nil && named == ref {
			return true
		}
	}
	return false
}

// decide judges a call and makes the decision durable before anything follows from
// it.
func (c *credentials) decide(ctx context.Context, cred *Credential, host, refused string) (node.Material, error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	d := event.Egress{Destination: host, CredentialID: cred.Ref, AuditCorrelationID: cred.AuditCorrelationID}
	d.Decision, d.Reason = cred.judge(host, refused, c.e.clock.Now())
	if d.Destination == "" {
		d.Destination = "unknown"
	}
	err := c.e.Do(ctx, c.id, run.NodeEgress{
		NodeID: c.x.NodeID, Visit: c.x.Visit, Attempt: c.x.Attempt, Inverse: keyOf(c.x).inverse, Decision: d,
	}).Err
	switch {
	case ctx.Err() != nil:
		return node.Material{}, ctx.Err()
	case err != nil:
		var p *problem.Error
		if errors.As(err, &p) {
			return node.Material{}, node.Fail(string(p.Code), "%s", p.Message)
		}
		return node.Material{}, node.Retry(string(problem.ServiceUnavailable), "what was decided on a call could not be recorded")
	}
	switch d.Decision {
	case allowed:
		return cred.Material, nil
	case downgraded:
		return node.Material{}, node.ErrDowngraded
	}
	e := node.Fail(string(problem.EgressDenied), "the call may not carry the credential")
	e.Details = map[string]any{"reason": d.Reason, "credentialId": d.CredentialID, "destination": d.Destination}
	return node.Material{}, e
}

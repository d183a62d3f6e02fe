package host

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/token"
	"github.com/go-json-experiment/json/jsontext"
)

// How long a token is good for (spec v2 interrupt.md §Tokens). An interrupt's
// own deadline ends it earlier.
const (
	tokenLife    = 30 * time.Minute
	maxTokenLife = 7 * 24 * time.Hour
)

// IssueToken is the request for an interrupt token.
type IssueToken struct {
	Intent  string // resolve if empty
	Seconds int64  // to live; 0 for the default
}

// IssuedToken is a token and what it is good for. Nothing else ever shows it.
type IssuedToken struct {
	Token       string `json:"token"`
	RunID       string `json:"runId"`
	NodeID      string `json:"nodeId"`
	InterruptID string `json:"interruptId"`
	Intent      string `json:"intent"`
	ExpiresAt   string `json:"expiresAt"`
}

// IssueToken gives the caller a token for what a node waits for, to pass on to
// somebody without a credential. The token speaks in the caller's name and opens
// nothing that the caller could not answer.
func (h *Host) IssueToken(ctx context.Context, c identity.Caller, id ids.Run, nodeID string, r IssueToken) (IssuedToken, error) {
	if err := h.admit(ctx, c, identity.ApprovalsRespond, id); err != nil {
		return IssuedToken{}, err
	}
	if r.Intent == "" {
		r.Intent = token.Resolve
	}
	if r.Intent != token.Resolve && r.Intent != token.Inspect {
		return IssuedToken{}, problem.Invalid("intent", "want resolve or inspect")
	}
	life := tokenLife
	if r.Seconds != 0 {
		if r.Seconds < 1 || r.Seconds > int64(maxTokenLife/time.Second) {
			return IssuedToken{}, problem.Invalid("expiresInSeconds", "want a whole number from 1 to %d", int64(maxTokenLife/time.Second))
		}
		life = time.Duration(r.Seconds) * time.Second
	}
	s, i, err := h.open(ctx, id, nodeID, ids.Run{})
	if err != nil {
		return IssuedToken{}, err
	}
	if r.Intent == token.Resolve {
		if s.Attended(i.NodeID) {
			return IssuedToken{}, problem.New(problem.Forbidden, "this gate is answered with a credential; a token may only show what is asked").With("reason", "credential-required")
		}
		who, err := h.member(ctx, c)
		if err != nil {
			return IssuedToken{}, err
		}
		if _, err := who.judge(nil)(i); err != nil {
			return IssuedToken{}, err
		}
	}
	now := h.clock.Now()
	end := now.Add(life)
	if x := i.ExpiresAt; !x.IsZero() && x.Before(end) {
		if end = x; !now.Before(x) {
			return IssuedToken{}, problem.New(problem.InterruptAlreadyResolved, "the interrupt's time is over").With("nodeId", nodeID)
		}
	}
	d := onRun("interrupt-token.issue", id).with("nodeId", nodeID).with("interruptId", i.ID.String()).
		with("intent", r.Intent).with("expiresAt", run.Stamp(end))
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (IssuedToken, error) {
		return h.sign(store.Unaudited(ctx), token.Sign, token.Claims{
			Run: id, NodeID: nodeID, Interrupt: i.ID, Intent: r.Intent, ExpiresAt: end, Subject: c.Subject,
		})
	})
}

// signer writes claims in the form of one major.
type signer func(kid string, secret []byte, c token.Claims) (string, error)

func (h *Host) sign(ctx context.Context, form signer, c token.Claims) (IssuedToken, error) {
	key, err := h.keys.signing(ctx)
	if err != nil {
		return IssuedToken{}, err
	}
	t, err := form(key.ID, key.Value, c)
	if err != nil {
		return IssuedToken{}, problem.Internal(err)
	}
	return IssuedToken{
		Token: t, RunID: c.Run.String(), NodeID: c.NodeID, InterruptID: c.Interrupt.String(),
		Intent: c.Intent, ExpiresAt: run.Stamp(c.ExpiresAt),
	}, nil
}

// open finds an interrupt that is open.
func (h *Host) open(ctx context.Context, id ids.Run, nodeID string, interrupt ids.Run) (*run.State, *run.Interrupt, error) {
	s, err := h.state(ctx, id)
	if err != nil {
		return nil, nil, notFound(err)
	}
	i, err := s.Open(nodeID, interrupt)
	return s, i, err
}

// Grant is what a verified token permits. Only OpenToken makes one.
type Grant struct{ claims token.Claims }

// Caller is whom the token speaks for. The token is its only right.
func (g Grant) Caller() identity.Caller { return identity.Caller{Subject: g.claims.Subject} }

// OpenToken verifies a token for an intent, and reads nothing but keys: whoever
// comes without a good one learns nothing and costs nothing. A token whose time
// is over says so, whatever has become of its interrupt.
func (h *Host) OpenToken(ctx context.Context, s, intent string) (Grant, error) {
	invalid := problem.New(problem.InterruptTokenInvalid, "the interrupt token is not valid")
	u, err := token.Parse(s)
	if err != nil {
		return Grant{}, invalid
	}
	key, err := h.keys.verifying(ctx, u.Kid)
	if err != nil {
		return Grant{}, err
	}
	c, err := u.Verify(key)
	if err != nil {
		return Grant{}, invalid
	}
	g := Grant{c}
	if err := h.inTime(g); err != nil {
		return Grant{}, err
	}
	if err := h.takesPart(ctx, c.Subject); err != nil {
		return Grant{}, err
	}
	if intent == token.Resolve && c.Intent != token.Resolve {
		return Grant{}, problem.New(problem.Forbidden, "the token lets its holder look, not answer").With("reason", "token-intent")
	}
	return g, nil
}

func (h *Host) inTime(g Grant) error {
	if h.clock.Now().Before(g.claims.ExpiresAt) {
		return nil
	}
	return problem.New(problem.InterruptExpired, "the interrupt token has expired").With("expiresAt", run.Stamp(g.claims.ExpiresAt))
}

// InspectByToken shows what a token's interrupt asks (spec v2 interrupt.md
// §Resolve surfaces).
func (h *Host) InspectByToken(ctx context.Context, g Grant) (jsontext.Value, error) {
	_, i, err := h.open(ctx, g.claims.Run, g.claims.NodeID, g.claims.Interrupt)
	if err != nil {
		return nil, err
	}
	return event.Encode(i.Request), nil
}

// ExpiresAt is the token's end.
func (g Grant) ExpiresAt() time.Time { return g.claims.ExpiresAt }

// ResolvedByToken is what an answer by token came to.
type ResolvedByToken struct{ RunID, NodeID, Status string }

// ResolveByToken answers a token's interrupt in the name of whom the token was
// given to. That one is judged again, as on any other route.
func (h *Host) ResolveByToken(ctx context.Context, g Grant, value jsontext.Value) (ResolvedByToken, error) {
	c := g.claims
	if c.Intent != token.Resolve {
		return ResolvedByToken{}, problem.New(problem.Forbidden, "the token lets its holder look, not answer").With("reason", "token-intent")
	}
	if err := h.inTime(g); err != nil { // the body may have been long in coming
		return ResolvedByToken{}, err
	}
	status, err := h.answer(ctx, g.Caller(), c.Run, run.Resolve{
		NodeID: c.NodeID, InterruptID: c.Interrupt, Value: value, Via: "token",
	})
	return ResolvedByToken{c.Run.String(), c.NodeID, status}, err
}

// RotateTokenKey makes a new key for interrupt tokens. Tokens given out before
// stay good. It returns the new key's id.
func (h *Host) RotateTokenKey(ctx context.Context) (kid string, err error) {
	s, err := h.keys.rotate(ctx)
	return s.ID, err
}

// RotateTokenKeyAs is RotateTokenKey at a caller's request. The keys belong to the
// host: how many there are concerns every tenant.
func (h *Host) RotateTokenKeyAs(ctx context.Context, c identity.Caller) (kid string, err error) {
	if err := h.allow(c, identity.HostAdmin); err != nil {
		return "", err
	}
	d := deed{chain: audit.HostChain, action: "token-key.rotate", target: audit.Target{Type: "token-key"}}
	return audited(ctx, h, c, d, func(ctx context.Context, _ *store.Draft) (string, error) { return h.RotateTokenKey(ctx) })
}

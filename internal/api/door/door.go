package door

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/gate"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/redact"
)

// Config is what a door is made of.
type Config struct {
	Host     *host.Host
	Auth     identity.Authenticator
	Resource *identity.Resource // nil for a host without lanes of tokens
	Gate     *gate.Gate         // one for all the wires of a host
	Redact   *redact.Redactor   // may be nil

	// Wording writes the refusals that are recorded under a key; api.Plain if nil.
	Wording api.Wording
	// BareIDs takes run ids without a tenant, for the caller's: those of a 1.x version.
	BareIDs bool
	// Key is the grammar of an Idempotency-Key; this major's if nil.
	Key *KeyForm
	// Recheck is how often a stream's credential is looked at again; DefaultRecheck if 0.
	Recheck time.Duration
}

// DefaultRecheck is how long a stream may outlive the credential that opened it.
const DefaultRecheck = 30 * time.Second

// Door stands between a server and the operations of one wire.
type Door struct {
	Config
}

// New makes a door.
func New(c Config) *Door {
	if c.Wording == nil {
		c.Wording = api.Plain
	}
	if c.Key == nil {
		c.Key = &Key
	}
	if c.Recheck <= 0 {
		c.Recheck = DefaultRecheck
	}
	return &Door{c}
}

// Handler is an operation of an authenticated caller.
type Handler func(w http.ResponseWriter, r *api.Request, c identity.Caller) error

// As authenticates before anything about the request is looked at. Behind it,
// whatever changes something honours an Idempotency-Key.
func (d *Door) As(h Handler) func(http.ResponseWriter, *api.Request) error {
	return func(w http.ResponseWriter, r *api.Request) error {
		c, ok := identity.FromContext(r.Context())
		if ok {
			d.home(r, c)
		} else {
			var leave func()
			var err error
			if c, leave, err = d.admit(r); err != nil {
				return err
			}
			defer leave()
		}
		r.Still, r.Recheck = d.still(r, c, ok), d.Recheck
		c, err := d.Host.Enter(r.Context(), c)
		if err != nil {
			return err
		}
		if err := r.CheckQuery(); err != nil {
			return err
		}
		return d.refusal(c.Tenant(), d.serve(w, r, c, h))
	}
}

// still looks again at what let a caller in. A token says itself how long it lasts, and
// its proof holds for one request; a key may be revoked at any time, a tenant suspended,
// a membership taken away.
func (d *Door) still(r *api.Request, c identity.Caller, vouched bool) func(context.Context) (identity.Caller, error) {
	return func(ctx context.Context) (identity.Caller, error) {
		again := c
		if !vouched && c.Expires.IsZero() {
			var err error
			if again, err = d.Auth.Authenticate(r.WithContext(ctx)); err != nil {
				return identity.Caller{}, err
			}
		}
		return d.Host.Enter(ctx, again)
	}
}

// admit finds out who sends a request and lets him in, within his bounds.
func (d *Door) admit(r *api.Request) (identity.Caller, func(), error) {
	shown := strings.Join(r.Header.Values("Authorization"), ",")
	if err := d.Gate.Knock(r.Request, shown); err != nil {
		return identity.Caller{}, nil, err
	}
	c, err := d.Auth.Authenticate(r.Request)
	if err := d.Gate.Known(r.Request, shown, err); err != nil {
		if shown != "" {
			d.Host.Unauthenticated(err)
		}
		return identity.Caller{}, nil, err
	}
	d.home(r, c)
	leave, err := d.Gate.Enter(r, c)
	return c, leave, err
}

// home says in which tenant a bare id stands, on a wire that takes one.
func (d *Door) home(r *api.Request, c identity.Caller) {
	if d.BareIDs {
		r.Home = c.Tenant()
	}
}

// serve lets an operation answer an authenticated caller.
func (d *Door) serve(w http.ResponseWriter, r *api.Request, c identity.Caller, h Handler) error {
	if !r.Route.Stream && !r.Route.ShowsSecret {
		s := &shown{ResponseWriter: w, r: d.Redact, tenant: c.Tenant()}
		defer s.flush()
		w = s
	}
	if r.Route.Mutates() {
		return d.Once(w, r, c, h)
	}
	return h(w, r, c)
}

// Body reads and decodes a request body; an absent one is allowed if optional.
func (d *Door) Body(w http.ResponseWriter, r *api.Request, v any, optional bool) error {
	b, err := api.ReadBody(w, r.Request, d.Host.Limits().MaxBodyBytes)
	if err != nil {
		return err
	}
	if b == nil && optional {
		return nil
	}
	return api.Decode(b, v)
}

// ByToken opens the token in the path before anything else about the request is
// looked at: it is the credential. Where it came from must not leave with a link.
func (d *Door) ByToken(intent string, h func(http.ResponseWriter, *api.Request, host.Grant) error) func(http.ResponseWriter, *api.Request) error {
	return func(w http.ResponseWriter, r *api.Request) error {
		w.Header().Set("Referrer-Policy", "no-referrer")
		credential := r.Params["token"]
		if err := d.Gate.Knock(r.Request, credential); err != nil {
			return err
		}
		g, err := d.Host.OpenToken(r.Context(), credential, intent)
		if err := d.Gate.Known(r.Request, credential, err); err != nil {
			return err
		}
		leave, err := d.Gate.Enter(r, g.Caller())
		if err != nil {
			return err
		}
		defer leave()
		if err := r.CheckQuery(); err != nil {
			return err
		}
		// Who holds a token is shown no more than who holds a key.
		tenant := g.Caller().Tenant()
		s := &shown{ResponseWriter: w, r: d.Redact, tenant: tenant}
		defer s.flush()
		return d.refusal(tenant, h(s, r, g))
	}
}

// refusal takes secrets out of what a caller is told of an error. The cause is for
// the log, which has a redactor of its own.
func (d *Door) refusal(tenant string, err error) error {
	var p *problem.Error
	if d.Redact == nil || !errors.As(err, &p) {
		return err
	}
	clean := *p
	clean.Message, clean.Details = d.Redact.Refusal(tenant, p.Message, p.Details)
	return &clean
}

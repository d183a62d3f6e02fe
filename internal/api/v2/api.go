package v2

import (
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/gate"
	"github.com/fermata-run/fermata/internal/api/openapi"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/redact"
)

// API serves the v2 wire over a host.
type API struct {
	host *host.Host
	auth identity.Authenticator
	log  *slog.Logger

	gate     *gate.Gate
	redact   *redact.Redactor
	resource *identity.Resource

	server  *api.Server
	openapi func() ([]byte, error)
}

// Config is what an API is made of.
type Config struct {
	Host       *host.Host
	Auth       identity.Authenticator
	Resource   *identity.Resource // nil for a host without lanes of tokens
	Log        *slog.Logger
	Redact     *redact.Redactor // may be nil
	Version    string           // of the implementation
	MaxCalls   int
	MaxStreams int
	MaxBodies  int           // bytes of large request bodies held at the same time
	Timeout    time.Duration // of a call
	Gate       gate.Config
}

// New makes the API. It is an http.Handler.
func New(c Config) *API {
	a := &API{host: c.Host, auth: c.Auth, resource: c.Resource, log: c.Log, redact: c.Redact, gate: gate.New(c.Gate)}
	a.server = api.NewServer(a.routes(), api.Options{
		MaxCalls: c.MaxCalls, MaxStreams: c.MaxStreams, Log: c.Log, Version: negotiate, Challenge: a.challenge,
		MaxBodies: c.MaxBodies, Timeout: c.Timeout,
	})
	a.openapi = sync.OnceValues(func() ([]byte, error) {
		return openapi.Build(openapi.Info{Title: "fermata", Version: c.Version}, a.server.Table().Routes)
	})
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.server.ServeHTTP(w, r) }

// Methods are the methods of a path, as it is written in a request; none if it is
// no operation's.
func (a *API) Methods(escapedPath string) []string {
	// No operation has this method, so that every one of the path is listed.
	_, _, methods := a.server.Table().Match("-", escapedPath)
	return methods
}

// Stamp names the version of the protocol in an answer that is given before the
// request gets here.
func (a *API) Stamp(h http.Header, r *http.Request) {
	route, _, _ := a.server.Table().Match(r.Method, r.URL.EscapedPath())
	if route == nil || route.Protocol {
		h.Set(versionHeader, host.ProtocolVersion)
	}
}

// Routes is the route table, for tests that walk it.
func (a *API) Routes() []api.Route { return a.server.Table().Routes }

const versionHeader = "OpenWOP-Version"

var versionGrammar = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))?$`)

// negotiate selects the major of a request (spec v2 versioning.md §1.3): only
// the major selects, and every protocol answer names the contract used.
func negotiate(w http.ResponseWriter, r *http.Request, route *api.Route) error {
	if route != nil && !route.Protocol {
		return nil
	}
	w.Header().Set(versionHeader, host.ProtocolVersion)
	v := r.Header.Get(versionHeader)
	if v == "" {
		return nil
	}
	m := versionGrammar.FindStringSubmatch(v)
	if m == nil || m[1] != "2" {
		return problem.New(problem.ProtocolVersionUnsupported, "this host does not serve the protocol version %q", v).
			With("protocolVersions", []string{host.ProtocolVersion})
	}
	return nil
}

// handler is an operation of an authenticated caller.
type handler func(w http.ResponseWriter, r *api.Request, c identity.Caller) error

// as authenticates before anything about the request is looked at. Behind it,
// whatever changes something honours an Idempotency-Key.
func (a *API) as(h handler) func(http.ResponseWriter, *api.Request) error {
	return func(w http.ResponseWriter, r *api.Request) error {
		c, ok := identity.FromContext(r.Context())
		if !ok {
			shown := strings.Join(r.Header.Values("Authorization"), ",")
			if err := a.gate.Knock(r.Request, shown); err != nil {
				return err
			}
			var err error
			c, err = a.auth.Authenticate(r.Request)
			if err := a.gate.Known(r.Request, shown, err); err != nil {
				if shown != "" {
					a.host.Unauthenticated(err)
				}
				return err
			}
			leave, err := a.gate.Enter(r, c)
			if err != nil {
				return err
			}
			defer leave()
		}
		if err := r.CheckQuery(); err != nil {
			return err
		}
		return a.refusal(c.Tenant(), a.serve(w, r, c, h))
	}
}

// serve lets an operation answer an authenticated caller.
func (a *API) serve(w http.ResponseWriter, r *api.Request, c identity.Caller, h handler) error {
	if !r.Route.Stream && !r.Route.ShowsSecret {
		s := &shown{ResponseWriter: w, r: a.redact, tenant: c.Tenant()}
		defer s.flush()
		w = s
	}
	if r.Route.Mutates() {
		return a.once(w, r, c, h)
	}
	return h(w, r, c)
}

// body reads and decodes a request body; an absent one is allowed if optional.
func (a *API) body(w http.ResponseWriter, r *api.Request, v any, optional bool) error {
	b, err := api.ReadBody(w, r.Request, a.host.Limits().MaxBodyBytes)
	if err != nil {
		return err
	}
	if b == nil && optional {
		return nil
	}
	return api.Decode(b, v)
}

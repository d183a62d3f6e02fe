package v2

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/door"
	"github.com/fermata-run/fermata/internal/api/openapi"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// API serves the v2 wire over a host.
type API struct {
	host     *host.Host
	door     *door.Door
	log      *slog.Logger
	resource *identity.Resource
	versions []string

	server  *api.Server
	openapi func() ([]byte, error)
}

// Config is what an API is made of.
type Config struct {
	Door     *door.Door
	Log      *slog.Logger
	Version  string // of the implementation
	Capacity *api.Capacity
	Timeout  time.Duration // of a call
}

// New makes the API. It is an http.Handler.
func New(c Config) *API {
	a := &API{host: c.Door.Host, door: c.Door, resource: c.Door.Resource, log: c.Log, versions: c.Door.Host.ProtocolVersions()}
	a.server = api.NewServer(a.routes(), api.Options{
		Capacity: c.Capacity, Log: c.Log, Version: a.negotiate, Challenge: c.Door.Challenge, Timeout: c.Timeout,
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

const versionHeader = api.VersionHeader

// negotiate selects the major of a request (spec v2 versioning.md §1.3): only
// the major selects, and every protocol answer names the contract used.
func (a *API) negotiate(w http.ResponseWriter, r *http.Request, route *api.Route) error {
	if route != nil && !route.Protocol {
		return nil
	}
	w.Header().Set(versionHeader, host.ProtocolVersion)
	v := api.Asked(r.Header)
	if v != "" && api.Major(v) != "2" {
		return problem.New(problem.ProtocolVersionUnsupported, "this host does not serve the protocol version %q", v).
			With("protocolVersions", a.versions)
	}
	return nil
}

// handler is an operation of an authenticated caller.
type handler = door.Handler

// as lets a caller in who is known (door.As).
func (a *API) as(h handler) func(http.ResponseWriter, *api.Request) error { return a.door.As(h) }

// body reads and decodes a request body; an absent one is allowed if optional.
func (a *API) body(w http.ResponseWriter, r *api.Request, v any, optional bool) error {
	return a.door.Body(w, r, v, optional)
}

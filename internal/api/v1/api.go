package v1

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/door"
	"github.com/fermata-run/fermata/internal/api/openapi"
	"github.com/fermata-run/fermata/internal/api/overlap"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/webhook"
)

// Version is the version of the protocol that this wire speaks.
const Version = "1.0"

// Prefix is the path space of this wire.
const Prefix = "/v1"

func init() {
	overlap.Register(overlap.Older{
		Version: Version, Prefix: Prefix, New: func(c overlap.Config) overlap.Wire { return New(c) },
		Admits: []string{"X-Dedup", "X-Force-Engine-Version"}, Exposes: []string{"Capabilities-Etag"},
		Hooks: func(version, base string) webhook.Form { return hooks{version, base} },
	})
}

// API serves the v1 wire over a host.
type API struct {
	host    *host.Host
	door    *door.Door
	log     *slog.Logger
	version string // of the implementation
	base    string // URL under which the world calls the API; empty if nobody has said

	server  *api.Server
	openapi func() ([]byte, error)
}

// keyForm is what v1 demands of an Idempotency-Key: a length.
var keyForm = door.NewKeyForm(`^[!-~]([ -~]{0,253}[!-~])?$`, "want one Idempotency-Key of 1 to 255 visible ASCII characters")

// New makes the API. It is an http.Handler for the paths under Prefix and for
// discovery.
func New(c overlap.Config) *API {
	d := c.Door
	d.Wording, d.BareIDs, d.Key = words, true, &keyForm
	a := &API{host: d.Host, door: door.New(d), log: c.Log, version: c.Version, base: c.Base}
	a.server = api.NewServer(a.routes(), api.Options{
		Capacity: c.Capacity, Log: c.Log, Version: negotiate, Challenge: a.door.Challenge, Timeout: c.Timeout, Wording: words,
	})
	a.openapi = sync.OnceValues(func() ([]byte, error) {
		return openapi.Build(openapi.Info{Title: "fermata, v1", Version: c.Version}, a.Routes())
	})
	return a
}

// registries are the paths of pack registries. A host that is none leaves them out, and
// v1's clients see it by an answer that is not in the protocol's form (node-packs.md
// §Registry HTTP API): any that is would say that there is a registry.
var registries = []string{Prefix + "/packs/", Prefix + "/packs-test/"}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, p := range registries {
		if strings.HasPrefix(r.URL.Path, p) {
			a.Stamp(w.Header(), r)
			http.NotFound(w, r)
			return
		}
	}
	a.server.ServeHTTP(w, r)
}

// Methods are the methods of a path, as it is written in a request; none if it is
// no operation's.
func (a *API) Methods(escapedPath string) []string {
	_, _, methods := a.server.Table().Match("-", escapedPath)
	return methods
}

// Stamp names the version of the protocol in an answer that is given before the
// request gets here.
func (a *API) Stamp(h http.Header, _ *http.Request) { h.Set(api.VersionHeader, Version) }

// Routes is the route table, for tests that walk it.
func (a *API) Routes() []api.Route { return a.server.Table().Routes }

// negotiate stamps every answer, and refuses what names another major: on these
// paths nothing is selected (spec v2 versioning.md §1.3).
func negotiate(w http.ResponseWriter, r *http.Request, _ *api.Route) error {
	w.Header().Set(api.VersionHeader, Version)
	if v := api.Asked(r.Header); v != "" && api.Major(v) != api.Major(Version) {
		return problem.New(problem.ProtocolVersionMismatch, "the paths under %s are of version 1, not of %q", Prefix, v).
			With("protocolVersion", Version)
	}
	return nil
}

// as lets a caller in who is known (door.As).
func (a *API) as(h door.Handler) func(http.ResponseWriter, *api.Request) error { return a.door.As(h) }

// run reads the run a path names. An id of v1 has no grammar: one that is none of
// ours, or of another tenant, is an unknown run.
func (a *API) run(r *api.Request, c identity.Caller) (ids.Run, error) {
	return runIn(r.Params["runId"], c)
}

func runIn(raw string, c identity.Caller) (ids.Run, error) {
	id, err := ids.ReadRun(raw, c.Tenant())
	if err != nil || id.Tenant != c.Tenant() {
		return ids.Run{}, problem.New(problem.NotFound, "no such run")
	}
	return id, nil
}

// bare is an id as v1 shows it: without its tenant, wherever it stands.
func bare(id string) string {
	if r, err := ids.ParseRun(id); err == nil {
		return r.Opaque
	}
	return id
}

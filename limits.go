package fermata

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/edge"
	"github.com/fermata-run/fermata/internal/api/gate"
	"github.com/fermata-run/fermata/internal/api/overlap"
	"github.com/fermata-run/fermata/internal/api/seams"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/limit"
)

// Limits bound what one run, one tenant and one host may use. Zero means the
// default. A rate is text such as 100/s, or 100/s:200 for bursts of up to 200, or none.
type Limits struct {
	MaxBodyBytes       int   // of a request body; default 5 MiB, at most 8 MiB
	MaxNodeExecutions  int   // of one run; default 10,000
	MaxRunDurationMs   int64 // of one run; default one year
	MaxLoopIterations  int   // of one loop; default 1,000
	MaxConcurrentNodes int   // calls of impure nodes at the same time; default 256
	MaxCalls           int   // requests being answered; default 4,096
	MaxStreams         int   // open event streams and waiting polls; default 20,000
	MaxBodyMemory      int   // bytes of large request bodies held at the same time; default 128 MiB

	// Of one tenant: three quarters of the host's, so that one alone never takes all.
	TenantMaxCalls, TenantMaxStreams, TenantMaxConcurrentNodes int

	TenantMaxActiveRuns int // runs under way that callers of one tenant have created; default any number
	RunMaxStreams       int // streams and waiting polls of one run; default as many as its tenant may have

	TenantRate   string // requests of one tenant; default none
	KeyRate      string // requests of one credential's holder; default none
	AuthFailures string // credentials that are none, from one address; default 300/m

	RequestTimeout time.Duration // of a call, from its headers to its answer; default 2 minutes
}

// Defaults of Limits.
const (
	defaultCalls    = 4096
	defaultStreams  = 20_000
	defaultFailures = "300/m"

	// What is left for writing an answer once the time to make one is over.
	writing = time.Minute
)

// bounds are the limits in force.
func (c *Config) bounds() (host.Limits, error) {
	b, l := host.DefaultLimits(), c.Limits
	b.MaxBodyBytes = or(l.MaxBodyBytes, b.MaxBodyBytes)
	b.TenantActiveRuns = l.TenantMaxActiveRuns
	e := host.EdgeLimits{
		MaxCalls: or(l.MaxCalls, defaultCalls), MaxStreams: or(l.MaxStreams, defaultStreams), RequestTimeout: l.RequestTimeout,
	}
	if e.RequestTimeout <= 0 {
		e.RequestTimeout = api.DefaultTimeout
	}
	e.TenantMaxCalls = min(or(l.TenantMaxCalls, limit.Portion(e.MaxCalls)), e.MaxCalls)
	e.TenantMaxStreams = min(or(l.TenantMaxStreams, limit.Portion(e.MaxStreams)), e.MaxStreams)
	e.RunMaxStreams = min(or(l.RunMaxStreams, e.TenantMaxStreams), e.TenantMaxStreams)
	if l.MaxBodyMemory > 0 && l.MaxBodyMemory < 2*b.MaxBodyBytes {
		return b, fmt.Errorf("fermata: Limits.MaxBodyMemory has no room for two bodies of %d bytes", b.MaxBodyBytes)
	}
	for _, r := range []struct {
		name, set, otherwise string
		into                 *limit.Rate
	}{
		{"TenantRate", l.TenantRate, "none", &e.TenantRate}, {"KeyRate", l.KeyRate, "none", &e.KeyRate},
		{"AuthFailures", l.AuthFailures, defaultFailures, &e.AuthFailures},
	} {
		if r.set == "" {
			r.set = r.otherwise
		}
		var err error
		if *r.into, err = limit.ParseRate(r.set); err != nil {
			return b, fmt.Errorf("fermata: Limits.%s: %q %w", r.name, r.set, err)
		}
	}
	for _, o := range c.CORSOrigins {
		if err := edge.CheckOrigin(o); err != nil {
			return b, fmt.Errorf("fermata: CORSOrigins: %q %w", o, err)
		}
	}
	for _, n := range c.AllowedHosts {
		if err := edge.CheckHost(n); err != nil {
			return b, fmt.Errorf("fermata: AllowedHosts: %q %w", n, err)
		}
	}
	b.Edge = e
	return b, nil
}

// gate is what lets requests in.
func (h *Host) gate() gate.Config {
	e := h.bounds.Edge
	return gate.Config{
		TenantRate: e.TenantRate, KeyRate: e.KeyRate, Failures: e.AuthFailures,
		TenantCalls: e.TenantMaxCalls, TenantStreams: e.TenantMaxStreams, RunStreams: e.RunMaxStreams,
	}
}

// Handler is the HTTP surface: the protocol's operations and the host's own.
func (h *Host) Handler() http.Handler {
	var older overlap.Older
	if h.cfg.V1 {
		older, _ = overlap.Registered()
	}
	return edge.New(edge.Config{
		Admit: older.Admits, Expose: older.Exposes,
		Origins: h.cfg.CORSOrigins, Hosts: h.cfg.AllowedHosts, Methods: h.api.Methods, Answer: h.bounds.Edge.RequestTimeout + writing, Stamp: h.api.Stamp,
	}, h.surface())
}

func (h *Host) surface() http.Handler {
	if h.seams == nil {
		return h.api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, seams.Prefix) {
			h.seams.ServeHTTP(w, r)
			return
		}
		h.api.ServeHTTP(w, r)
	})
}

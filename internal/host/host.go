package host

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/limit"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/relax"
	"github.com/fermata-run/fermata/internal/store"
)

// Config is what a host is made of.
type Config struct {
	Store   store.Store
	Engine  *engine.Engine
	Catalog flow.Catalog
	Clock   clock.Clock
	Log     *slog.Logger
	Version string // of the implementation
	Seams   *effect.Registry
	Limits  Limits

	// Keys makes API keys, and looks up what their holders belong to.
	Keys KeyRing
	// Directory, if set, is asked instead, for every answer.
	Directory Directory
	// Override are the host's override principals.
	Override Override
	// Lanes are the lanes callers come in by, as discovery shows them.
	Lanes []identity.Facet

	// SigningKeys are published in discovery.
	SigningKeys []SigningKey
	// Older is the version of an older major that is served beside this one, such as
	// 1.0; empty if none is.
	Older string

	// Build tells which program runs; nil if nobody knows.
	Build func() (Build, error)

	// ConformanceSeams mounts the seams of a conformance suite (spec v2
	// conformance.md §The seams profile).
	ConformanceSeams bool

	// Relaxations are the protections that the operator has loosened.
	Relaxations []relax.Relaxation

	Webhooks    Webhooks
	Credentials Credentials
	// Redact knows the secrets of this process.
	Redact *redact.Redactor

	// Retention says how long runs that are over are kept; for ever, if it is zero.
	Retention Retention

	Audit Audit
}

// Limits bound what callers may ask for.
type Limits struct {
	MaxBodyBytes int // of a request body
	MaxPageSize  int // of a list
	MaxBulk      int // run ids in one bulk cancel

	// KeyRetention is how long the answer to a request with an Idempotency-Key
	// is kept: 24 hours or more. MaxInFlightWait is how long such a request waits
	// for an earlier one of the same key.
	KeyRetention    time.Duration
	MaxInFlightWait time.Duration

	// TenantActiveRuns is how many runs of one tenant may be under way that no run
	// has started; 0 for any number.
	TenantActiveRuns int

	// Edge are bounds that are kept before a request comes here. The host only says
	// in discovery what they are.
	Edge EdgeLimits
}

// EdgeLimits are bounds of the wire. Zero means none.
type EdgeLimits struct {
	MaxCalls, MaxStreams             int // of the host, at the same time
	TenantMaxCalls, TenantMaxStreams int // of one tenant
	RunMaxStreams                    int
	TenantRate, KeyRate              limit.Rate // of requests
	AuthFailures                     limit.Rate // of credentials that are none, from one address
	RequestTimeout                   time.Duration
}

// DefaultLimits are the bounds of a host whose operator set none. The body
// bound leaves headroom for the envelope around a payload of 4 MB.
func DefaultLimits() Limits {
	return Limits{
		MaxBodyBytes: 5 << 20, MaxPageSize: 200, MaxBulk: 100,
		KeyRetention: defaultRetention, MaxInFlightWait: defaultWait,
	}
}

// Host answers the use cases. It is safe for concurrent use.
type Host struct {
	cfg     Config
	store   store.Store
	engine  *engine.Engine
	clock   clock.Clock
	cache   *snapshots
	keys    *tokenKeys
	id      *hostID
	flights flights

	verifying tenantRate
	settleNow chan struct{} // a tenant's state has changed
	tickNow   chan struct{} // schedules have been registered
	active    activeRuns
	leaving   atomic.Bool // it is about to stop
	denials   denials
	auditKeys auditKeys
}

// New makes a host.
func New(cfg Config) *Host {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	lim := &cfg.Limits
	if lim.KeyRetention == 0 {
		lim.KeyRetention = defaultRetention
	}
	lim.KeyRetention = max(lim.KeyRetention, minRetention)
	if lim.MaxInFlightWait == 0 {
		lim.MaxInFlightWait = defaultWait
	}
	if cfg.Retention.Tombstones == 0 {
		cfg.Retention.Tombstones = defaultTombstones
	}
	cfg.Audit.defaults()
	return &Host{
		auditKeys: auditKeys{store: cfg.Store.Secrets()},
		cfg:       cfg, store: cfg.Store, engine: cfg.Engine, clock: cfg.Clock, cache: newSnapshots(8 << 20),
		id:   &hostID{store: cfg.Store.Secrets()},
		keys: &tokenKeys{store: cfg.Store.Secrets(), now: cfg.Clock.Now}, settleNow: make(chan struct{}, 1), tickNow: make(chan struct{}, 1),
		active: activeRuns{most: cfg.Limits.TenantActiveRuns, count: cfg.Store.Runs().CountActive},
	}
}

// Limits are the bounds in force.
func (h *Host) Limits() Limits { return h.cfg.Limits }

// Relaxations are the protections that the operator has loosened: what a
// certificate has to record (spec v2 security-defaults.md §Relaxations). They are
// never a member of discovery.
func (h *Host) Relaxations() []relax.Relaxation { return h.cfg.Relaxations }

// Now is the host's time, which replicas agree on.
func (h *Host) Now() time.Time { return h.clock.Now() }

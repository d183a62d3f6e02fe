package gate

import (
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/limit"
	"github.com/fermata-run/fermata/internal/problem"
)

// Config are a gate's bounds. Zero is no bound.
type Config struct {
	TenantRate limit.Rate // requests of one tenant
	KeyRate    limit.Rate // requests of one credential's holder
	Failures   limit.Rate // credentials that are none, from one address

	TenantCalls   int // requests of one tenant being answered
	TenantStreams int // open streams and waiting polls of one tenant
	RunStreams    int // those of one run

	Now func() time.Time // time.Now if nil
}

// party is whoever a credential stands for.
type party struct{ tenant, issuer, subject string }

type run struct {
	tenant string // of the caller: a stranger's requests take nothing from a run's owner
	id     ids.Run
}

// Gate lets requests in. It is safe for concurrent use.
type Gate struct {
	now      func() time.Time
	tenants  *limit.Buckets[string]
	parties  *limit.Buckets[party]
	failures *limit.Buckets[string]
	good     good
	guarded  bool
	bounds   Config

	calls   *limit.Shares[string]
	streams *limit.Shares[string]
	runs    *limit.Shares[run]
}

// How many are remembered at once; more share a bucket.
const (
	maxTenants   = 16_384
	maxParties   = 65_536
	maxAddresses = 16_384
)

// New makes a gate.
func New(c Config) *Gate {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Gate{
		now: c.Now, bounds: c, guarded: !c.Failures.None(), good: newGood(),
		tenants: limit.NewBuckets[string](c.TenantRate, maxTenants), parties: limit.NewBuckets[party](c.KeyRate, maxParties),
		failures: limit.NewBuckets[string](c.Failures, maxAddresses),
		calls:    limit.NewShares[string](0, int64(c.TenantCalls)), streams: limit.NewShares[string](0, int64(c.TenantStreams)),
		runs: limit.NewShares[run](0, int64(c.RunStreams)),
	}
}

// Enter lets a caller's request in, or says that it is over a bound of his. Leave
// must be called when it is over.
func (g *Gate) Enter(r *api.Request, c identity.Caller) (leave func(), err error) {
	now := g.now()
	s := c.Subject
	if wait := g.parties.Take(party{s.Tenant, s.Issuer, s.SubjectID}, now); wait > 0 {
		return nil, over("key-rate", g.bounds.KeyRate.String(), wait)
	}
	if wait := g.tenants.Take(s.Tenant, now); wait > 0 {
		return nil, over("tenant-rate", g.bounds.TenantRate.String(), wait)
	}
	api.BodyOf(r.Request, s.Tenant)
	if r.Route.Stream {
		return g.stream(r, s.Tenant)
	}
	if !g.calls.Take(s.Tenant, 1) {
		return nil, over("tenant-max-calls", g.bounds.TenantCalls, time.Second)
	}
	return func() { g.calls.Give(s.Tenant, 1) }, nil
}

func (g *Gate) stream(r *api.Request, tenant string) (func(), error) {
	if !g.streams.Take(tenant, 1) {
		return nil, over("tenant-max-streams", g.bounds.TenantStreams, time.Second)
	}
	id, err := r.RunID("runId")
	if err != nil { // the operation says so
		return func() { g.streams.Give(tenant, 1) }, nil //nolint:nilerr // see above
	}
	at := run{tenant, id}
	if !g.runs.Take(at, 1) {
		g.streams.Give(tenant, 1)
		return nil, over("run-max-streams", g.bounds.RunStreams, time.Second)
	}
	return func() {
		g.runs.Give(at, 1)
		g.streams.Give(tenant, 1)
	}, nil
}

// over is the refusal of a request that is over a bound, which it names by its
// setting. When to come again is in Retry-After alone (spec v2 errors.md §Retry timing).
func over(setting string, bound any, wait time.Duration) error {
	e := problem.New(problem.RateLimited, "over the bound %s", setting).With("limit", setting).With("bound", bound)
	e.RetryAfter = wait
	return e
}

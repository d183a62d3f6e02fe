package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/limit"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/node"
)

// Config is what an engine works with.
type Config struct {
	Store store.Store
	// Replicas is set where several instances share the store; nil: it belongs to
	// this one.
	Replicas store.Replicas
	Catalog  flow.Catalog
	Clock    clock.Clock
	Log      *slog.Logger
	Limits   run.Limits

	// Workers bounds the calls of impure nodes made at the same time, and
	// TenantWorkers those of one tenant; default three quarters.
	Workers, TenantWorkers int

	// Seams lists the ways out that impure calls may take; nil: none.
	Seams *effect.Registry

	// EffectRetention is how long the ledger remembers an effect after the last word
	// of it; default 30 days, at least 14.
	EffectRetention time.Duration

	// Resolve finds credentials for calls; nil: there are none.
	Resolve Resolve
	// Redact, if set, knows the secrets that must not get into a log.
	Redact *redact.Redactor
	// Quick, if set, says of which pure node types the host knows that their calls
	// return. The calls of all others are given up when they do not.
	Quick func(t *node.Type) bool

	// MaskSecret is the key of masking by hash (run.State.MaskWith).
	MaskSecret []byte

	// CheckInterrupt, if set, holds the payload of an interrupt a node asks for
	// against its schema.
	CheckInterrupt func(payload []byte) error

	// Outbox, if set, says what leaves the host because of a step.
	Outbox Outbox

	// ReconcileEvery is how often the engine looks for work it was not told of:
	// runs of lost owners, due timers, news of children. Default one second.
	ReconcileEvery time.Duration
	// LeaseTTL is how long this instance stays alive between heartbeats.
	LeaseTTL time.Duration
}

// Outbox says what leaves the host because of a step of a run: it is queued in
// the step's own transaction.
type Outbox interface {
	// Fill adds to a step what goes out because of its events. s is the run after
	// it. It is called once for each step, also for those that go along with it.
	Fill(s *run.State, a *store.Append)
	// Sent hears that a step, with what goes along with it, is durable.
	Sent(a *store.Append)
}

// Engine runs workflows. Make one with New, then Start it.
type Engine struct {
	cfg      Config
	store    store.Store
	clock    clock.Clock
	log      *slog.Logger
	minter   ids.Minter
	defs     *Definitions
	feed     *Feed
	ended    ended
	warm     *warm
	programs programs

	instance atomic.Pointer[string] // fresh for every process start
	actors   registry
	slots    *limit.Fair[string] // by tenant
	backlog  *backlog
	claiming sync.Mutex

	batch int // how many runs one look takes on

	performing performing
	timers     *timers

	others     store.Replicas       // nil: the store belongs to this process
	joining    sync.Mutex           // held to register again
	life       atomic.Pointer[life] // ends when executing calls must end
	draining   atomic.Bool
	calls      tally // impure calls in flight
	strays     strays
	loops      tally
	stop       chan struct{}
	stopOnce   sync.Once
	looking    context.Context // of the loops; ends when the engine stops
	look       context.CancelFunc
	quickLimit time.Duration
	grace      time.Duration // for steps that are being decided when the engine stops
}

// New makes an engine. It does nothing before Start.
func New(cfg Config) *Engine {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Workers <= 0 {
		cfg.Workers = 256
	}
	if cfg.TenantWorkers <= 0 {
		cfg.TenantWorkers = limit.Portion(cfg.Workers)
	}
	if cfg.ReconcileEvery <= 0 {
		cfg.ReconcileEvery = time.Second
	}
	if cfg.EffectRetention <= 0 {
		cfg.EffectRetention = effectRetention
	}
	cfg.EffectRetention = max(cfg.EffectRetention, minEffectRetention)
	if cfg.LeaseTTL <= 0 {
		cfg.LeaseTTL = 15 * time.Second
	}
	e := &Engine{
		cfg: cfg, store: cfg.Store, clock: cfg.Clock, log: cfg.Log,
		defs: NewDefinitions(cfg.Store.Workflows(), cfg.Catalog),
		feed: newFeed(), slots: limit.NewFair[string](cfg.Workers, cfg.TenantWorkers), stop: make(chan struct{}),
	}
	e.actors.init()
	e.warm = newWarm()
	e.timers = newTimers(cfg.Clock)
	e.life.Store(newLife())
	e.others = cfg.Replicas
	e.batch, e.backlog = claimBatch, newBacklog(0)
	if e.others != nil { // who takes on more than it can begin keeps it from the others
		e.batch = min(max(cfg.Workers, leastBatch), claimBatch)
		e.backlog = newBacklog(e.batch)
	}
	e.looking, e.look = context.WithCancel(context.Background())
	e.grace, e.quickLimit, e.strays.most = 5*time.Second, quickLimit, strayShare*cfg.Workers
	return e
}

// Definitions gives access to compiled workflows.
func (e *Engine) Definitions() *Definitions { return e.defs }

// Feed gives access to live events.
func (e *Engine) Feed() *Feed { return e.feed }

// Limits are the ceilings the engine enforces.
func (e *Engine) Limits() run.Limits { return e.cfg.Limits }

// Instance is the id of this process in the store's ownership table.
func (e *Engine) Instance() string { return *e.instance.Load() }

// Start registers the instance and begins to look for work.
func (e *Engine) Start(ctx context.Context) error {
	id := "i-" + rand.Text()
	e.instance.Store(&id)
	if err := e.store.Ownership().Register(ctx, id); err != nil {
		return err
	}
	loops := []func(){e.heartbeat, e.reconcile, e.tickActive}
	if e.others != nil {
		loops = append(loops, e.lookOut)
	}
	for _, loop := range loops {
		e.loops.add()
		go func() {
			defer e.loops.done()
			loop()
		}()
	}
	return nil
}

// Stop ends the engine in order: it stops taking on work, lets executing calls
// come to an end until ctx is done, cuts off the rest, and gives up its runs.
// A run cut off is taken over by the next owner, from its log. Nothing a node
// or the store does keeps Stop from returning soon after ctx is done.
func (e *Engine) Stop(ctx context.Context) error {
	e.draining.Store(true)
	e.stopOnce.Do(func() { close(e.stop) })
	e.look()
	select {
	case <-e.calls.nothing():
	case <-ctx.Done():
	}
	e.life.Load().end()
	e.feed.Close()
	e.actors.close()
	var stuck error
	grace := time.NewTimer(e.grace)
	defer grace.Stop()
	for _, rest := range []*tally{&e.loops, &e.actors.busy} {
		select {
		case <-rest.nothing():
		case <-grace.C:
			stuck = errors.New("engine: stopped while a step of a run was still being decided")
			grace.Reset(0)
		}
	}
	if e.instance.Load() == nil {
		return stuck
	}
	release, done := context.WithTimeout(context.WithoutCancel(ctx), e.grace)
	defer done()
	if n := e.Strays(); n > 0 {
		e.log.Warn("stopped while calls of nodes went on that do not heed their context", "calls", n)
	}
	return errors.Join(stuck, e.store.Ownership().Deregister(release, e.Instance()))
}

// fence ends this instance's work when the store has declared it lost: its runs
// belong to others, so it executes nothing further and takes nothing on.
func (e *Engine) fence(lost string) {
	if e.others != nil {
		e.rejoin(lost)
		return
	}
	if e.draining.Swap(true) {
		return
	}
	e.log.Error("this instance has been declared lost and stops executing; restart it", "instance", e.Instance())
	e.life.Load().end()
}

// Working reports whether the engine takes on work: it has been started, does not
// stop, and has not been declared lost.
func (e *Engine) Working() bool { return e.instance.Load() != nil && !e.draining.Load() }

// errDraining refuses new work during shutdown.
func errDraining() error {
	e := problem.New(problem.ServiceUnavailable, "the host is shutting down")
	e.RetryAfter = 2 * time.Second
	return e
}

func (e *Engine) env() run.Env { return run.Env{Now: e.clock.Now(), Limits: e.cfg.Limits} }

package webhook

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/store"
)

// Config is what a Worker works with.
type Config struct {
	Store  store.Store
	Egress *egress.Guard
	Outbox *Outbox
	Clock  clock.Clock
	Log    *slog.Logger
	Agent  string // User-Agent of the requests
	Policy Policy

	// Instance is the name under which this process takes deliveries.
	Instance func() string
	// Retention is how long a dead letter is kept.
	Retention time.Duration
	// Older is the form of v1, where that is served, too; nil where it is not.
	Older Form
	// Callback says what a run's callback URL is told of an event, in a major; nil if
	// there is nothing to tell any more.
	Callback func(ctx context.Context, run store.Run, e *event.Event, major int) (*Called, error)
	// Redact takes secrets out of bodies; it may be nil.
	Redact *redact.Redactor
	// Random is a number from 0 to 1, for jitter. Nil means a random one.
	Random func() float64
}

const (
	// pollEvery is how often the queue is looked at without a hint: another
	// instance may have put something there.
	pollEvery = 5 * time.Second
	dueBatch  = 256
	// leaseSlack is how much longer a claim lasts than what it is taken for.
	leaseSlack = 45 * time.Second
	// restFailed is how long a store that has failed is left alone. It may be a disk
	// that is full: asking on would fill what is left with complaints.
	restFailed = time.Second
	// stopWithin is how long an attempt under way may go on when the worker ends.
	stopWithin = 2 * time.Second
)

// Worker works off the queue of deliveries. Any number of workers, in any number
// of processes, may do so at once.
type Worker struct {
	cfg   Config
	room  room
	freed chan struct{} // something has come to its end
	lanes sync.WaitGroup
}

// NewWorker makes a worker. It does nothing before Run.
func NewWorker(cfg Config) *Worker {
	if cfg.Clock == nil {
		cfg.Clock = clock.System{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	cfg.Policy = cfg.Policy.withDefaults()
	return &Worker{cfg: cfg, room: newRoom(), freed: make(chan struct{}, 1)}
}

// Policy is the policy in force.
func (w *Worker) Policy() Policy { return w.cfg.Policy }

// Wake has the worker look at the queue.
func (w *Worker) Wake() { w.cfg.Outbox.wake() }

// Run works until ctx ends, and returns once nothing is under way. An attempt
// that is cut off is made again by whoever works next.
func (w *Worker) Run(ctx context.Context) {
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopWithin, cut) })()
	defer w.lanes.Wait()
	for recovered := false; ctx.Err() == nil; {
		if !recovered {
			_, err := w.cfg.Store.Deliveries().Recover(ctx, w.cfg.Instance(), w.cfg.Clock.Now())
			recovered = err == nil
			w.complain(ctx, "recovering deliveries failed", err)
		}
		full, err := w.start(ctx, work)
		if err != nil || !recovered {
			w.restAfterFailure(ctx)
			continue
		}
		w.rest(ctx, full)
	}
}

// start takes what is due and there is room for, and reports whether something
// was left for lack of it.
func (w *Worker) start(ctx, work context.Context) (full bool, err error) {
	for ctx.Err() == nil {
		now := w.cfg.Clock.Now()
		targets, err := w.cfg.Store.Deliveries().Due(ctx, now, w.room.crowded(), dueBatch)
		if err != nil {
			w.complain(ctx, "looking for deliveries failed", err)
			return false, err
		}
		var quotas []store.Quota
		for _, t := range targets {
			n := w.room.reserve(t)
			if n == 0 {
				full = true
				continue
			}
			quotas = append(quotas, store.Quota{Tenant: t.Tenant, Target: t.ID, Limit: n})
		}
		if len(quotas) == 0 {
			return full || w.room.packed(), nil
		}
		taken, err := w.cfg.Store.Deliveries().Take(ctx, store.TakeQuery{
			Instance: w.cfg.Instance(), Now: now, Until: w.leaseEnd(), Quotas: quotas,
		})
		w.room.settle(quotas, taken)
		if err != nil {
			w.complain(ctx, "taking deliveries failed", err)
			return false, err
		}
		for _, d := range taken {
			w.lanes.Add(1)
			go func() {
				defer w.lanes.Done()
				defer w.leave(d)
				w.deliver(work, ctx, d)
			}()
		}
	}
	return full, nil
}

// leaseEnd is when what is taken now is due again if nobody settles it.
func (w *Worker) leaseEnd() time.Time {
	return w.cfg.Clock.Now().Add(w.cfg.Policy.Timeout + leaseSlack)
}

func (w *Worker) leave(d store.Delivery) {
	w.room.leave(d)
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// rest waits until there may be something to do.
func (w *Worker) rest(ctx context.Context, full bool) {
	wait := pollEvery
	if !full {
		if at, err := w.cfg.Store.Deliveries().NextDue(ctx); err == nil && !at.IsZero() {
			// Never without a pause, whatever the store says is due.
			wait = min(wait, max(at.Sub(w.cfg.Clock.Now()), 5*time.Millisecond))
		}
	}
	select {
	case <-ctx.Done():
	case <-w.cfg.Outbox.hint:
	case <-w.freed:
	case <-w.cfg.Clock.After(wait):
	}
}

// restAfterFailure waits whatever else happens: no hint makes a store better.
func (w *Worker) restAfterFailure(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.cfg.Clock.After(restFailed):
	}
}

func (w *Worker) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrNotFound) {
		w.cfg.Log.Warn(what, "err", err)
	}
}

// letter names a delivery that is given up.
func (w *Worker) letter(d *store.Delivery, e *event.Event, attempts, status int, reason string) store.DeadLetter {
	now := w.cfg.Clock.Now()
	return store.DeadLetter{
		Tenant: d.Tenant, Subscription: d.Target, ID: DeliveryID(d.Tenant, d.Target, d.Run, e.Seq, e.Time), Run: d.Run,
		EventID: ids.Event(d.Run, e.Seq), EventType: string(e.Type), Attempts: attempts, Reason: reason,
		LastStatus: status, At: now, ExpiresAt: now.Add(w.cfg.Retention),
	}
}

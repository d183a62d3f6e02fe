package host

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// Bounds of idempotency records. The text asks for 24 hours; twice that lets a
// client that gave up on Friday evening ask again on Sunday.
const (
	defaultRetention = 48 * time.Hour
	minRetention     = 24 * time.Hour
	defaultWait      = 10 * time.Second
	elsewhere        = 200 * time.Millisecond // between looks at a request another instance holds
	actWithin        = 2 * time.Minute        // for a request whose caller may have gone
)

// Keyed is a request that carries an Idempotency-Key.
type Keyed struct {
	Scope    string // what the operation demands
	Endpoint string // the operation, with the ids in its path
	Key      string // as the caller sent it; never kept, never logged
	Digest   [sha256.Size]byte
}

// Once lets do happen at most once for a key (spec v2 idempotency.md §Layer 1)
// and returns its outcome, or the recorded outcome of an earlier request of the
// same key and digest. A refusal of do comes along with the outcome that it is
// answered with; Once returns it alone if it must not be kept.
//
// do goes on when its caller goes away: what becomes of it is recorded for the
// caller's next try.
func (h *Host) Once(ctx context.Context, c identity.Caller, k Keyed, do func(context.Context) (store.Outcome, error)) (out store.Outcome, replayed bool, err error) {
	if err := h.allow(c, ""); err != nil {
		return out, false, err
	}
	// Before anything is looked up: a recorded answer is for whoever may ask.
	for scope := range strings.FieldsSeq(k.Scope) {
		if err := h.allow(c, scope); err != nil {
			return out, false, err
		}
	}
	name := recordName{c.Tenant(), k.Endpoint, sha256.Sum256([]byte(k.Key))}
	var late <-chan time.Time
	for {
		f, first := h.flights.enter(name)
		if late == nil && !first {
			late = h.clock.After(h.cfg.Limits.MaxInFlightWait)
		}
		if first {
			out, v, err := h.lead(ctx, f, name, k.Digest, do)
			if v != heldElsewhere {
				return out, v == replay, err
			}
			if late == nil {
				late = h.clock.After(h.cfg.Limits.MaxInFlightWait)
			}
			select {
			case <-h.clock.After(elsewhere):
			case <-late:
				return out, false, inFlight()
			case <-ctx.Done():
				return out, false, ctx.Err()
			}
			continue
		}
		for _, step := range []<-chan struct{}{f.settled, f.done} {
			select {
			case <-step:
			case <-late:
				return out, false, inFlight()
			case <-ctx.Done():
				return out, false, ctx.Err()
			}
			// Settled: the digest counts before the wait does.
			if f.holds && f.digest != k.Digest {
				return out, false, mismatch()
			}
		}
		switch {
		case f.outcome != nil:
			return *f.outcome, true, nil
		case f.holds:
			// The first came to nothing that lasts. This one was sent beside it, and
			// of the two only one may happen.
			return out, false, inFlight()
		}
	}
}

// verdict is what a claim came to.
type verdict int

const (
	acted verdict = iota // or refused
	replay
	heldElsewhere
)

// lead claims a request for this process's first caller and, if it is granted,
// lets it happen.
func (h *Host) lead(ctx context.Context, f *flight, name recordName, digest [sha256.Size]byte, do func(context.Context) (store.Outcome, error)) (out store.Outcome, v verdict, err error) {
	defer h.flights.leave(name, f) // even if do panics
	if !h.engine.Working() {
		return out, acted, unavailable()
	}
	now := h.clock.Now()
	rec, mine, err := h.store.Idempotency().Claim(ctx, store.Record{
		Tenant: name.tenant, Endpoint: name.endpoint, Key: name.key[:], Digest: digest[:],
		Run: h.engine.NewID(name.tenant).Opaque, Instance: h.engine.Instance(),
		CreatedAt: now, ExpiresAt: now.Add(h.cfg.Limits.KeyRetention),
	})
	switch {
	case errors.Is(err, store.ErrNotFound): // this instance has been declared lost
		return out, acted, unavailable()
	case err != nil:
		return out, acted, err
	case string(rec.Digest) != string(digest[:]):
		return out, acted, mismatch()
	case rec.Outcome != nil:
		f.settle(digest)
		f.outcome = rec.Outcome
		return *rec.Outcome, replay, nil
	case !mine:
		return out, heldElsewhere, nil
	}
	f.settle(digest)
	out, err = h.act(ctx, f, rec, do)
	return out, acted, err
}

// act lets a claimed request happen and records what became of it, before
// anybody hears of it.
func (h *Host) act(ctx context.Context, f *flight, rec store.Record, do func(context.Context) (store.Outcome, error)) (store.Outcome, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), actWithin)
	defer done()
	settled := false
	defer func() {
		if !settled { // it failed, or panicked: the next try is a new attempt
			h.let(ctx, rec, h.store.Idempotency().Release)
		}
	}()
	out, err := do(context.WithValue(ctx, attemptKey{}, attemptOf(rec)))
	switch keep(err) {
	case keepNothing:
		return out, err
	case keepNoRecord:
		// Nothing has happened, unless an earlier attempt got further.
		if settled = rec.Attempt == 1; settled {
			h.let(ctx, rec, h.store.Idempotency().Forget)
		}
		return out, err
	}
	if len(out.Header)+len(out.Body) > store.MaxValue/2 { // sealed it is larger by half
		return out, nil // the next try finds out by itself what has happened
	}
	rec.Outcome = &out
	rec.ExpiresAt = h.clock.Now().Add(h.cfg.Limits.KeyRetention)
	if err := h.store.Idempotency().Finish(ctx, rec); err != nil {
		return out, err
	}
	settled = true
	f.outcome = &out
	return out, nil
}

// let ends a claim. If it cannot, the claim passes to the next try all the same.
func (h *Host) let(ctx context.Context, rec store.Record, end func(context.Context, store.Record) error) {
	if err := end(ctx, rec); err != nil && h.cfg.Log != nil {
		h.cfg.Log.Warn("an idempotency record was not let go of", "endpoint", rec.Endpoint, "err", err)
	}
}

type keeping int

const (
	keepOutcome  keeping = iota
	keepNothing          // retryable: the same key executes again
	keepNoRecord         // the caller may correct the request under the same key
)

// keep says what is kept of a request (spec v2 idempotency.md §Layer 1, the rows
// on final, retryable and uncached outcomes).
func keep(err error) keeping {
	if err == nil {
		return keepOutcome
	}
	p := problem.From(err)
	row, _ := problem.Lookup(p.Code)
	switch status := p.Status(); {
	case status >= 500 || status == http.StatusTooManyRequests || row.Retriable:
		return keepNothing
	case status == http.StatusUnauthorized || status == http.StatusForbidden ||
		p.Code == problem.ValidationError || p.Code == problem.IdempotencyKeyInvalid:
		return keepNoRecord
	}
	return keepOutcome
}

// attempt is what a use case may know of the keyed request it serves.
type attempt struct {
	run   ids.Run // for the run that the request creates; zero without a key
	again bool    // an earlier attempt may have done the work already
	mark  string  // names the request in the log
}

type attemptKey struct{}

func attemptOf(rec store.Record) attempt {
	sum := sha256.Sum256([]byte("fermata request 1\x00" + rec.Tenant + "\x00" + rec.Endpoint + "\x00" + string(rec.Key)))
	return attempt{
		run: ids.Run{Tenant: rec.Tenant, Opaque: rec.Run}, again: rec.Attempt > 1,
		mark: base64.RawURLEncoding.EncodeToString(sum[:15]),
	}
}

// attemptIn finds the attempt a use case is called for.
func attemptIn(ctx context.Context) attempt {
	a, _ := ctx.Value(attemptKey{}).(attempt)
	return a
}

func mismatch() error {
	return problem.New(problem.IdempotencyKeyMismatch, "this Idempotency-Key has been used with another request").With("header", "Idempotency-Key")
}

func inFlight() error {
	e := problem.New(problem.IdempotencyInFlight, "a request with this Idempotency-Key is still being processed").With("header", "Idempotency-Key")
	e.RetryAfter = time.Second
	return e
}

func unavailable() error {
	e := problem.New(problem.ServiceUnavailable, "the host takes on no work")
	e.RetryAfter = 2 * time.Second
	return e
}

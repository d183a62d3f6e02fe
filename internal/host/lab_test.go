package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/sqlite"
	"github.com/fermata-run/fermata/node"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// watched is a manual clock that says when somebody begins to wait for d.
type watched struct {
	*clock.Manual
	d     time.Duration
	waits chan struct{}
}

func (w *watched) After(d time.Duration) <-chan time.Time {
	ch := w.Manual.After(d)
	if d == w.d {
		w.waits <- struct{}{}
	}
	return ch
}

func newClock(d time.Duration) *watched {
	return &watched{clock.NewManual(noon), d, make(chan struct{}, 1000)}
}

// failing is a store whose records cannot be finished while it is told so.
type failing struct {
	store.Store
	on atomic.Bool
}

func (f *failing) Idempotency() store.Idempotency { return failingRecords{f.Store.Idempotency(), f} }

type failingRecords struct {
	store.Idempotency
	f *failing
}

func (r failingRecords) Finish(ctx context.Context, rec store.Record) error {
	if r.f.on.Load() {
		return errors.New("disk full")
	}
	return r.Idempotency.Finish(ctx, rec)
}

type nothing struct{}

func (nothing) Type(string) (*node.Type, bool) { return nil, false }

var _ flow.Catalog = nothing{}

// lab is a host on a folder.
type lab struct {
	*Host
	db  *failing
	eng *engine.Engine
}

func open(t *testing.T, dir string, c clock.Clock) *lab {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(dir, "h.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{db: &failing{Store: db}}
	l.eng = engine.New(engine.Config{Store: db, Catalog: nothing{}})
	if err := l.eng.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Host = New(Config{Store: l.db, Engine: l.eng, Catalog: nothing{}, Clock: c, Limits: DefaultLimits()})
	t.Cleanup(func() { l.eng.Stop(context.Background()); db.Close() })
	return l
}

func asCaller(tenant string, scopes ...string) identity.Caller {
	return identity.Caller{Subject: event.Subject{Tenant: tenant, SubjectID: "s"}, Scopes: scopes}
}

var ann = asCaller("acme", "runs:create")

const aKey = "0123456789abcdefghijkl"

func keyedBy(key, digest string) Keyed {
	return Keyed{Scope: "runs:create", Endpoint: "createRun", Key: key, Digest: sha256.Sum256([]byte(digest))}
}

// said is an operation that answers with text, and counts.
func said(n *int, text string) func(context.Context) (store.Outcome, error) {
	return func(context.Context) (store.Outcome, error) {
		*n++
		return store.Outcome{Status: 200, Header: []byte("{}"), Body: []byte(text)}, nil
	}
}

func refuses(err error) func(context.Context) (store.Outcome, error) {
	return func(context.Context) (store.Outcome, error) {
		return store.Outcome{Status: 400, Header: []byte("{}"), Body: []byte("refusal")}, err
	}
}

func (l *lab) wants(t *testing.T, k Keyed, do func(context.Context) (store.Outcome, error), body string, replayed bool) {
	t.Helper()
	out, again, err := l.Once(t.Context(), ann, k, do)
	if err != nil || string(out.Body) != body || again != replayed {
		t.Fatalf("%q, replayed %v: %v; want %q, %v", out.Body, again, err, body, replayed)
	}
}

func (l *lab) refused(t *testing.T, k Keyed, do func(context.Context) (store.Outcome, error), code problem.Code) {
	t.Helper()
	if _, _, err := l.Once(t.Context(), ann, k, do); err == nil || problem.From(err).Code != code {
		t.Fatalf("%v, want %s", err, code)
	}
}

// withTenant is a store with one tenant in it.
func withTenant(t *testing.T, id string) store.Store {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Tenants().Add(t.Context(), store.Tenant{ID: id, State: store.TenantActive}); err != nil {
		t.Fatal(err)
	}
	return db
}

package webhook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/sqlite"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// patience bounds waits for what must happen; it measures nothing.
const patience = 20 * time.Second

// lab is a store, a worker on a clock that stands, and a world outside.
type lab struct {
	*testing.T
	s      *sqlite.Store
	clock  *clock.Manual
	outbox *Outbox
	cfg    Config
	mint   ids.Minter
	world  *world
}

func newLab(t *testing.T, change ...func(*Config)) *lab {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := &lab{T: t, s: s, clock: clock.NewManual(epoch), outbox: NewOutbox(), world: newWorld(t)}
	l.cfg = Config{
		Store: s, Outbox: l.outbox, Clock: l.clock, Agent: "test", Instance: func() string { return "i-1" }, Retention: time.Hour,
		Egress: egress.New(egress.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
		Policy: Policy{MaxAttempts: 3, Backoff: time.Second}, Random: func() float64 { return 1 },
	}
	for _, f := range change {
		f(&l.cfg)
	}
	l.ok(s.Ownership().Register(t.Context(), "i-1"))
	return l
}

func (l *lab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// work runs a worker until the test ends.
func (l *lab) work() *Worker {
	w := NewWorker(l.cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	l.Cleanup(func() {
		l.world.letGo()
		cancel()
		<-done
	})
	return w
}

// pass moves time on and has the worker look.
func (l *lab) pass(d time.Duration) {
	l.clock.Advance(d)
	l.outbox.wake()
}

// subscribe adds a subscription to a path of the world outside.
func (l *lab) subscribe(tenant, path string, change ...func(*store.Subscription)) store.Subscription {
	l.Helper()
	s := store.Subscription{
		Tenant: tenant, ID: l.mint.Next(l.clock.Now()), URL: l.world.http.URL + path, Events: []string{"run.started", "log.appended"},
		Secret: "the secret", CreatedAt: l.clock.Now(),
	}
	for _, f := range change {
		f(&s)
	}
	l.ok(l.s.Webhooks().Add(l.Context(), s, 0))
	return s
}

// begin writes a run whose first step has n events, through the outbox.
func (l *lab) begin(tenant string, n int, change ...func(*run.State, *store.Append)) ids.Run {
	l.Helper()
	id := ids.Run{Tenant: tenant, Opaque: l.mint.Next(l.clock.Now())}
	a := &store.Append{Create: true, Row: store.Run{
		ID: id, WorkflowID: "w", WorkflowVersion: "1", Status: "running", Seq: int64(n - 1), CreatedAt: l.clock.Now(),
		Owner: []byte(`{"tenant":"` + tenant + `","subject":{"issuer":"i","subjectId":"s","tenant":"` + tenant + `"}}`),
	}}
	for i := range n {
		e := event.Event{Run: id, Seq: int64(i), Type: event.LogAppended, Time: l.clock.Now(), Causation: -1, Payload: []byte(`{"level":"info","message":"m"}`)}
		if i == 0 {
			e.Type, e.Payload = event.RunStarted, []byte(`{"workflowId":"w"}`)
		}
		a.Events = append(a.Events, e)
	}
	s := &run.State{ID: id}
	for _, f := range change {
		f(s, a)
	}
	l.outbox.Fill(s, a)
	l.ok(l.s.Runs().Append(l.Context(), a))
	l.outbox.Sent(a)
	return id
}

// until waits for something that must come to be.
func (l *lab) until(what string, is func() bool) {
	l.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.Fatalf("never: %s", what)
		}
	}
}

// idle waits until the worker has settled everything it has begun and then holds
// that nothing is due.
func (l *lab) idle(w *Worker) {
	l.Helper()
	l.until("the worker is at rest", func() bool {
		// In this order: what is taken counts as under way before it is due no more.
		due, err := l.s.Deliveries().Due(l.Context(), l.clock.Now(), nil, 1)
		l.ok(err)
		w.room.mu.Lock()
		defer w.room.mu.Unlock()
		return len(due) == 0 && w.room.total == 0
	})
}

// letters lists a subscription's dead letters.
func (l *lab) letters(s store.Subscription) []store.DeadLetter {
	l.Helper()
	out, err := l.s.Webhooks().DeadLetters(l.Context(), store.DeadLetterQuery{Tenant: s.Tenant, Subscription: s.ID, Now: l.clock.Now()})
	l.ok(err)
	return out
}

// call is one request that came in.
type call struct {
	path   string
	header http.Header
	body   []byte
	run    string
	seq    int64
}

// world is what lies outside: it takes calls and answers as it was told.
type world struct {
	http   *httptest.Server
	mu     sync.Mutex
	got    []call
	within map[string]int                                // calls being answered, by path and run
	twice  []string                                      // of one run at once
	answer map[string]func(n int, w http.ResponseWriter) // by path; n counts from 1
	held   chan struct{}
	once   sync.Once
}

func newWorld(t *testing.T) *world {
	w := &world{within: map[string]int{}, answer: map[string]func(int, http.ResponseWriter){}, held: make(chan struct{})}
	w.http = httptest.NewServer(w)
	t.Cleanup(func() {
		w.letGo()
		w.http.Close()
	})
	return w
}

// letGo answers the calls that hold was told for.
func (w *world) letGo() { w.once.Do(func() { close(w.held) }) }

func (w *world) on(path string, f func(n int, w http.ResponseWriter)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer[path] = f
}

func status(code int) func(int, http.ResponseWriter) {
	return func(_ int, w http.ResponseWriter) {
		w.WriteHeader(code)
		io.WriteString(w, "what the subscriber says")
	}
}

// hold answers nothing until the test ends.
func (w *world) hold(_ int, r http.ResponseWriter) { <-w.held }

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c := call{path: r.URL.Path, header: r.Header.Clone(), body: body}
	var doc struct {
		RunID string
		Event struct{ Sequence int64 }
	}
	_ = json.Unmarshal(body, &doc)
	c.run, c.seq = doc.RunID, doc.Event.Sequence
	key := c.path + " " + c.run
	w.mu.Lock()
	w.got = append(w.got, c)
	if w.within[key]++; w.within[key] > 1 {
		w.twice = append(w.twice, key)
	}
	n, answer := 0, w.answer[c.path]
	for _, g := range w.got {
		if g.path == c.path {
			n++
		}
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.within[key]--
		w.mu.Unlock()
	}()
	if answer != nil {
		answer(n, rw)
	}
}

// calls lists what came in at a path.
func (w *world) calls(path string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.got), func(c call) bool { return c.path != path })
}

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithoutCancel(t.Context()))
}

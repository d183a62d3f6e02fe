package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/limit"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
)

// Server serves a route table: it finds the row, keeps within capacity, and
// turns whatever goes wrong into the closed envelope.
type Server struct {
	table   *Table
	log     *slog.Logger
	room    *Capacity
	timeout time.Duration
	version func(http.ResponseWriter, *http.Request, *Route) error
	also    func(http.Header, *http.Request, *problem.Error)
	words   Wording
	rid     ids.Minter
}

// Options are a server's bounds.
type Options struct {
	MaxCalls   int // requests being answered at the same time
	MaxStreams int // open event streams
	Log        *slog.Logger

	// MaxBodies is how many bytes of large request bodies are held at the same
	// time, and three quarters of it those of one tenant.
	MaxBodies int
	// Capacity, if set, is there instead of the three above: servers that answer
	// for one host share it.
	Capacity *Capacity
	// Timeout is how long a call may take, from its headers to its answer.
	Timeout time.Duration

	// Version negotiates the protocol version of a request and stamps the
	// answer; it runs before anything else about a route.
	Version func(w http.ResponseWriter, r *http.Request, route *Route) error

	// Challenge, if set, says what a refusal needs beside its envelope. It sees a
	// refusal that is decided, and changes its headers only.
	Challenge func(h http.Header, r *http.Request, e *problem.Error)

	// Wording writes refusals; Plain if nil.
	Wording Wording
}

// Capacity is what the servers of a host may take together. Streams and calls have
// separate budgets, so that idle subscribers never keep a call from going through.
type Capacity struct {
	calls   chan struct{}
	streams chan struct{}
	bodies  *limit.Shares[string]
}

// NewCapacity makes room for so many calls, streams and bytes of large bodies;
// without a number, for a usual one.
func NewCapacity(calls, streams, bodies int) *Capacity {
	if calls <= 0 {
		calls = 4096
	}
	if streams <= 0 {
		streams = 20_000
	}
	if bodies <= 0 {
		bodies = DefaultBodies
	}
	return &Capacity{
		calls: make(chan struct{}, calls), streams: make(chan struct{}, streams),
		bodies: limit.NewShares[string](int64(bodies), int64(limit.Portion(bodies))),
	}
}

// Defaults of Options.
const (
	DefaultBodies  = 128 << 20
	DefaultTimeout = 2 * time.Minute
)

// NewServer makes a server of routes.
func NewServer(routes []Route, o Options) *Server {
	if o.Capacity == nil {
		o.Capacity = NewCapacity(o.MaxCalls, o.MaxStreams, o.MaxBodies)
	}
	if o.Wording == nil {
		o.Wording = Plain
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		table: NewTable(routes), log: o.Log, version: o.Version, also: o.Challenge, words: o.Wording, timeout: o.Timeout, room: o.Capacity,
	}
}

// Table is the compiled route table.
func (s *Server) Table() *Table { return s.table }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	route, params, allowed := s.table.Match(r.Method, r.URL.EscapedPath())
	if err := s.version(w, r, route); err != nil {
		s.refuse(w, r, err)
		return
	}
	if route == nil {
		s.noRoute(w, r, allowed)
		return
	}
	budget := s.room.calls
	if route.Stream {
		budget = s.room.streams
	}
	select {
	case budget <- struct{}{}:
		defer func() { <-budget }()
	default:
		s.refuse(w, r, full(route))
		return
	}
	defer meter(r, s.room.bodies)()
	s.serve(w, r, route, params)
}

func full(route *Route) error {
	code := problem.ServiceUnavailable
	if route.Stream {
		code = problem.RateLimited // spec v2 events.md §SSE frames
	}
	e := problem.New(code, "the host is at capacity")
	e.RetryAfter = time.Second
	return e
}

func (s *Server) serve(w http.ResponseWriter, outer *http.Request, route *Route, params map[string]string) {
	r := &Request{Request: outer, Route: route, Params: params}
	if !route.Stream {
		ctx, done := context.WithTimeout(outer.Context(), s.timeout)
		defer done()
		r.Request = outer.WithContext(ctx)
	}
	tracked := &tracker{ResponseWriter: w}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler { //nolint:errorlint // a sentinel by identity
			panic(p)
		}
		s.log.Error("a handler panicked", "operation", r.Route.ID, "panic", p, "stack", string(debug.Stack()))
		if tracked.begun {
			panic(http.ErrAbortHandler) // too late for an envelope: cut the connection
		}
		s.refuse(w, outer, problem.Internal(errors.New("panic")))
	}()
	if err := r.Route.Handle(tracked, r); err != nil {
		if tracked.begun {
			s.log.Warn("an answer broke off", "operation", r.Route.ID, "err", err)
			panic(http.ErrAbortHandler)
		}
		s.refuse(w, outer, err)
	}
}

// refuse answers with an error, whatever it is. An internal one is logged under
// an id that the client is given to quote.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	// Neither the client's doing nor a defect: the host is busy, or about to stop.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrClosed) {
		p := problem.New(problem.ServiceUnavailable, "the host did not get to this request in time")
		p.RetryAfter = time.Second
		err = p
	}
	if errors.Is(err, store.ErrUnavailable) && !problem.Is(err, problem.ServiceUnavailable) {
		err = noStore(err)
	}
	e := problem.From(err)
	if e.Status() >= 500 {
		id := s.rid.Next(time.Now())
		s.log.Error("a request failed", "method", r.Method, "path", Shown(r.URL.Path), "correlationId", id, "err", err)
		e = e.With("correlationId", id)
	}
	if e.Status() == http.StatusUnauthorized && e.Cause != nil {
		// Why a credential was refused is for the operator alone.
		s.log.Debug("a credential was refused", "code", e.Code, "cause", e.Cause)
	}
	if s.also != nil {
		s.also(w.Header(), r, e)
	}
	Refuse(w, e, s.words(e))
}

// noStore is the refusal of what cannot be done without the database: it may be
// back in a moment. Whether a write was done nobody knows; a key tells the next try.
func noStore(err error) error {
	p := problem.New(problem.ServiceUnavailable, "the database is not available; try again, with the same Idempotency-Key if you sent one")
	p.RetryAfter, p.Cause = 2*time.Second, err
	return p
}

func (s *Server) noRoute(w http.ResponseWriter, r *http.Request, allowed []string) {
	e := problem.New(problem.NotFound, "no such operation").With("path", Shown(r.URL.Path))
	if len(allowed) == 0 {
		Refuse(w, e, s.words(e))
		return
	}
	// No code is registered at 405: the envelope says not_found, the status and
	// the Allow header say what would be found.
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	e = problem.New(problem.NotFound, "the method %s is not allowed here", r.Method).With("allow", allowed)
	refusal := s.words(e)
	refusal.Status = http.StatusMethodNotAllowed
	Refuse(w, e, refusal)
}

// tracker knows whether an answer has begun.
type tracker struct {
	http.ResponseWriter
	begun bool
}

func (t *tracker) WriteHeader(status int) {
	t.begun = true
	t.ResponseWriter.WriteHeader(status)
}

func (t *tracker) Write(b []byte) (int, error) {
	t.begun = true
	return t.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the real writer.
func (t *tracker) Unwrap() http.ResponseWriter { return t.ResponseWriter }

package edge

import (
	"net/http"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/problem"
)

// Config is what an edge is made of.
type Config struct {
	// Origins are the origins whose pages may read answers, as they write
	// themselves: scheme://host[:port]. None by default. What is not in the list
	// gets no header of this kind.
	Origins []string

	// Admit and Expose are headers of an older wire, beside those of this major: of
	// requests, and of answers.
	Admit, Expose []string

	// Hosts are names beside the loopback's own by which requests may call a host
	// on a loopback connection: those that a proxy on this machine passes on.
	Hosts []string

	// Methods are the methods of a path, as it is written in a request.
	Methods func(escapedPath string) []string

	// Stamp, if set, adds what an answer of the protocol carries to one that the
	// edge gives by itself.
	Stamp func(http.Header, *http.Request)

	// Answer is how long a request may take until its answer is written, for one
	// that does not set a time for each write itself; 0 for no bound.
	Answer time.Duration
}

// New puts an edge before a handler.
func New(c Config, next http.Handler) http.Handler {
	if c.Stamp == nil {
		c.Stamp = func(http.Header, *http.Request) {}
	}
	return &edge{Config: c, next: next}
}

type edge struct {
	Config
	next http.Handler
}

// What every answer carries. An answer is data and never a page: nothing in it is
// executed, framed, guessed at or told to whoever is linked from it.
var always = map[string][]string{
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"no-referrer"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
	"Cache-Control":                {"no-store"}, // unless an operation knows better
}

// ServeHTTP implements http.Handler.
func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.Answer > 0 {
		// A writer that cannot have deadlines (a test's recorder) goes without.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(e.Answer))
	}
	h := w.Header()
	for name, value := range always {
		h[name] = value
	}
	if len(r.TransferEncoding) > 0 && r.ProtoMajor == 1 {
		// A length beside the chunks has been dropped by now. Whoever has read that
		// instead must not get to say where the next request begins (RFC 9112 §6.3).
		h.Set("Connection", "close")
	}
	granted := e.cors(h, r)
	if bad := e.check(r); bad != nil {
		e.Stamp(h, r)
		api.Fail(w, bad)
		return
	}
	if r.Method == http.MethodOptions {
		if allowed := e.Methods(r.URL.EscapedPath()); len(allowed) > 0 {
			e.options(w, r, allowed, granted)
			return
		}
	}
	e.next.ServeHTTP(w, r)
}

func (e *edge) check(r *http.Request) *problem.Error {
	if bad := checkPath(r.URL.EscapedPath()); bad != nil {
		return bad
	}
	return e.checkHost(r)
}

// options says what a path takes, and to a granted preflight that it may be sent.
func (e *edge) options(w http.ResponseWriter, r *http.Request, allowed []string, granted bool) {
	allowed = slices.Clone(allowed)
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	allowed = append(allowed, http.MethodOptions)
	slices.Sort(allowed)
	allowed = slices.Compact(allowed)
	h := w.Header()
	e.Stamp(h, r)
	h.Set("Allow", list(allowed))
	if granted && r.Header.Get("Access-Control-Request-Method") != "" {
		e.admit(h, allowed)
	}
	w.WriteHeader(http.StatusNoContent)
}

package cli

import (
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Bounds of the HTTP server. There is none on writing: event streams stay open
// for as long as their runs, and bound each write themselves.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	bodyPause     = 30 * time.Second // between two pieces of a request's body
	bodyTotal     = 5 * time.Minute  // for all of it
)

// newServer makes the HTTP server of a handler.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: slowBodies{h}, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// slowBodies gives up on clients that send a body drop by drop. A plain
// ReadTimeout cannot be had: it would also end streams, whose connections are
// read in the background for as long as they are open.
type slowBodies struct{ next http.Handler }

func (s slowBodies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		b := &timedBody{ReadCloser: r.Body, rc: http.NewResponseController(w), end: time.Now().Add(bodyTotal)}
		b.extend()
		r.Body = b
	}
	s.next.ServeHTTP(w, r)
}

type timedBody struct {
	io.ReadCloser
	rc   *http.ResponseController
	end  time.Time
	over bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err != nil && !b.over:
		// From here on the server only waits for the client to hang up, which
		// must not count as being slow.
		b.over = true
		b.deadline(time.Time{})
	case n > 0:
		b.extend()
	}
	return n, err
}

func (b *timedBody) extend() {
	at := time.Now().Add(bodyPause)
	if at.After(b.end) {
		at = b.end
	}
	b.deadline(at)
}

func (b *timedBody) deadline(at time.Time) {
	// A connection without deadlines, as in a test, goes without.
	_ = b.rc.SetReadDeadline(at)
}

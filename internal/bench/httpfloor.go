package bench

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// bareHost answers the two requests a run takes with the bytes the host would
// send, from a plain net/http handler, and makes the run's bytes durable in
// between. It knows nothing of workflows: it is what a run costs at least, with
// this driver and this HTTP server.
type bareHost struct {
	queue    chan chan error
	created  []byte
	snapshot []byte
}

// ServeHTTP implements http.Handler.
func (h *bareHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, body := http.StatusOK, h.snapshot
	if r.Method == http.MethodPost {
		done := make(chan error, 1)
		h.queue <- done
		if <-done != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		status, body = http.StatusCreated, h.created
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client would notice
}

// httpFloor drives a bare host as drive does the real one. It runs in this
// process, and shares the machine with its clients as the host does.
func httpFloor(open func() (floor, error), s *segment, clients int, span time.Duration) (perSec float64, err error) {
	f, err := open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	h := &bareHost{
		queue:   make(chan chan error, clients),
		created: fmt.Appendf(nil, `{"runId":"default/%s","status":"running","statusUrl":"/runs/default~2F%s"}`, s.id, s.id), snapshot: s.snapshot,
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	srv := &http.Server{Handler: h}
	go srv.Serve(l) //nolint:errcheck // it ends with Close
	served := make(chan error, 1)
	go func() {
		_, err := f.serve(h.queue, s)
		served <- err
	}()
	got, err := driveAll([]string{l.Addr().String()}, createBody("one", ""), clients, span)
	srv.Close()
	close(h.queue)
	return perSecond(got.runs, got.took), errors.Join(err, <-served)
}

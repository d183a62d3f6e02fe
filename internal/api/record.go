package api

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// Recorder takes an answer down instead of sending it. It is made for answers
// that are over when the handler returns.
type Recorder struct {
	header http.Header
	status int
	body   []byte
}

// NewRecorder makes an empty recorder.
func NewRecorder() *Recorder { return &Recorder{header: http.Header{}} }

// Header implements http.ResponseWriter.
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *Recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.body = append(r.body, b...)
	return len(b), nil
}

// Outcome is what was taken down.
func (r *Recorder) Outcome() (store.Outcome, error) {
	r.WriteHeader(http.StatusOK)
	h, err := json.Marshal(r.header, json.Deterministic(true))
	return store.Outcome{Status: r.status, Header: h, Body: r.body}, err
}

// Send answers with a recorded outcome.
func Send(w http.ResponseWriter, o store.Outcome) error {
	var header http.Header
	if err := json.Unmarshal(o.Header, &header); err != nil {
		return err
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(o.Status)
	w.Write(o.Body) //nolint:errcheck // the client has gone: there is nobody to tell
	return nil
}

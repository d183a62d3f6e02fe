package door

import (
	"net/http"
	"strconv"

	"github.com/fermata-run/fermata/internal/redact"
)

// shown is a writer of one answer that takes the tenant's secrets out of it. It
// leaves the forms of own keys alone: some answers are there to show one, and no
// other holds one that was not shown before.
type shown struct {
	http.ResponseWriter
	r      *redact.Redactor
	tenant string
	status int
}

// WriteHeader waits for the body, whose length may change.
func (s *shown) WriteHeader(status int) { s.status = status }

// Write implements http.ResponseWriter. Answers are written as a whole.
func (s *shown) Write(b []byte) (int, error) {
	clean := s.r.KnownJSON(s.tenant, b)
	if h := s.Header(); len(clean) != len(b) && h.Get("Content-Length") != "" {
		h.Set("Content-Length", strconv.Itoa(len(clean)))
	}
	s.flush()
	if _, err := s.ResponseWriter.Write(clean); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *shown) flush() {
	if s.status != 0 {
		s.ResponseWriter.WriteHeader(s.status)
		s.status = 0
	}
}

// Unwrap lets http.ResponseController reach the real writer.
func (s *shown) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Shown is a writer of one answer that takes a tenant's secrets out of it, for
// operations that stay open: those that do not have one already.
func (d *Door) Shown(w http.ResponseWriter, tenant string) http.ResponseWriter {
	return &shown{ResponseWriter: w, r: d.Redact, tenant: tenant}
}

// Clean takes a tenant's secrets out of a piece of JSON.
func (d *Door) Clean(tenant string) func([]byte) []byte {
	return func(b []byte) []byte { return d.Redact.KnownJSON(tenant, b) }
}

package api

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/limit"
	"github.com/fermata-run/fermata/internal/problem"
)

// freeBody is how much of a body is read without asking for room: the ordinary
// request is never refused for the large ones of others.
const freeBody = 64 << 10

// metered is a request body whose bytes count against what all bodies may take at
// the same time. They are given back when the request is over.
type metered struct {
	io.ReadCloser
	budget *limit.Shares[string]
	who    string
	read   int64
	taken  int64
	full   bool // it was refused, and what still comes is thrown away
}

var errNoRoom = errors.New("no room for the body")

// meter puts a meter before a request's body. The returned function gives back
// what it has counted.
func meter(r *http.Request, budget *limit.Shares[string]) func() {
	if r.ContentLength >= 0 && r.ContentLength <= freeBody {
		return func() {}
	}
	m := &metered{ReadCloser: r.Body, budget: budget}
	r.Body = m
	return func() {
		if m.taken > 0 {
			m.budget.Give(m.who, m.taken)
		}
	}
}

// BodyOf says whose a request's body is, once that is known. It is called before
// the body is read.
func BodyOf(r *http.Request, tenant string) {
	if m, ok := r.Body.(*metered); ok && m.taken == 0 {
		m.who = tenant
	}
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.full {
		return n, err
	}
	m.read += int64(n)
	if need := m.read - freeBody - m.taken; need > 0 {
		// In steps, so that a small piece does not ask each time.
		need = max(need, freeBody)
		if !m.budget.Take(m.who, need) {
			m.full = true
			return 0, errNoRoom
		}
		m.taken += need
	}
	return n, err
}

// noRoom refuses a large body while other large ones are being worked on.
func noRoom() error {
	e := problem.New(problem.ServiceUnavailable, "the host works on too many large requests")
	e.RetryAfter = time.Second
	return e
}

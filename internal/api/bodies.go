package api

import (
	"bytes"
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
	length int64 // of all of it; negative if nobody knows
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
	m := &metered{ReadCloser: r.Body, budget: budget, length: r.ContentLength}
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

// reserve takes room for all of a body whose length is known, before any of it is
// read, so that it can be read into one piece.
func (m *metered) reserve() bool {
	need := max(m.length-freeBody, 0) - m.taken
	if need > 0 && !m.budget.Take(m.who, need) {
		m.full = true
		return false
	}
	m.taken += max(need, 0)
	return true
}

// readAll reads a body to its end. One with a known length gets memory for it at
// once, and only if there is room: pieces that grow would take several times as much.
func readAll(r io.Reader, body io.Reader) ([]byte, error) {
	m, ok := body.(*metered)
	if !ok || m.length < 0 {
		return io.ReadAll(r)
	}
	if !m.reserve() {
		return nil, errNoRoom
	}
	b := bytes.NewBuffer(make([]byte, 0, m.length+bytes.MinRead))
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// noRoom refuses a large body while other large ones are being worked on.
func noRoom() error {
	e := problem.New(problem.ServiceUnavailable, "the host works on too many large requests")
	e.RetryAfter = time.Second
	return e
}

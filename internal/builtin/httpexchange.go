package builtin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/node"
)

// sending watches how far a call has come.
type sending struct {
	mu       sync.Mutex
	open     bool // there was a connection to send on
	answered bool // and an answer on the last one
}

func (s *sending) trace(ctx context.Context) context.Context {
	set := func(answered bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open, s.answered = true, answered
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { set(false) }, GotFirstResponseByte: func() { set(true) },
	})
}

// began reports whether any of the request may have been sent.
func (s *sending) began() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

var errSentOnce = errors.New("the connection broke after the request was sent")

// once keeps the transport from sending a request again by itself when a
// connection breaks, which it does for one with a key. A redirect is an answer, and
// may be followed.
func (s *sending) once(req *http.Request, body []byte) {
	fresh := func() io.ReadCloser { return io.NopCloser(strings.NewReader(string(body))) }
	req.Body = fresh() // also if it is empty: without one nobody would be asked
	req.GetBody = func() (io.ReadCloser, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open && !s.answered {
			return nil, errSentOnce
		}
		return fresh(), nil
	}
}

// exchange sends a request and reads its answer.
func (r *requester) exchange(ctx context.Context, p *plan, key string, s *sending) (*response, error) {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if key != "" && !p.cfg.ownKey() {
		limited = egress.Carrying(limited, p.cfg.header())
	}
	if p.credential != nil {
		with, err := p.credential.attach(limited, p.in)
		if err != nil {
			return nil, err
		}
		limited = with
	}
	req, err := p.request(limited, key)
	if err != nil {
		return nil, err
	}
	if s != nil && p.unknown == node.StopInDoubt {
		s.once(req, p.body)
	}
	client := r.direct
	if p.cfg.FollowRedirects {
		client = r.following
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, callFailed(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if s == nil && !p.expects(resp.StatusCode) {
		return &response{status: resp.StatusCode}, nil // nobody will look at the rest
	}
	body, err := egress.ReadAll(resp.Body, p.maxBytes)
	if err != nil && (p.expects(resp.StatusCode) || resp.StatusCode/100 == 2) {
		return nil, callFailed(ctx, err)
	}
	return &response{status: resp.StatusCode, outputs: responseOutputs(resp, body)}, nil
}

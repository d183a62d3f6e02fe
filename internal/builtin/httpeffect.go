package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"

	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/node"
)

// keyHeader is where an idempotency key goes unless the config says otherwise.
const keyHeader = "Idempotency-Key"

// What becomes of a call of which nobody knows whether it has had its effect.
const (
	repeatUnknown = "repeat"
	failUnknown   = "fail"
)

// safe methods only read (RFC 9110 §9.2.1): they leave by the seam like any other
// call, but there is no effect to claim.
var safe = map[string]bool{http.MethodGet: true, http.MethodHead: true, http.MethodOptions: true}

// unknown says what the config, or failing that the method, makes of doubt. PUT and
// DELETE come to the same however often they are sent (§9.2.2); anything else may
// be sent again if the other side is shown a key to know it by.
func (cfg *httpConfig) unknown(method string) (node.InDoubt, error) {
	def := failUnknown
	if cfg.header() != "" || method == http.MethodPut || method == http.MethodDelete {
		def = repeatUnknown
	}
	v, err := choice("onUnknownOutcome", cfg.OnUnknownOutcome, def, repeatUnknown, failUnknown)
	if v == repeatUnknown {
		return node.RepeatInDoubt, err
	}
	return node.StopInDoubt, err
}

// header is where the key goes; empty if the other side takes none.
func (cfg *httpConfig) header() string {
	if cfg.IdempotencyHeader == nil {
		return keyHeader
	}
	return http.CanonicalHeaderKey(*cfg.IdempotencyHeader)
}

// ownKey reports whether the author sets the header of the key.
func (cfg *httpConfig) ownKey() bool {
	for name := range cfg.Headers {
		if http.CanonicalHeaderKey(name) == cfg.header() {
			return true
		}
	}
	return false
}

func (cfg *httpConfig) checkKey(method string) error {
	if h := cfg.header(); h != "" && (!isToken(h) || reserved[h] || h == "Content-Type") {
		return badMember("idempotencyHeader", "is not a header that a key can go into")
	}
	for field, v := range map[string]string{"idempotencyKey": cfg.IdempotencyKey, "operation": cfg.Operation} {
		if len(v) > 512 {
			return badMember(field, "is longer than 512 bytes")
		}
		if v != "" && safe[method] {
			return badMember(field, "cannot be given with %s, which has no effect", method)
		}
	}
	return nil
}

// effect is what an unsafe call is claimed as.
func (p *plan) effect() node.Effect {
	e := node.Effect{
		Key: p.cfg.IdempotencyKey, Operation: p.cfg.Operation, InDoubt: p.unknown,
		NoKey: p.cfg.header() == "" || p.cfg.ownKey(),
	}
	if e.Operation == "" {
		u, _ := url.Parse(p.url) // it was parsed before
		e.Operation = httpSeam + " " + p.method + " " + u.Scheme + "://" + strings.ToLower(u.Host) + u.EscapedPath()
	}
	return e
}

// perform makes an unsafe call. Its outcome is whatever the server decided on, to
// be judged by whoever is given it.
func (r *requester) perform(p *plan) node.Perform {
	return func(ctx context.Context, key string) (json.RawMessage, error) {
		s := &sending{}
		resp, err := r.exchange(s.trace(ctx), p, key, s)
		if err != nil {
			if !s.began() {
				err = node.NotDone(err)
			}
			return nil, err
		}
		if p.expects(resp.status) || resp.status/100 == 2 {
			return object{{"response", recorded(resp)}}.raw(), nil
		}
		err = unexpectedStatus(resp.status, p.retry5xx)
		if refuses(resp.status) {
			err = node.NotDone(err)
		}
		return nil, err
	}
}

// refuses reports whether a status says that the request has not been acted on. A
// conflict may be with an earlier try that is at it still, and a server that
// breaks down may have got anywhere.
func refuses(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict:
		return false
	case http.StatusNotModified, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return status/100 == 4
}

func recorded(r *response) json.RawMessage {
	o := make(object, 0, len(r.outputs))
	for _, name := range sortedKeys(r.outputs) {
		o = append(o, pair{name, r.outputs[name]})
	}
	return o.raw()
}

// responseOf reads an outcome back.
func responseOf(outcome json.RawMessage) (*response, error) {
	var kept struct {
		Response map[string]json.RawMessage `json:"response"`
	}
	r := &response{}
	err := json.Unmarshal(outcome, &kept)
	if err == nil {
		r.outputs = kept.Response
		err = json.Unmarshal(r.outputs["status"], &r.status)
	}
	if err != nil {
		return nil, node.Fail(node.CodeInternal, "the recorded outcome of the call cannot be read")
	}
	return r, nil
}

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

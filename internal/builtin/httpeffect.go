package builtin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

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
		e.Operation = httpSeam + " " + p.method + " " + place(u)
	}
	return e
}

// place is where a URL leads, written in one way only, without its query.
func place(u *url.URL) string {
	host, path := strings.ToLower(u.Host), u.EscapedPath()
	if u.Port() == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host = strings.TrimSuffix(host, ":"+u.Port())
	}
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host + path
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

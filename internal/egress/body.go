package egress

import (
	"io"
	"net/http"
)

// transport judges each request, hop by hop, and bounds each response.
type transport struct {
	guard *Guard
	base  *http.Transport
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	err := t.guard.pass(r.Context()) // a connection kept from earlier needs no dialer
	if err == nil && attached(r.Context()) == nil {
		err = t.guard.checkRequest(r)
	}
	if err != nil {
		return nil, closing(r, err)
	}
	a, sent := attached(r.Context()), r
	if a != nil {
		if sent, err = t.equip(r, a); err != nil {
			return nil, closing(r, err)
		}
	}
	resp, err := t.base.RoundTrip(sent)
	if err != nil {
		if a != nil { // the name led elsewhere by the time it was called
			err = a.refuse(r.Context(), Destination(r.URL.Hostname()), err)
		}
		return nil, err
	}
	resp.Request = r // the one without a credential
	if resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		return nil, policy("the server switched protocols")
	}
	// The transport has decompressed by now, so what is counted is what the
	// caller would hold in memory.
	limit := t.guard.opts.MaxBodyBytes
	resp.Body = &capped{body: resp.Body, left: limit, limit: limit}
	return resp, nil
}

// closing closes a request's body, as a round tripper does whatever happens.
func closing(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return err
}

// CloseIdleConnections lets http.Client pass the wish on.
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// capped is a body that fails once more than limit bytes have come.
type capped struct {
	body  io.ReadCloser
	left  int64
	limit int64
}

func (c *capped) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	// One byte more than is left tells a body that ends from one that goes on.
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.body.Read(p)
	if int64(n) > c.left {
		n = int(c.left)
		err = &TooLarge{Limit: c.limit}
	}
	c.left -= int64(n)
	return n, err
}

func (c *capped) Close() error { return c.body.Close() }

// ReadAll reads the whole body unless it is longer than limit, in which case the
// error is a *TooLarge.
func ReadAll(body io.Reader, limit int64) ([]byte, error) {
	limit = max(limit, 0)
	return io.ReadAll(&capped{body: io.NopCloser(body), left: limit, limit: limit})
}

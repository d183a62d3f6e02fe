package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// maxAnswer bounds the body of an answer, so that a broken host cannot use up
// this process's memory.
const maxAnswer = 256 << 20

// call is one operation to be performed.
type call struct {
	method string
	path   string // escaped, below the base address
	query  url.Values
	body   []byte // JSON; nil for none
	header http.Header
	again  bool          // may be repeated without harm
	keyed  bool          // changes something, and the host honours an Idempotency-Key
	bare   bool          // the path holds the credential
	extra  time.Duration // that the host is asked to take on top
}

// answer is what came back, if it was a success.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into decodes an answer's body and returns its exact bytes.
func (a *answer) into(v any) (json.RawMessage, error) {
	if err := json.Unmarshal(a.body, v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return a.body, nil
}

// do performs a call, repeating it where that is safe and helps.
func (c *Client) do(ctx context.Context, k call) (*answer, error) {
	c.name(ctx, &k)
	for n := 0; ; n++ {
		a, err := c.attempt(ctx, k)
		if err == nil {
			return a, nil
		}
		var e *Error
		after := time.Duration(0)
		if errors.As(err, &e) {
			after = e.RetryAfter
		}
		if !k.worthRepeating(err) || ctx.Err() != nil || !c.wait(ctx, n, after) {
			return nil, ended(ctx, err)
		}
	}
}

// ended makes the caller's own end the error, where that is what cut a call off.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ErrUnreachable) {
		return context.Cause(ctx)
	}
	return err
}

func (c *Client) attempt(ctx context.Context, k call) (*answer, error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout+k.extra)
		defer cancel()
	}
	resp, err := c.send(ctx, k)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := readAll(resp.Body)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode == http.StatusNotModified {
		return nil, ErrNotModified
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, refusal(resp.StatusCode, resp.Header, body)
	}
	return &answer{resp.StatusCode, resp.Header, body}, nil
}

// send sends one request. The caller closes the body.
func (c *Client) send(ctx context.Context, k call) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, k.method, c.base.String()+k.path, nil)
	if err != nil {
		return nil, bare(err)
	}
	req.URL.RawQuery = k.query.Encode()
	if k.body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(k.body)), int64(len(k.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(k.body)), nil }
		req.Header.Set("Content-Type", "application/json")
	}
	for name, vs := range k.header {
		req.Header[name] = vs
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("OpenWOP-Version", ProtocolVersion)
	if c.key != "" && !k.bare {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return resp, nil
}

// bare takes the request out of an error of net/http: it says again what the
// caller knows, and its address may be long.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err == nil && len(b) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return b, err
}

// encode writes a request body without changing payloads: json.Marshal would
// escape < > & inside them.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("the request cannot be written as JSON: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func runPath(id, rest string) string { return "/runs/" + Segment(id) + rest }

func setInt(q url.Values, name string, n int64) {
	if n > 0 {
		q.Set(name, strconv.FormatInt(n, 10))
	}
}

func setText(q url.Values, name, s string) {
	if s != "" {
		q.Set(name, s)
	}
}

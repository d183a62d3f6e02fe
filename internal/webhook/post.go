package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/egress"
)

// maxReply bounds what is read of an answer. Nothing of it is kept.
const maxReply = 64 << 10

// outcome is what came of one attempt. It holds nothing of what was answered but
// the status.
type outcome struct {
	ok         bool
	cut        bool // the worker ends; nobody is to blame
	status     int  // 0 if no answer came
	retryAfter time.Duration
	note       string // for operators; holds no URL, header or body
}

// post makes one attempt. A redirect is an answer like any other, and no success.
func (w *Worker) post(ctx context.Context, url string, h http.Header, body []byte) outcome {
	within, done := context.WithTimeout(ctx, w.cfg.Policy.Timeout)
	defer done()
	res, err := w.send(within, url, h, body)
	if err != nil {
		return outcome{cut: ctx.Err() != nil, note: egress.Describe(err)}
	}
	defer res.Body.Close()
	// What comes after the header changes nothing; reading it lets the connection
	// be used again.
	_, _ = io.CopyN(io.Discard, res.Body, maxReply)
	o := outcome{ok: res.StatusCode >= 200 && res.StatusCode < 300, status: res.StatusCode, note: "HTTP " + strconv.Itoa(res.StatusCode)}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		o.retryAfter = retryAfter(res.Header.Get("Retry-After"), w.cfg.Clock.Now())
	}
	return o
}

func (w *Worker) send(ctx context.Context, url string, h http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range h {
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", w.cfg.Agent)
	}
	return w.cfg.Egress.Client().Do(req)
}

// retryAfter reads a Retry-After: seconds or a date. What makes no sense asks for
// nothing.
func retryAfter(v string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

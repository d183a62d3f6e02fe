package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"
)

// outcome is how a connection ended, if not by an error.
type outcome int

const (
	finished outcome = iota // nothing follows
	closed                  // the host ended the answer in order
	broken                  // it broke off, or none came about
)

// connection makes one connection and delivers what it brings.
func (f *follower) connection(ctx context.Context) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dead := time.AfterFunc(f.c.idle, func() { cancel(errSilent) })
	defer dead.Stop()
	f.wait, f.fresh = 0, false
	resp, err := f.open(ctx)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = f.c.unreachable(errSilent)
		}
		return f.refused(err)
	}
	defer resp.Body.Close()
	in := newFrames(resp.Body, func() { dead.Reset(f.c.idle) })
	for first := true; ; first = false {
		dead.Reset(f.c.idle)
		fr, err := in.next()
		dead.Stop() // the caller may take his time
		if in.seen > 1 {
			f.fruitless = 0 // it said more than hello: the way to the host is good
		}
		f.wait = min(in.retry, time.Minute)
		switch {
		case errors.Is(context.Cause(ctx), errSilent):
			return broken, f.c.unreachable(errSilent)
		case errors.Is(err, io.EOF):
			return closed, nil
		case errors.Is(err, ErrAnswer):
			return finished, err
		case err != nil:
			return broken, f.c.unreachable(err)
		}
		if done, err := f.deliver(fr, first); err != nil || done {
			return finished, err
		}
	}
}

var errSilent = errors.New("nothing was heard on the stream for too long")

// refused decides whether a connection that did not come about is worth trying
// again.
func (f *follower) refused(err error) (outcome, error) {
	var e *Error
	if !errors.As(err, &e) {
		return broken, err
	}
	f.wait = e.RetryAfter
	if transient(e.Status) || e.Status >= 500 {
		return broken, err
	}
	return finished, err
}

func (f *follower) open(ctx context.Context) (*http.Response, error) {
	h := http.Header{
		"Accept": {"text/event-stream"},
		// Compression holds events back until a block is full.
		"Accept-Encoding": {"identity"},
		"Cache-Control":   {"no-cache"},
	}
	if f.last >= 0 {
		h["Last-Event-Id"] = []string{strconv.FormatInt(f.last, 10)}
	}
	resp, err := f.c.send(ctx, call{method: http.MethodGet, path: runPath(f.run, "/events"), query: f.query, header: h})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		body, err := readAll(resp.Body)
		if err != nil {
			return nil, f.c.unreachable(err)
		}
		return nil, refusal(resp.StatusCode, resp.Header, body)
	}
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt != "text/event-stream" {
		resp.Body.Close()
		return nil, &Error{Status: http.StatusNotAcceptable, Message: fmt.Sprintf("the host answered with %q instead of an event stream", mt)}
	}
	return resp, nil
}

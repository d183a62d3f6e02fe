package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// InProcess is a transport that calls a handler in this process instead of a
// host over the network. Streams work as they do over a connection: what the
// handler flushes can be read at once, and it waits for a slow reader.
func InProcess(h http.Handler) http.RoundTripper { return inProcess{h} }

type inProcess struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(out *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(out.Context())
	in := out.Clone(ctx)
	in.RequestURI, in.RemoteAddr = in.URL.RequestURI(), "in-process"
	in.Host = out.URL.Host
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	if in.Body == nil {
		in.Body = http.NoBody
	}
	pr, pw := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pw: pw, begun: make(chan struct{})}
	// A caller who has gone must not wait for a handler that does not look.
	stop := context.AfterFunc(out.Context(), func() { pr.CloseWithError(out.Context().Err()) }) //nolint:errcheck // always nil
	go func() {
		defer cancel()
		defer stop()
		err := serve(t.h, w, in)
		in.Body.Close() //nolint:errcheck // a reader of bytes in memory
		if err != nil {
			w.broken(err)
			return
		}
		w.WriteHeader(http.StatusOK)
		pw.Close() //nolint:errcheck // always nil
	}()
	select {
	case <-w.begun:
	case <-out.Context().Done():
		return nil, out.Context().Err()
	}
	if w.err != nil {
		return nil, w.err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, ContentLength: -1,
		Body: &pipeBody{PipeReader: pr, cancel: cancel}, Request: out,
	}, nil
}

// serve calls the handler; a panic of it becomes an error, as it would break a
// connection and nothing else.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = io.ErrUnexpectedEOF
		default:
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// pipeWriter is the handler's side of an exchange.
type pipeWriter struct {
	header http.Header
	pw     *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed when status and sent, or err, are set

	status int
	sent   http.Header
	err    error
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	if status < 200 {
		return // informational answers are not passed on
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.pw.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = errors.New("the client has gone")
	}
	return n, err
}

// Flush implements http.Flusher: nothing is held back, but the head may be due.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// broken ends the exchange with an error, in the head or in the body.
func (w *pipeWriter) broken(err error) {
	w.once.Do(func() {
		w.err = err
		close(w.begun)
	})
	w.pw.CloseWithError(err) //nolint:errcheck // always nil
}

// pipeBody is the client's side of an exchange's body.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close tells the handler that nobody reads any more.
func (b *pipeBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

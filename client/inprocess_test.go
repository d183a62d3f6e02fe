package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func inside(t *testing.T, h http.HandlerFunc, opts ...Option) *Client {
	t.Helper()
	c, err := New("http://in-process", testKey, append(opts, WithTransport(InProcess(h)))...)
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = (&instant{}).sleep
	return c
}

func TestInProcessOperations(t *testing.T) {
	c := inside(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Method == "POST" && string(b) != `{"workflowId":"w"}` || r.Header.Get("Authorization") != "Bearer "+testKey || r.Host != "in-process" {
			t.Errorf("%s %s %s %q", r.Method, r.Host, r.RequestURI, b)
		}
		switch r.URL.EscapedPath() {
		case "/runs":
			answerJSON(w, 201, `{"runId":"a/b","status":"running"}`)
		case "/host/fermata/workflows/w":
			w.WriteHeader(http.StatusNoContent)
		case "/host/fermata/ready": // an empty 200
		case "/runs/a~2Fb/effects":
			answerJSON(w, 200, `{"runId":"a/b","effects":[{"effectId":"a/e","nodeId":"n","attempt":1,"keying":"activity-recipe","state":"escaped","at":"2026-01-02T03:04:05.678Z","providerKey":"e"}]}`)
		case "/host/fermata/runs/a~2Fb/debug-bundle":
			if r.URL.RawQuery != "maxEvents=3" {
				t.Errorf("query %q", r.URL.RawQuery)
			}
			answerJSON(w, 200, `{"bundleVersion":"2","generatedAt":"2026-01-02T03:04:05.678Z","run":{"runId":"a/b"},"events":[{},{}],"truncated":true,"truncatedReason":"r"}`)
		default:
			answerJSON(w, 404, `{"error":"not_found","message":"No."}`)
		}
	})
	if made, err := c.CreateRun(t.Context(), CreateRunRequest{WorkflowID: "w"}); err != nil || made.RunID != "a/b" {
		t.Errorf("%v, %v", made, err)
	}
	if err := c.DeleteWorkflow(t.Context(), "w"); err != nil {
		t.Error(err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if l, err := c.GetRunEffects(t.Context(), "a/b"); err != nil || len(l.Effects) != 1 || l.Effects[0].State != "escaped" || l.Effects[0].At.Nanosecond() != 678e6 || len(l.Raw) == 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if b, err := c.GetDebugBundle(t.Context(), "a/b", 3); err != nil || b.BundleVersion != "2" || len(b.Events) != 2 || !b.Truncated || b.TruncatedReason != "r" || len(b.Raw) == 0 {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := c.GetRun(t.Context(), testRun); !IsCode(err, "not_found") {
		t.Errorf("got %v", err)
	}
}

func TestInProcessStream(t *testing.T) {
	s := &logServer{types: aLog(9), torn: true, cut: func(int, int) (bool, bool) { return true, true }}
	got, err := collect(t, inside(t, s.ServeHTTP), StreamOptions{})
	if err != nil || !slices.Equal(got, sequences(0, 8)) {
		t.Errorf("got %v, %v", got, err)
	}
}

// What the handler writes is there before the handler is done, and it learns
// that the reader has gone.
func TestInProcessStreamsLive(t *testing.T) {
	gone := make(chan error, 1)
	c := inside(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: 0\ndata: %s\n\n", doc(0, "run.started"))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
		_, err := io.WriteString(w, ": more\n\n")
		gone <- err
	})
	for ev, err := range c.Stream(t.Context(), testRun, StreamOptions{}) {
		if err != nil || ev.Sequence != 0 {
			t.Errorf("%v, %v", ev, err)
		}
		break
	}
	if err := <-gone; err == nil {
		t.Error("a write to a reader who has gone succeeded")
	}
}

func TestInProcessPanics(t *testing.T) {
	c := inside(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "ready") {
			w.WriteHeader(200)
			io.WriteString(w, "half an ans") //nolint:errcheck // test
		}
		panic("oops")
	})
	for _, err := range []error{c.Ready(t.Context()), func() error { _, err := c.GetRun(t.Context(), testRun); return err }()} {
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("got %v", err)
		}
	}
}

func TestInProcessCallerGoes(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	c := inside(t, func(http.ResponseWriter, *http.Request) { <-release }) // looks at nothing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.GetRun(ctx, testRun); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

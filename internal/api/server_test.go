package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/schema"
)

// serve answers one request with a handler behind GET /x.
func serve(t *testing.T, ctx context.Context, log *slog.Logger, h func(http.ResponseWriter, *Request) error) *httptest.ResponseRecorder {
	t.Helper()
	s := NewServer([]Route{{Method: "GET", Pattern: "/x", ID: "x", Handle: h}}, Options{
		Log: log, Version: func(http.ResponseWriter, *http.Request, *Route) error { return nil },
	})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/x", nil))
	return w
}

func code(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if err := schema.Validate("error-envelope", w.Body.Bytes()); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	_, rest, _ := strings.Cut(w.Body.String(), `"error":"`)
	c, _, _ := strings.Cut(rest, `"`)
	return c
}

// A panic becomes a refusal that says nothing of what happened; the log does.
func TestPanicIsAnEnvelope(t *testing.T) {
	for _, value := range []any{"secret words", errors.New("secret words"), fmt.Sprint, nil} {
		var log bytes.Buffer
		w := serve(t, t.Context(), slog.New(slog.NewTextHandler(&log, nil)), func(w http.ResponseWriter, _ *Request) error {
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Location", "/x")
			w.Header().Set("Cache-Control", "public, max-age=300")
			panic(value)
		})
		if w.Code != 500 || code(t, w) != "internal_error" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		for _, leak := range []string{"secret", "goroutine", ".go:", "panic"} {
			if strings.Contains(w.Body.String(), leak) {
				t.Errorf("the answer says %q: %s", leak, w.Body)
			}
		}
		if h := w.Header(); h.Get("ETag") != "" || h.Get("Location") != "" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("headers of the answer that was not given: %v", h)
		}
		_, id, _ := strings.Cut(w.Body.String(), `"correlationId":"`)
		id, _, _ = strings.Cut(id, `"`)
		if !strings.Contains(log.String(), "server_test.go") || id == "" || !strings.Contains(log.String(), id) {
			t.Errorf("the log has no stack or not the id %q: %s", id, log.String())
		}
	}
}

// Once an answer has begun, a fault cuts the connection: half an answer must not
// look like a whole one.
func TestFaultWithinAnAnswerCutsIt(t *testing.T) {
	for name, after := range map[string]func() error{
		"panic": func() error { panic("late") }, "error": func() error { return errors.New("late") },
	} {
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // a sentinel by identity
					t.Errorf("%s: %v", name, p)
				}
			}()
			serve(t, t.Context(), nil, func(w http.ResponseWriter, _ *Request) error {
				fmt.Fprint(w, "half")
				return after()
			})
		}()
	}
}

func TestWhateverGoesWrongIsAnEnvelope(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		err    error
		status int
		code   string
		retry  string
	}{
		"a code":              {t.Context(), problem.New(problem.RunTerminal, "over"), 409, "run_terminal", ""},
		"a code, wrapped":     {t.Context(), fmt.Errorf("about: %w", problem.New(problem.NotFound, "no")), 404, "not_found", ""},
		"an unknown error":    {t.Context(), errors.New("disk on fire"), 500, "internal_error", ""},
		"a deadline inside":   {t.Context(), context.DeadlineExceeded, 503, "service_unavailable", "1"},
		"a host that stops":   {t.Context(), fmt.Errorf("append: %w", context.Canceled), 503, "service_unavailable", "1"},
		"a store that closed": {t.Context(), fmt.Errorf("read: %w", store.ErrClosed), 503, "service_unavailable", "1"},
		"a client that left":  {gone, context.Canceled, 200, "", ""},
		"no UTF-8":            {t.Context(), problem.Invalid("a\xff", "b\xfe").With("c", "\xfd"), 400, "validation_error", ""},
	} {
		w := serve(t, c.ctx, nil, func(http.ResponseWriter, *Request) error { return c.err })
		if c.code == "" {
			if w.Body.Len() > 0 {
				t.Errorf("%s: %s", name, w.Body)
			}
			continue
		}
		if w.Code != c.status || code(t, w) != c.code || w.Header().Get("Retry-After") != c.retry {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
		if strings.Contains(w.Body.String(), "fire") {
			t.Errorf("%s leaks its cause: %s", name, w.Body)
		}
	}
}

// Calls and streams have budgets of their own, and both give back what they took.
func TestBudgets(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	hold := func(http.ResponseWriter, *Request) error { entered <- struct{}{}; <-release; return nil }
	s := NewServer([]Route{
		{Method: "GET", Pattern: "/call", Handle: hold}, {Method: "GET", Pattern: "/stream", Stream: true, Handle: hold},
	}, Options{MaxCalls: 1, MaxStreams: 1, Version: func(http.ResponseWriter, *http.Request, *Route) error { return nil }})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	for range 3 {
		done := make(chan struct{})
		for _, path := range []string{"/call", "/stream"} {
			go func() { get(path); done <- struct{}{} }()
			<-entered
		}
		for path, want := range map[string]string{"/call": "service_unavailable", "/stream": "rate_limited"} {
			if w := get(path); code(t, w) != want || w.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		for range 2 {
			release <- struct{}{}
			<-done
		}
	}
}

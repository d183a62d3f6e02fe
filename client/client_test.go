package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// seen is what a host was sent.
type seen struct {
	method, uri, body string
	header            http.Header
}

// recorder answers every request with one body and records it.
func recorder(status int, body string, into *seen) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		*into = seen{r.Method, r.URL.RequestURI(), string(b), r.Header.Clone()}
		w.Header().Set("ETag", `"e-7"`)
		if status == http.StatusNoContent {
			w.WriteHeader(status)
			return
		}
		answerJSON(w, status, body)
	})
}

func TestOperations(t *testing.T) {
	snapshot := `{"runId":"` + testRun + `","workflowId":"w","status":"failed","eventLogSchemaVersion":3,"engineVersion":1,` +
		`"startedAt":"2026-11-30T12:00:00.000Z","error":{"code":"run_timeout","message":"Late."},"variables":{"n":123456789012345678901}}`
	at := "/runs/acme~2F01hzzzzzzzzzzzzzzzzzzzzzzz"
	for name, tc := range map[string]struct {
		status       int
		answer       string
		call         func(context.Context, *Client) (any, error)
		method, path string
		body         string
		want         string // in the JSON of the result
	}{
		"create": {
			201, `{"runId":"` + testRun + `","status":"running","eventsUrl":"/e","statusUrl":"/s"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.CreateRun(ctx, CreateRunRequest{WorkflowID: "w", Inputs: json.RawMessage(`{"n":1e400,"s":"<&>"}`), Tags: []string{"a"}})
			},
			"POST", "/runs", `{"workflowId":"w","inputs":{"n":1e400,"s":"<&>"},"tags":["a"]}`, `"status":"running"`,
		},
		"get": {
			200, snapshot, func(ctx context.Context, c *Client) (any, error) { return c.GetRun(ctx, testRun) },
			"GET", at, "", `123456789012345678901`,
		},
		"compensation": {
			200, `{"runId":"` + testRun + `","status":"partial","plan":[{"nodeId":"a","order":1}],"attempts":[]}`,
			func(ctx context.Context, c *Client) (any, error) { return c.GetRunCompensation(ctx, testRun) },
			"GET", at + "/compensation", "", `"status":"partial","plan":[{"nodeId":"a","order":1}]`,
		},
		"operate": {
			200, `{"runId":"` + testRun + `","status":"running","plan":[],"attempts":[]}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.OperateCompensation(ctx, testRun, CompensationOperation{Action: "skip", Order: 2, Reason: "gone"})
			},
			"POST", "/host/fermata" + at + "/compensation", `{"action":"skip","order":2,"reason":"gone"}`, `"status":"running"`,
		},
		"list": {
			200, `{"runs":[` + snapshot + `],"nextCursor":"abc"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.ListRuns(ctx, ListRunsOptions{Limit: 5, Cursor: "a+b", WorkflowID: "w", Status: Failed})
			},
			"GET", "/runs?cursor=a%2Bb&limit=5&status=failed&workflowId=w", "", `"nextCursor":"abc"`,
		},
		"fork": {
			201, `{"runId":"` + testRun + `","sourceRunId":"acme/x","fromSeq":4,"mode":"branch","status":"running","eventsUrl":"/e"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.ForkRun(ctx, testRun, ForkRequest{Mode: Branch, FromSeq: new(int64(4)), RunOptionsOverlay: &ForkOptions{Tags: []string{}}})
			},
			"POST", at + ":fork", `{"mode":"branch","fromSeq":4,"runOptionsOverlay":{"tags":[]}}`, `"fromSeq":4`,
		},
		"replay": {
			201, `{"runId":"` + testRun + `","sourceRunId":"acme/x","mode":"replay","status":"running","eventsUrl":"/e"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.ForkRun(ctx, testRun, ForkRequest{Mode: Replay})
			},
			"POST", at + ":fork", `{"mode":"replay"}`, `"mode":"replay"`,
		},
		"diff": {
			200, `{"a":"x","b":"y","divergedAtSeq":3,"eventDiffs":[{"seq":3,"op":"added","bEvent":` + doc(3, "run.failed") + `}],"stateDiff":{}}`,
			func(ctx context.Context, c *Client) (any, error) { return c.DiffRuns(ctx, testRun, "acme/y") },
			"GET", at + ":diff?against=acme%2Fy", "", `"op":"added","bEvent":{"eventId"`,
		},
		"ancestry": {
			200, `{"runId":"` + testRun + `","hostId":"h","parent":{"runId":"acme/p","hostId":"h","cause":"core.dispatch"}}`,
			func(ctx context.Context, c *Client) (any, error) { return c.RunAncestry(ctx, testRun) },
			"GET", at + "/ancestry", "", `"cause":"core.dispatch"`,
		},
		"cancel": {
			200, `{"runId":"x","status":"cancelling"}`,
			func(ctx context.Context, c *Client) (any, error) { return c.CancelRun(ctx, testRun, "why") },
			"POST", at + "/cancel", `{"reason":"why"}`, `cancelling`,
		},
		"pause": {
			202, `{"runId":"x","status":"paused","pausedAt":"2026-11-30T12:00:00.000Z"}`,
			func(ctx context.Context, c *Client) (any, error) { return c.PauseRun(ctx, testRun, "", Immediate) },
			"POST", at + ":pause", `{"drainPolicy":"immediate"}`, `"pausedAt":"2026-11-30`,
		},
		"resume": {
			202, `{"runId":"x","status":"running"}`,
			func(ctx context.Context, c *Client) (any, error) { return c.ResumeRun(ctx, testRun, "") },
			"POST", at + ":resume", `{}`, `running`,
		},
		"bulk cancel": {
			200, `{"results":[{"runId":"a","ok":true,"status":"cancelled"},{"runId":"b","ok":false,"error":{"error":"not_found","message":"No."}}]}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.BulkCancelRuns(ctx, []string{"a", "b"}, "r")
			},
			"POST", "/runs:bulk-cancel", `{"runIds":["a","b"],"reason":"r"}`, `"Code":"not_found"`,
		},
		"resolve": {
			200, `{"runId":"x","nodeId":"n:1","status":"running"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.ResolveInterrupt(ctx, testRun, "n:1~", json.RawMessage(`{"action":"accept"}`))
			},
			"POST", at + "/interrupts/n:1~", `{"resumeValue":{"action":"accept"}}`, `n:1`,
		},
		"interrupts": {
			200, `{"interrupts":[{"interruptId":"i","runId":"r","nodeId":"n","kind":"approval","key":"k","request":{"kind":"approval","key":"k","data":{"title":"T"}},"createdAt":"2026-11-30T12:00:00.000Z"}]}`,
			func(ctx context.Context, c *Client) (any, error) { return c.ListInterrupts(ctx, PageOptions{Limit: 2}) },
			"GET", "/host/fermata/interrupts?limit=2", "", `"data":{"title":"T"}`,
		},
		"put workflow": {
			201, `{"workflowId":"w","version":"1","digest":"d","createdAt":"2026-11-30T12:00:00.000Z","created":true}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.PutWorkflow(ctx, json.RawMessage(`{ "id": "w",  "big": 1e999 }`))
			},
			"PUT", "/host/fermata/workflows/w", `{ "id": "w",  "big": 1e999 }`, `"created":true`,
		},
		"get workflow": {
			200, `{"id":"w","n":1.0}`,
			func(ctx context.Context, c *Client) (any, error) { return c.GetWorkflow(ctx, "w", "1.0") },
			"GET", "/host/fermata/workflows/w?version=1.0", "", `1.0`,
		},
		"list workflows": {
			200, `{"workflows":[{"workflowId":"w","version":"1","digest":"d","createdAt":"2026-11-30T12:00:00.000Z","created":false}]}`,
			func(ctx context.Context, c *Client) (any, error) { return c.ListWorkflows(ctx, PageOptions{}) },
			"GET", "/host/fermata/workflows", "", `"workflowId":"w"`,
		},
		"list schedules": {
			200, `{"schedules":[{"workflowId":"w","version":"1","triggerId":"t","cron":"@daily","timezone":"UTC","catchUp":"last","overlap":"allow","nextTick":"2026-11-30T00:00:00.000Z"}]}`,
			func(ctx context.Context, c *Client) (any, error) { return c.ListSchedules(ctx, PageOptions{Limit: 5}) },
			"GET", "/host/fermata/schedules?limit=5", "", `"nextTick":"2026-11-30T00:00:00Z"`,
		},
		"validate": {
			200, `{"valid":true,"workflowId":"w","version":"1","digest":"d"}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.ValidateWorkflow(ctx, json.RawMessage(`{}`))
			},
			"POST", "/host/fermata/workflows:validate", `{}`, `"valid":true`,
		},
		"delete": {
			204, ``, func(ctx context.Context, c *Client) (any, error) { return nil, c.DeleteWorkflow(ctx, "w") },
			"DELETE", "/host/fermata/workflows/w", "", `null`,
		},
		"capabilities": {
			200, `{"protocolVersions":["2.0"],"preferredVersion":"2.0","implementation":{"name":"fermata"}}`,
			func(ctx context.Context, c *Client) (any, error) { return c.Capabilities(ctx) },
			"GET", "/.well-known/openwop", "", `"fermata"`,
		},
		"ready": {
			200, `{"ready":true}`, func(ctx context.Context, c *Client) (any, error) { return nil, c.Ready(ctx) },
			"GET", "/host/fermata/ready", "", `null`,
		},
		"poll": {
			200, `{"runId":"` + testRun + `","events":[` + doc(3, "run.failed") + `],"lastSequence":3,"status":"failed","isTerminal":true}`,
			func(ctx context.Context, c *Client) (any, error) {
				return c.Poll(ctx, testRun, PollOptions{After: new(int64(2)), Wait: 1500 * time.Millisecond})
			},
			"GET", at + "/events/poll?afterSequence=2&timeout=2", "", `12345678901234567890.5`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got seen
			c, _ := dial(t, recorder(tc.status, tc.answer, &got), WithUserAgent("test/1"))
			v, err := tc.call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got.method != tc.method || got.uri != tc.path || got.body != tc.body {
				t.Errorf("sent %s %s %s", got.method, got.uri, got.body)
			}
			for name, want := range map[string]string{"Authorization": "Bearer " + testKey, "OpenWOP-Version": "2.0", "User-Agent": "test/1"} {
				if got.header.Get(name) != want {
					t.Errorf("%s: %q", name, got.header.Get(name))
				}
			}
			b, err := json.Marshal(v)
			if err != nil || !strings.Contains(string(b), tc.want) {
				t.Errorf("result %s, %v; want it to hold %s", b, err, tc.want)
			}
		})
	}
}

func TestSnapshotValidator(t *testing.T) {
	var got seen
	c, _ := dial(t, recorder(200, `{"runId":"r","status":"running"}`, &got))
	r, err := c.GetRun(t.Context(), testRun)
	if err != nil || r.ETag != `"e-7"` || string(r.Raw) != `{"runId":"r","status":"running"}` {
		t.Fatalf("%+v, %v", r, err)
	}
	c, _ = dial(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("If-None-Match") == r.ETag {
			w.WriteHeader(http.StatusNotModified)
		}
	}))
	if _, err := c.GetRunIfChanged(t.Context(), testRun, r.ETag); !errors.Is(err, ErrNotModified) {
		t.Errorf("got %v", err)
	}
}

func TestSegment(t *testing.T) {
	for in, want := range map[string]string{
		"tenant/opaque":     "tenant~2Fopaque",
		"anon:a.b_c-d/x~y":  "anon~3Aa.b_c-d~2Fx~7Ey",
		"ü":                 "~C3~BC",
		"../../etc?x=1#%2F": "..~2F..~2Fetc~3Fx~3D1~23~252F",
	} {
		if got := Segment(in); got != want {
			t.Errorf("Segment(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:7411", "ftp://x", "http://", "http://u:secret@x", "http://x?q=1", "http://x#f", "http://[::1"} {
		if _, err := New(bad, ""); err == nil {
			t.Errorf("%q was taken", bad)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats a password: %v", err)
		}
	}
	if _, err := New("http://x", "a key"); err == nil {
		t.Error("a key with white space was taken")
	}
	var got seen
	s := httptest.NewServer(recorder(200, `{"ready":true}`, &got))
	defer s.Close()
	c, _ := dialURL(t, s.URL+"/behind/proxy/")
	if err := c.Ready(t.Context()); err != nil || got.uri != "/behind/proxy/host/fermata/ready" {
		t.Errorf("%q, %v", got.uri, err)
	}
}

func TestRefusals(t *testing.T) {
	body := `{"error":"validation_error","message":"Bad.","details":{"field":"inputs.n","issues":[{"field":"nodes[0]","line":7,"message":"no"}]}}`
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, 400, body) }))
	_, err := c.CreateRun(t.Context(), CreateRunRequest{WorkflowID: "w"})
	var e *Error
	if !errors.As(err, &e) || e.Status != 400 || e.Field() != "inputs.n" || e.Error() != "Bad. (validation_error)" {
		t.Fatalf("got %#v", err)
	}
	if is := e.Issues(); len(is) != 1 || is[0].Line != 7 || is[0].Field != "nodes[0]" {
		t.Errorf("issues %v", is)
	}
	c, _ = dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "<html>proxy</html>") //nolint:errcheck // test
	}))
	_, err = c.GetRun(t.Context(), testRun)
	if !errors.As(err, &e) || e.Code != "" || e.Message != "the host answered 418 I'm a teapot" {
		t.Errorf("got %v", err)
	}
	c, _ = dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") })) //nolint:errcheck // test
	if _, err = c.GetRun(t.Context(), testRun); !errors.Is(err, ErrAnswer) {
		t.Errorf("got %v", err)
	}
}

func TestTheKeyStaysWithTheHost(t *testing.T) {
	leaked := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked += r.Header.Get("Authorization") + "!" }))
	defer other.Close()
	c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }))
	_, err := c.GetRun(t.Context(), testRun)
	if !IsStatus(err, http.StatusFound) {
		t.Errorf("got %v", err)
	}
	if _, err := collect(t, c, StreamOptions{}); !IsStatus(err, http.StatusFound) {
		t.Errorf("got %v", err)
	}
	if leaked != "" {
		t.Errorf("the other host was called: %s", leaked)
	}
}

func TestRepeats(t *testing.T) {
	get := func(ctx context.Context, c *Client) error { _, err := c.GetRun(ctx, testRun); return err }
	post := func(ctx context.Context, c *Client) error {
		_, err := c.CreateRun(ctx, CreateRunRequest{WorkflowID: "w"})
		return err
	}
	newKey := func(ctx context.Context, c *Client) error {
		_, err := c.CreateKey(ctx, NewKey{Scopes: []string{"runs:read"}})
		return err
	}
	put := func(ctx context.Context, c *Client) error {
		_, err := c.PutWorkflow(ctx, json.RawMessage(`{"id":"w"}`))
		return err
	}
	for name, tc := range map[string]struct {
		call   func(context.Context, *Client) error
		status int
		after  string
		calls  int
		waits  []time.Duration
	}{
		"a read":                   {get, 503, "", 4, []time.Duration{200, 400, 800}},
		"a read, asked to wait":    {get, 429, "3", 4, []time.Duration{3000, 3000, 3000}},
		"a read, asked too much":   {get, 429, "3600", 1, nil},
		"a read of a broken host":  {get, 500, "", 1, nil},
		"a read of something gone": {get, 404, "", 1, nil},
		"a put":                    {put, 502, "", 4, []time.Duration{200, 400, 800}},
		"a post":                   {post, 503, "1", 4, []time.Duration{1000, 1000, 1000}},
		"a post at capacity":       {post, 429, "", 4, []time.Duration{200, 400, 800}},
		"a post of a broken host":  {post, 500, "", 1, nil},
		"a post refused":           {post, 409, "", 1, nil},
		"a new key":                {newKey, 503, "", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			c, waits := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Retry-After", tc.after)
				answerJSON(w, tc.status, `{"error":"x","message":"y"}`)
			}))
			if err := tc.call(t.Context(), c); !IsStatus(err, tc.status) {
				t.Errorf("got %v", err)
			}
			if int(calls.Load()) != tc.calls || len(waits.waits) != len(tc.waits) {
				t.Errorf("%d calls, waits %v", calls.Load(), waits.waits)
			}
			for i, w := range waits.waits {
				if w != tc.waits[i]*time.Millisecond {
					t.Errorf("wait %d was %v, want %v", i, w, tc.waits[i]*time.Millisecond)
				}
			}
		})
	}
}

// A post that never left may be sent again: nobody listened at first.
func TestARefusedConnectionIsTriedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c, waits := dialURL(t, "http://"+addr)
	_, err = c.CreateRun(t.Context(), CreateRunRequest{WorkflowID: "w"})
	if !errors.Is(err, ErrUnreachable) || len(waits.waits) != 3 {
		t.Errorf("%v after waits %v", err, waits.waits)
	}
	if strings.Contains(err.Error(), "/runs") {
		t.Errorf("the error is noisy: %v", err)
	}
}

func TestACancelledCallSaysSo(t *testing.T) {
	started := make(chan struct{})
	c, _ := dial(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := c.GetRun(ctx, testRun); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"5": 5 * time.Second, " 5 ": 5 * time.Second, "": 0, "-5": 0, "soon": 0, "99999999999999": 0,
		"Mon, 30 Nov 2026 12:00:09 GMT": 9 * time.Second, "Mon, 30 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(in, now); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

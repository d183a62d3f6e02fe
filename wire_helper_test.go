package fermata_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/schema"
)

// hang ends a test that would wait for ever. Nothing is measured by it.
const hang = 30 * time.Second

// conforms holds an answer against what the route table says of it: the schema
// of the row, the closed error envelope, the version header. The harness calls
// it for every request of every test.
func (s *server) conforms(method, path string, a answer) {
	s.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	if s.isV1(path, a) {
		s.conformsV1(method, path, a)
		return
	}
	route, _, _ := api.NewTable(s.host.Routes()).Match(method, path)
	want := ""
	seam := s.cfg.ConformanceSeams && strings.HasPrefix(path, "/conformance/seams/")
	if !seam && (route == nil || route.Protocol) {
		want = "2.0"
	}
	if got := a.header.Get("OpenWOP-Version"); got != want {
		s.t.Errorf("%s %s: OpenWOP-Version %q, want %q", method, path, got, want)
	}
	name := ""
	switch {
	case method == "HEAD" || a.status == 304 || a.status == 204:
		if len(a.body) > 0 {
			s.t.Errorf("%s %s: %d with a body", method, path, a.status)
		}
	case a.status >= 400:
		name = "error-envelope"
		if ct := a.header.Get("Content-Type"); ct != "application/json" {
			s.t.Errorf("%s %s: a refusal as %q", method, path, ct)
		}
	case route != nil && route.Returns[a.status].Description == "":
		s.t.Errorf("%s %s: the row has no answer %d", method, path, a.status)
	case route != nil:
		name = route.Returns[a.status].Schema
	}
	if name == "" || name[0] == '{' {
		return
	}
	if err := schema.Validate(name, a.body); err != nil {
		s.t.Errorf("%s %s: %v\n%.2000s", method, path, err, a.body)
	}
	if name == "poll-response" {
		var page struct{ Events []json.RawMessage }
		if err := json.Unmarshal(a.body, &page); err != nil {
			s.t.Error(err)
		}
		for _, e := range page.Events {
			validEvent(s.t, e)
		}
	}
}

// event is what tests look at of a RunEventDoc.
type event struct {
	Sequence int64           `json:"sequence"`
	Type     string          `json:"type"`
	NodeID   string          `json:"nodeId"`
	Payload  json.RawMessage `json:"payload"`
}

// validEvent holds an event against the envelope and the payload schema of its type.
func validEvent(t testing.TB, doc []byte) event {
	t.Helper()
	var e event
	if err := json.Unmarshal(doc, &e); err != nil {
		t.Fatalf("not an event: %v\n%s", err, doc)
	}
	if err := schema.Validate("run-event", doc); err != nil {
		t.Errorf("event %d %s: %v\n%.2000s", e.Sequence, e.Type, err, doc)
	}
	if err := schema.ValidatePayload(e.Type, e.Payload); err != nil {
		t.Errorf("payload of %d %s: %v\n%.2000s", e.Sequence, e.Type, err, doc)
	}
	return e
}

// frame is one server-sent event; a comment has only that.
type frame struct {
	id, name, comment string
	data              []byte
}

// seq is a frame's id as a sequence; -1 for a frame without one.
func (f frame) seq(t testing.TB) int64 {
	t.Helper()
	if f.id == "" {
		return -1
	}
	n, err := strconv.ParseInt(f.id, 10, 64)
	if err != nil {
		t.Fatalf("frame id %q is no sequence", f.id)
	}
	return n
}

// subscription is one open stream.
type subscription struct {
	t      testing.TB
	header http.Header
	body   *bufio.Reader
	close  func()
}

// subscribe opens a run's stream and wants a 200.
func (s *server) subscribe(id, query string, header ...string) *subscription {
	s.t.Helper()
	return s.subscribeAt("/runs/"+seg(id)+"/events"+query, header...)
}

// subscribeAt opens the stream at a path, and wants a 200.
func (s *server) subscribeAt(path string, header ...string) *subscription {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	req, err := http.NewRequestWithContext(ctx, "GET", s.http.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != 200 {
		b, _ := io.ReadAll(res.Body)
		s.t.Fatalf("stream %s: %d %s", path, res.StatusCode, b)
	}
	sub := &subscription{t: s.t, header: res.Header, body: bufio.NewReader(res.Body), close: func() { cancel(); res.Body.Close() }}
	s.t.Cleanup(sub.close)
	return sub
}

// next reads a frame; false at the end of the stream.
func (s *subscription) next() (frame, bool) {
	s.t.Helper()
	var f frame
	for {
		line, err := s.body.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" && f.name == "" && f.comment == "" {
			return f, false
		}
		if err != nil {
			s.t.Fatalf("the stream broke off: %v (%q)", err, line)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n":
			return f, true
		case strings.HasPrefix(line, ":"):
			f.comment = value
		case name == "id":
			f.id = value
		case name == "event":
			f.name = value
		case name == "data":
			f.data = []byte(value)
		default:
			s.t.Fatalf("unexpected line %q", line)
		}
	}
}

// frames reads all frames to the end of the stream, without comments.
func (s *subscription) frames() []frame {
	s.t.Helper()
	var out []frame
	for {
		f, ok := s.next()
		if !ok {
			return out
		}
		if f.name != "" {
			out = append(out, f)
		}
	}
}

// docs reads a run's whole log through poll, as exact bytes.
func (s *server) docs(id string) []json.RawMessage {
	s.t.Helper()
	a := s.do("GET", "/runs/"+seg(id)+"/events/poll?timeout=1", nil).want(s.t, 200)
	var page struct{ Events []json.RawMessage }
	if err := json.Unmarshal(a.body, &page); err != nil {
		s.t.Fatal(err)
	}
	return page.Events
}

// key gives another tenant, or narrower scopes, a key.
func (s *server) key(key, tenant string, scopes ...string) string {
	s.t.Helper()
	if err := s.host.AddTestKey(context.Background(), key, tenant, scopes...); err != nil {
		s.t.Fatal(err)
	}
	return "Bearer " + key
}

// as is the same host for a subtest, which must fail by itself.
func (s *server) as(t testing.TB) *server {
	c := *s
	c.t = t
	return &c
}

// gate is a workflow that waits for an approval, with a node before and after.
func gate(id string) map[string]any {
	return flow(id, []any{
		step("before", "core.noop", nil), step("ok", "core.approvalGate", map[string]any{
			"title": "Go on?", "actions": []string{"accept", "reject", "edit-accept"},
		}), step("after", "core.noop", nil),
	}, []any{edge("before", "ok"), edge("ok", "after")})
}

func withLimits(l fermata.Limits) func(*fermata.Config) {
	return func(c *fermata.Config) { c.Limits = l }
}

// batch reads the events of a batch frame.
func (s *server) batch(f frame) []event {
	s.t.Helper()
	var docs []json.RawMessage
	if err := json.Unmarshal(f.data, &docs); err != nil || f.name != "batch" || len(docs) == 0 {
		s.t.Fatalf("frame %q %s: %v", f.name, f.data, err)
	}
	var out []event
	for _, d := range docs {
		out = append(out, validEvent(s.t, d))
	}
	return out
}

package fermata_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Whatever is sent, the answer is a success or a refusal of the contract, never
// a fault of the host.
func TestWireHostileRequests(t *testing.T) {
	t.Parallel()
	hostile(t, start(t))
}

// The same on a host that serves both majors.
func TestV1HostileRequests(t *testing.T) {
	t.Parallel()
	hostile(t, start(t, withV1))
}

func hostile(t *testing.T, s *server) {
	s.register(gate("gate"))
	id := s.run("gate")
	s.await(id, "waiting-approval")
	words := []string{
		id[strings.IndexByte(id, '/')+1:], "gate", "ok", seg(id), id, "default", "~2F", "/", "%", "\x00", "\xff", "é", "\U0010ffff", "\u2028", "'", `"`, "--", "{}", "[]", "null", "0", "-1", "1e400",
		"runs", "events", "poll", ":pause", ":resume", "*", "..", ".", " ", "+", strings.Repeat("a", 300), "true", "updates", "9223372036854775807",
	}
	names := []string{"limit", "cursor", "status", "workflowId", "timeout", "afterSequence", "streamMode", "bufferMs", "version"}
	members := []string{"workflowId", "inputs", "tags", "metadata", "configurable", "reason", "drainPolicy", "runIds", "resumeValue", "id", "nodes", "edges", "version"}
	values := []string{`"gate"`, `{}`, `[]`, `null`, `-0`, `1e400`, `true`, `"\u0000"`, `"\ud83d\ude00"`, `{"version":1}`, `["x"]`, `[null]`, `{"action":"ask"}`, `{"a":{"b":[{}]}}`, `""`, "\"\xff\""}
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[rnd.IntN(len(from))] }
	handler := s.host.Handler()
	for i := range 4000 {
		route := s.host.Routes()[rnd.IntN(len(s.host.Routes()))]
		if route.Stream && rnd.IntN(20) > 0 {
			continue
		}
		p := route.Pattern
		for strings.Contains(p, "{") {
			from, to := strings.IndexByte(p, '{'), strings.IndexByte(p, '}')
			p = p[:from] + url.PathEscape(pick(words)) + p[to+1:]
		}
		q := url.Values{}
		for range rnd.IntN(3) {
			q.Add(pick(names), pick(words))
		}
		if route.Stream {
			q.Set("timeout", "1")
			q.Set("afterSequence", "x") // never one that waits
			q.Set("streamMode", "x")
		}
		var body strings.Builder
		body.WriteString("{")
		for n := range rnd.IntN(4) {
			if n > 0 {
				body.WriteString(",")
			}
			fmt.Fprintf(&body, "%q:%s", pick(members), pick(values))
		}
		body.WriteString([]string{"}", "}", "}", "", "}}", "]"}[rnd.IntN(6)])
		r := httptest.NewRequest("GET", "/", strings.NewReader(body.String()))
		r.Method = route.Method
		r.URL = &url.URL{Path: p, RawQuery: q.Encode()}
		if un, err := url.PathUnescape(p); err == nil {
			r.URL.Path, r.URL.RawPath = un, p
		}
		r.Header.Set("Authorization", "Bearer "+testKey)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set([]string{"If-None-Match", "Last-Event-ID", "OpenWOP-Version", "X"}[rnd.IntN(4)], pick(words))
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() { handler.ServeHTTP(w, r); close(done) }()
		select {
		case <-done:
		case <-time.After(hang):
			t.Fatalf("%d: %s %s %s: no answer", i, r.Method, r.URL, body.String())
		}
		if w.Code >= 500 && (route.Wire == "" || w.Code != http.StatusNotImplemented) {
			t.Errorf("%d: %s %s %s: %d %s", i, r.Method, r.URL, body.String(), w.Code, w.Body)
		}
		s.conforms(r.Method, p, answer{status: w.Code, header: w.Header(), body: w.Body.Bytes()})
	}
}

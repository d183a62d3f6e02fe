package fermata_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// oldClient acts as the clients do that were written for hosts of v1 years ago: it names no
// version, sends what v1's text documents and nothing else, reads the members that it knows
// and is deaf to the rest, and sends again what it has had no answer to.
type oldClient struct {
	s    *server
	lose int // answers that are lost on the way, the next ones
}

var errLost = errors.New("the connection was cut before the answer came")

// try sends one request, whose answer may be lost.
func (c *oldClient) try(method, path string, body any, header ...string) (answer, error) {
	c.s.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			c.s.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.s.http.URL+path, bytes.NewReader(text))
	if err != nil {
		c.s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", "application/json") // on a GET as well: they have one function for all
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.s.t.Fatal(err)
	}
	if c.lose > 0 {
		c.lose--
		return answer{}, errLost
	}
	a := answer{status: res.StatusCode, header: res.Header, body: b}
	_ = json.Unmarshal(b, &a.json) // an answer that is no object has no members
	c.s.conforms(method, path, a)
	return a, nil
}

// call sends a request until an answer comes.
func (c *oldClient) call(method, path string, body any, header ...string) answer {
	c.s.t.Helper()
	for range 5 {
		if a, err := c.try(method, path, body, header...); err == nil {
			return a
		}
	}
	c.s.t.Fatalf("%s %s: no answer", method, path)
	return answer{}
}

func (c *oldClient) create(workflow, key string) string {
	c.s.t.Helper()
	id := c.call("POST", "/v1/runs", map[string]any{"workflowId": workflow}, "Idempotency-Key", key).want(c.s.t, 201).str("runId")
	if id == "" || strings.ContainsAny(id, "/~") {
		c.s.t.Fatalf("run id %q", id)
	}
	return id
}

// runs counts those of a workflow, as this major lists them.
func (s *server) runs(workflow string) int {
	s.t.Helper()
	n := 0
	for _, r := range s.do("GET", "/runs?limit=200", nil).want(s.t, 200).json["runs"].([]any) {
		if r.(map[string]any)["workflowId"] == workflow {
			n++
		}
	}
	return n
}

// oldEvent is what is read of an event.
type oldEvent struct {
	Type     string `json:"type"`
	Sequence *int   `json:"sequence"`
	NodeID   string `json:"nodeId"`
}

func (e oldEvent) String() string { return fmt.Sprint(*e.Sequence, " ", e.Type, " ", e.NodeID) }

func named(events []oldEvent) []string { return inWords(events, oldEvent.String) }

// inWords are events in the words of say, without those of which it says nothing.
func inWords(events []oldEvent, say func(oldEvent) string) []string {
	out := []string{}
	for _, e := range events {
		if word := say(e); word != "" {
			out = append(out, word)
		}
	}
	return out
}

// watcher is an EventSource: it reads lines as WHATWG's text wants them read, remembers the
// last id, and brings it when it connects again.
type watcher struct {
	c      *oldClient
	path   string
	lastID string
}

// read connects and reads events until show says that it is enough, whereupon it cuts the
// connection, or until the host ends the stream, which it reports.
func (x *watcher) read(show func(oldEvent) (enough bool)) (ended bool) {
	x.c.s.t.Helper()
	ctx, cut := context.WithTimeout(context.Background(), hang)
	defer cut()
	req, err := http.NewRequestWithContext(ctx, "GET", x.c.s.http.URL+x.path, nil)
	if err != nil {
		x.c.s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Cache-Control", "no-cache")
	if x.lastID != "" {
		req.Header.Set("Last-Event-ID", x.lastID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		x.c.s.t.Fatal(err)
	}
	defer res.Body.Close()
	if ct := res.Header.Get("Content-Type"); res.StatusCode != 200 || !strings.HasPrefix(ct, "text/event-stream") {
		x.c.s.t.Fatalf("%s: %d %s", x.path, res.StatusCode, ct)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	var id, name, data string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data += value
		case "":
			if lines.Text() != "" || data == "" { // a comment, or nothing to tell
				continue
			}
			x.lastID = id
			for _, e := range x.events(name, data) {
				if show(e) {
					return false
				}
			}
			name, data = "", ""
		}
	}
	if err := lines.Err(); err != nil {
		x.c.s.t.Fatalf("%s broke off: %v", x.path, err)
	}
	return true
}

func (x *watcher) events(name, data string) []oldEvent {
	x.c.s.t.Helper()
	if name != "batch" {
		data = "[" + data + "]"
	}
	var out []oldEvent
	if err := json.Unmarshal([]byte(data), &out); err != nil {
		x.c.s.t.Fatalf("frame %s: %v: %s", name, err, data)
	}
	for _, e := range out {
		if e.Sequence == nil || name != "batch" && name != e.Type {
			x.c.s.t.Errorf("frame %q of %s", name, data)
		}
	}
	return out
}

// pages follows a run with polls, each from behind the last event it was shown, until the
// host says that there is no more.
func (c *oldClient) pages(id string, seen func(oldEvent)) (all []oldEvent) {
	c.s.t.Helper()
	at := "/v1/runs/" + id + "/events/poll?timeout=1"
	query := ""
	for range 100 {
		var page struct {
			Events     []oldEvent `json:"events"`
			IsComplete bool       `json:"isComplete"`
		}
		if err := json.Unmarshal(c.call("GET", at+query, nil).want(c.s.t, 200).body, &page); err != nil {
			c.s.t.Fatal(err)
		}
		for _, e := range page.Events {
			all = append(all, e)
			query = "&lastSequence=" + strconv.Itoa(*e.Sequence)
			seen(e)
		}
		if page.IsComplete {
			return all
		}
	}
	c.s.t.Fatal("the run does not end")
	return nil
}

package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// frame is one server-sent event.
type frame struct {
	id, name string
	data     []byte
}

// seq is the frame's id as a sequence; -1 if it has none.
func (f frame) seq() int64 {
	n, err := strconv.ParseInt(f.id, 10, 64)
	if err != nil || f.id == "" {
		return -1
	}
	return n
}

// stream is an open event stream.
type stream struct {
	p      *probe
	path   string
	header http.Header
	lines  *bufio.Reader
	cancel context.CancelFunc
	body   io.Closer
}

// streamAnswer asks for a stream. What is no 200 comes back as an answer, with
// a nil stream.
func (p *probe) streamAnswer(id, query string, header ...string) (*stream, answer) {
	path := p.placed(at(id) + "/events" + query)
	ctx, cancel := context.WithCancel(p.ctx)
	res, err := p.open(ctx, "GET", path, nil, append([]string{"Accept", "text/event-stream"}, header...)...)
	if err != nil {
		cancel()
		p.fail("GET %s: no answer: %v", path, err)
	}
	a := answer{method: "GET", path: path, status: res.StatusCode, header: res.Header}
	if res.StatusCode != 200 {
		a.body, _ = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		res.Body.Close()
		cancel()
		p.keep(a)
		return nil, a
	}
	p.keep(a)
	return &stream{p: p, path: path, header: res.Header, lines: bufio.NewReader(res.Body), cancel: cancel, body: res.Body}, a
}

// subscribe wants an open stream.
func (p *probe) subscribe(id, query string, header ...string) *stream {
	s, a := p.streamAnswer(id, query, header...)
	p.want(s != nil, "%s answered %s, want 200", a.line(), a.brief())
	return s
}

func (s *stream) close() {
	s.cancel()
	s.body.Close()
}

// next reads a frame; false at the end of the stream.
func (s *stream) next() (frame, bool) {
	var f frame
	var data []string
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) && line == "" && f.name == "" && data == nil {
				return f, false
			}
			if s.p.ctx.Err() != nil || errors.Is(err, context.Canceled) {
				s.p.fail("GET %s: the stream was not over in time", s.path)
			}
			s.p.fail("GET %s: the stream broke off: %v", s.path, err)
		}
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil || f.name != "" {
				f.data = []byte(strings.Join(data, "\n"))
				return f, true
			}
		case name == "": // a comment
		case name == "id":
			f.id = value
		case name == "event":
			f.name = value
		case name == "data":
			data = append(data, value)
		}
	}
}

// comment waits for a comment; false if the stream is cut off or ends before.
func (s *stream) comment() bool {
	defer s.close()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return false
		}
		if strings.HasPrefix(line, ":") {
			return true
		}
	}
}

// rest reads all frames to the end of the stream, which the host must make.
func (s *stream) rest() []frame {
	defer s.close()
	var out []frame
	for len(out) < 100_000 {
		f, ok := s.next()
		if !ok {
			return out
		}
		out = append(out, f)
	}
	s.p.fail("GET %s: more than 100000 frames", s.path)
	return nil
}

// until cuts a stream off if it has not been closed by then, so that a host
// that keeps silent is caught. The guard is far longer than any answer takes.
func (s *stream) until(d time.Duration) *stream {
	t := time.AfterFunc(d, s.cancel)
	stop := s.cancel
	s.cancel = func() { t.Stop(); stop() }
	return s
}

func (p *probe) frames(id, query string, header ...string) []frame {
	return p.subscribe(id, query, header...).until(10 * time.Second).rest()
}

// sequences are the ids of frames.
func sequences(fs []frame) []int64 {
	out := make([]int64, len(fs))
	for i, f := range fs {
		out[i] = f.seq()
	}
	return out
}

// event is what the checks look at of a run event.
type event struct {
	EventID   string          `json:"eventId"`
	RunID     string          `json:"runId"`
	NodeID    string          `json:"nodeId"`
	Type      string          `json:"type"`
	Sequence  int64           `json:"sequence"`
	Payload   json.RawMessage `json:"payload"`
	Timestamp string          `json:"timestamp"`

	doc json.RawMessage
}

// field reads a member of the payload.
func (e *event) field(name string) json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(e.Payload, &m)
	return m[name]
}

func (p *probe) event(doc []byte) event {
	var e event
	if err := json.Unmarshal(doc, &e); err != nil {
		p.fail("not an event: %v: %.200s", err, doc)
	}
	e.doc = doc
	return e
}

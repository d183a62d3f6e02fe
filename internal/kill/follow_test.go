package kill

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
)

// follow reads a run's event stream to its end, resuming behind the last event
// whenever the host is gone.
func (w *load) follow(id string) {
	defer w.follower.Done()
	defer w.streams.Add(-1)
	next := 0
	for deadline := time.Now().Add(10 * patience); time.Now().Before(deadline); {
		if !w.h.wait(w.over) {
			return
		}
		if w.stream(id, &next) {
			return
		}
		select {
		case <-w.over:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// stream reads one connection's frames; true if the run's last event came.
func (w *load) stream(id string, next *int) (over bool) {
	w.h.mu.Lock()
	url := w.h.url
	w.h.mu.Unlock()
	if url == "" {
		return false
	}
	req, err := request("GET", url+"/runs/"+segment(id)+"/events?streamMode=debug", nil)
	if err != nil {
		return false
	}
	if *next > 0 {
		req.Header.Set("Last-Event-ID", strconv.Itoa(*next-1))
	}
	res, err := w.h.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		w.l.t.Errorf("stream of %s: %d", id, res.StatusCode)
		return false
	}
	over, err = w.frames(id, res.Body, next)
	if err == nil && !over {
		w.l.t.Errorf("the stream of %s came to an end after event %d, and the run goes on", id, *next-1)
	}
	return over
}

// frames reads frames as long as they come. The error says that the connection
// was cut off; without one the host has ended the stream.
func (w *load) frames(id string, r io.Reader, next *int) (over bool, err error) {
	in := bufio.NewReader(r)
	at, name := -1, ""
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			return over, nil
		}
		if err != nil {
			return over, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			if at, err = strconv.Atoi(value); err != nil || at != *next {
				w.l.t.Errorf("stream of %s: id %s where %d comes next", id, value, *next)
			}
		case "event":
			name = value
		case "data":
			if over {
				w.l.t.Errorf("stream of %s: %s after the last event", id, name)
			}
			w.l.show(id, at, []json.RawMessage{json.RawMessage(value)})
			*next = at + 1
			over = strings.HasPrefix(name, "run.") && terminal(strings.TrimPrefix(name, "run."))
		}
	}
}

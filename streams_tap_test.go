package fermata_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/node"
)

// long picks the short form of a test, or the long one where FERMATA_LONG is set.
func long(short, full int) int {
	if os.Getenv("FERMATA_LONG") != "" {
		return full
	}
	return short
}

// speaker is a node type that streams whatever a test tells it to, and completes
// when there is no more.
func speaker(say <-chan string) node.Type {
	return node.Type{ID: "test.speaker", Run: func(ctx context.Context, in *node.Input) (node.Result, error) {
		for {
			select {
			case text, ok := <-say:
				if !ok {
					return node.Done(nil), nil
				}
				if err := in.Services.Chunk(text, false); err != nil {
					return node.Result{}, err
				}
			case <-ctx.Done():
				return node.Result{}, ctx.Err()
			}
		}
	}}
}

// tap reads one run's stream in a goroutine of its own. It reports what is wrong
// as an error, since only a test's own goroutine may end the test.
type tap struct {
	next int64 // the sequence that must come
	last string
	body io.ReadCloser
	in   *bufio.Reader
}

// open connects; after a first connection it resumes where it was.
func (p *tap) open(client *http.Client, s *server, id string) error {
	req, err := http.NewRequest("GET", s.http.URL+"/runs/"+seg(id)+"/events?streamMode=debug", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	if p.next > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(p.next-1, 10))
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return fmt.Errorf("status %d: %s", res.StatusCode, b)
	}
	p.body, p.in = res.Body, bufio.NewReader(res.Body)
	return nil
}

// step reads up to the next event; io.EOF at the end of the stream.
func (p *tap) step() error {
	id := ""
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return err
		}
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = strings.TrimSpace(v)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Sequence int64  `json:"sequence"`
			Type     string `json:"type"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("not an event: %w", err)
		}
		if e.Sequence != p.next || id != strconv.FormatInt(e.Sequence, 10) {
			return fmt.Errorf("event %d with id %s, want %d", e.Sequence, id, p.next)
		}
		p.next, p.last = p.next+1, e.Type
		return nil
	}
}

// toEnd reads until the stream ends, which it must not do before the run does.
func (p *tap) toEnd() error {
	for {
		if err := p.step(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	if !terminalType(p.last) {
		return fmt.Errorf("the stream ended after %s, event %d", p.last, p.next-1)
	}
	return p.body.Close()
}

func terminalType(s string) bool {
	return s == "run.completed" || s == "run.failed" || s == "run.cancelled"
}

// crowd is a client for many streams at once.
func crowd(t testing.TB) *http.Client {
	tr := &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true, ReadBufferSize: 4 << 10, WriteBufferSize: 1 << 10}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

package kill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// host is a data folder and the process that serves it, if one lives.
type host struct {
	t      testing.TB
	binary string
	dir    string
	flags  []string
	client *http.Client

	mu   sync.Mutex
	live *process
	url  string        // empty while nobody listens
	up   chan struct{} // closed while somebody does
}

func newHost(t testing.TB, flags ...string) *host {
	t.Helper()
	h := &host{t: t, binary: binary(t), dir: t.TempDir(), up: make(chan struct{})}
	h.flags = backend(t, h.dir, flags)
	h.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}, Timeout: patience}
	t.Cleanup(func() {
		h.kill()
		h.client.CloseIdleConnections()
	})
	return h
}

// begin starts a process without waiting for it to listen.
func (h *host) begin() *process {
	h.t.Helper()
	p, err := launch(h.binary, h.dir, h.flags...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	h.live = p
	h.mu.Unlock()
	return p
}

// start starts a process and waits until it answers.
func (h *host) start() {
	h.t.Helper()
	addr, err := h.begin().address()
	if err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	h.url = "http://" + addr
	h.mu.Unlock()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if r, err := h.call("GET", "/host/fermata/ready", nil); err == nil && r.status == 200 {
			break
		} else if time.Now().After(deadline) {
			h.t.Fatalf("the host is never ready: %v %v", r, err)
		}
	}
	h.mu.Lock()
	close(h.up)
	h.mu.Unlock()
}

// down forgets the process: callers wait for the next one.
func (h *host) down() *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.live
	if h.url != "" {
		h.url, h.up = "", make(chan struct{})
	}
	h.live = nil
	return p
}

// kill ends the process with SIGKILL. It must not have ended before.
func (h *host) kill() {
	p := h.down()
	if p == nil {
		return
	}
	select {
	case <-p.ended:
		h.t.Errorf("the host ended by itself: %v\n%s", p.err, p.out.tail())
	default:
	}
	p.kill()
	h.client.CloseIdleConnections()
	for _, line := range p.out.complaints() {
		h.t.Errorf("the host complained: %s", line)
	}
}

// errDown says that no host was there to be asked.
var errDown = errors.New("nobody listens")

// wait returns once a host listens; false if quit closes first.
func (h *host) wait(quit <-chan struct{}) bool {
	h.mu.Lock()
	up := h.up
	h.mu.Unlock()
	select {
	case <-up:
		return true
	case <-quit:
		return false
	}
}

type reply struct {
	status int
	body   []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// call makes one request. An error means that its outcome is not known.
func (h *host) call(method, path string, body any) (reply, error) {
	h.mu.Lock()
	url := h.url
	h.mu.Unlock()
	if url == "" {
		return reply{}, errDown
	}
	req, err := request(method, url+path, body)
	if err != nil {
		return reply{}, err
	}
	res, err := h.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, b}, err
}

func request(method, url string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, url, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// get reads a document that must be there, while nobody kills.
func (h *host) get(path string, into any) {
	h.t.Helper()
	r, err := h.call("GET", path, nil)
	if err != nil || r.status != 200 {
		h.t.Fatalf("GET %s: %v %v", path, r, err)
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		h.t.Fatalf("GET %s: %v\n%s", path, err, r.body)
	}
}

// segment is a run id as one segment of a path.
func segment(id string) string { return strings.ReplaceAll(id, "/", "~2F") }

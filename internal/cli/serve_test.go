package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-run/fermata/client"
)

var listening = regexp.MustCompile(`is listening on (http://127\.0\.0\.1:\d+)\n`)

// serving waits until a host says where it listens.
func (w *world) serving() string {
	w.t.Helper()
	w.saw(w.out, "  mode  ")
	m := listening.FindStringSubmatch(w.out.String())
	if m == nil {
		w.t.Fatalf("no address in %s", w.out)
	}
	return m[1]
}

func TestServe(t *testing.T) {
	w := newWorld(t)
	flows := filepath.Join(w.home, "flows")
	w.file("flows/echo.json", echo("1"))
	w.file("flows/broken.json", "{\n\n oops")
	data := filepath.Join(w.home, "deep", "data")
	done := w.start("serve", "--listen", "127.0.0.1:0", "--data", data, "--workflows", flows)
	url := w.serving()
	w.saw(w.out, "1 workflow from "+flows)
	w.saw(w.err, "warning: ")
	w.saw(w.err, "refused\n")
	contains(t, w.out.String(), "API        "+url+"/", url+"/.well-known/openwop", data)
	contains(t, w.err.String(), filepath.Join(flows, "broken.json")+":3: ", "warning: 1 file in "+flows+" refused")

	// The key is shown, works, and can be used at once.
	_, rest, _ := strings.Cut(w.out.String(), "API key    ")
	key, _, _ := strings.Cut(rest, "\n")
	other := newWorld(t)
	other.vars["FERMATA_SERVER"], other.vars["FERMATA_API_KEY"] = url, key
	contains(t, other.must("runs", "start", "echo", "-i", "n=3", "--watch"), `"n": 3`)

	w.signals <- syscall.SIGTERM
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}

	// The next start shows no key.
	done = w.start("serve", "--listen", "127.0.0.1:0", "--data", data)
	w.serving()
	w.signals <- os.Interrupt
	w.wait(done)
	if strings.Contains(w.out.String(), "API key") {
		t.Errorf("a key is shown again: %s", w.out)
	}
}

func TestServeStrictly(t *testing.T) {
	w := newWorld(t)
	w.file("flows/bad.json", `{"id":"x"}`)
	code := w.run("serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(w.home, "d"), "--workflows", filepath.Join(w.home, "flows"), "--strict")
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "bad.json:1: name: is required", "and --strict is given")
}

func TestServeRefusals(t *testing.T) {
	w := newWorld(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, tc := range map[string]struct {
		args []string
		env  string
		code int
		want string
	}{
		"open to all by the environment": {nil, "0.0.0.0:0", 2, `"0.0.0.0:0" can be reached by other machines, so it must be given by --listen`},
		"taken":                          {[]string{"--listen", busy.Addr().String()}, "", 1, "cannot listen"},
		"bad setting":                    {[]string{"--max-calls", "x"}, "", 2, `max-calls: "x" is not`},
		"no folder":                      {[]string{"--workflows", "/nowhere", "--listen", "127.0.0.1:0"}, "", 1, "/nowhere"},
		"an argument":                    {[]string{"now"}, "", 2, "`fermata serve` cannot use \"now\""},
	} {
		t.Run(name, func(t *testing.T) {
			w.vars["FERMATA_LISTEN"] = tc.env
			f := &fakeHost{handler: http.NotFoundHandler()}
			w.open = f.open
			if code := w.run(append([]string{"serve"}, tc.args...)...); code != tc.code {
				t.Errorf("exit %d", code)
			}
			contains(t, w.err.String(), tc.want)
			if f.started && !f.stopped {
				t.Error("the host was not stopped")
			}
		})
	}
}

// Whatever goes wrong after the key was made, the key is shown: it cannot be
// had again.
func TestServeAlwaysShowsTheKey(t *testing.T) {
	w := newWorld(t)
	f := &fakeHost{handler: http.NotFoundHandler(), key: "fermata_made-for-this-test", fail: errors.New("no start today")}
	w.open = f.open
	if code := w.run("serve", "--listen", "127.0.0.1:0"); code != 1 {
		t.Errorf("exit %d", code)
	}
	contains(t, w.out.String(), "fermata_made-for-this-test")
	contains(t, w.err.String(), "no start today")
	if !f.stopped {
		t.Error("the host was not stopped")
	}
}

func TestServeOnAllAddressesWarns(t *testing.T) {
	w := newWorld(t)
	f := &fakeHost{handler: http.NotFoundHandler()}
	w.open = f.open
	done := w.start("serve", "--listen", "0.0.0.0:0", "--allow-egress", "10.0.0.0/8")
	w.saw(w.out, "is listening on")
	w.signals <- os.Interrupt
	w.wait(done)
	contains(t, w.err.String(), "a protection is relaxed", `"setting":"listen"`, `"setting":"allow-egress"`, `"relaxation":"egress-private-ranges"`)
	contains(t, w.out.String(), "mode       development", "relaxed    nodes may call 10.0.0.0/8, which is closed otherwise (--allow-egress)")
}

// An open stream must not keep the host from stopping: its stop ends them.
func TestServeStopsWithOpenStreams(t *testing.T) {
	w := newWorld(t)
	end := make(chan struct{})
	f := &fakeHost{onStop: func(context.Context) { close(end) }, handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(rw, ": open\n\n")
		rw.(http.Flusher).Flush()
		<-end
	})}
	w.open = f.open
	done := w.start("serve", "--listen", "127.0.0.1:0", "--shutdown-grace", "50s")
	resp, err := http.Get(w.serving())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != ": open\n" {
		t.Fatalf("%q, %v", line, err)
	}
	w.signals <- syscall.SIGTERM
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
}

// A handler that never ends is cut off when the grace is over.
func TestServeCutsOffWhatStays(t *testing.T) {
	w := newWorld(t)
	inside, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	f := &fakeHost{handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-release
	})}
	w.open = f.open
	done := w.start("serve", "--listen", "127.0.0.1:0", "--shutdown-grace", "100ms")
	url := w.serving()
	go http.Get(url) //nolint:errcheck,bodyclose // it is cut off
	<-inside
	w.signals <- syscall.SIGTERM
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
}

// A host that is told to stop says so first, if it is to, while its port is open and
// nothing has been stopped.
func TestServeGivesNotice(t *testing.T) {
	for notice, want := range map[string]bool{"0s": false, "1ms": true} {
		w := newWorld(t)
		f := &fakeHost{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })}
		w.open = f.open
		done := w.start("serve", "--listen", "127.0.0.1:0", "--shutdown-notice", notice)
		url := w.serving()
		left := false
		f.onLeave = func() {
			left = true
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.stopped {
				t.Error("it was stopped before")
			}
			resp, err := http.Get(url)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		}
		w.signals <- syscall.SIGTERM
		if code := w.wait(done); code != 0 || left != want {
			t.Errorf("notice of %s: exit %d, said %v: %s", notice, code, left, w.err)
		}
	}
}

// timed records the deadlines a handler's body was given.
type timed struct {
	http.ResponseWriter
	set []time.Time
}

func (t *timed) SetReadDeadline(at time.Time) error {
	t.set = append(t.set, at)
	return nil
}

func TestSlowBodies(t *testing.T) {
	w := &timed{}
	body := io.NopCloser(io.MultiReader(strings.NewReader("a"), strings.NewReader("b")))
	r, _ := http.NewRequest("POST", "/", body)
	r.ContentLength = -1 // unknown, as a server sees it
	slowBodies{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if b, err := io.ReadAll(r.Body); err != nil || string(b) != "ab" {
			t.Errorf("%q, %v", b, err)
		}
	})}.ServeHTTP(w, r)
	n := len(w.set)
	if n < 3 || !w.set[n-1].IsZero() {
		t.Fatalf("deadlines %v", w.set)
	}
	for i, at := range w.set[:n-1] {
		if at.IsZero() {
			t.Errorf("piece %d had no deadline", i)
		}
	}
	w.set = nil
	r, _ = http.NewRequest("GET", "/", nil)
	slowBodies{http.NotFoundHandler()}.ServeHTTP(&timed{ResponseWriter: noWriter{}}, r)
	if len(w.set) > 0 {
		t.Errorf("a request without a body was given deadlines %v", w.set)
	}
}

type noWriter struct{}

func (noWriter) Header() http.Header         { return http.Header{} }
func (noWriter) Write(b []byte) (int, error) { return len(b), nil }
func (noWriter) WriteHeader(int)             {}

// The deadline of a body must not end the stream that follows it.
func TestStreamsOutliveTheirBody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rounds := make(chan struct{})
	srv := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // test
		fmt.Fprint(w, "begun\n")
		w.(http.Flusher).Flush()
		select {
		case <-rounds:
			fmt.Fprint(w, "done\n")
		case <-r.Context().Done():
		}
	}), discardLog())
	go srv.Serve(l) //nolint:errcheck // closed below
	defer srv.Close()
	resp, err := http.Post("http://"+l.Addr().String(), "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	if s, err := in.ReadString('\n'); err != nil || s != "begun\n" {
		t.Fatalf("%q, %v", s, err)
	}
	close(rounds)
	if s, err := in.ReadString('\n'); err != nil || s != "done\n" {
		t.Errorf("%q, %v", s, err)
	}
}

// Streams survive a restart of the host they follow.
func TestEventsAcrossARestart(t *testing.T) {
	w := newWorld(t)
	w.vars["FERMATA_BOOTSTRAP_KEY"] = testKey
	data := filepath.Join(w.home, "d")
	w.file("flows/gate.json", gate())
	args := []string{"serve", "--data", data, "--workflows", filepath.Join(w.home, "flows"), "--listen"}
	done := w.start(append(args, "127.0.0.1:0")...)
	url := w.serving()
	c, err := client.New(url, testKey)
	if err != nil {
		t.Fatal(err)
	}
	w.saw(w.out, "1 workflow")
	made, err := c.CreateRun(t.Context(), client.CreateRunRequest{WorkflowID: "gate"})
	if err != nil {
		t.Fatal(err)
	}
	follower := newWorld(t)
	follower.vars["FERMATA_SERVER"], follower.vars["FERMATA_API_KEY"] = url, testKey
	followed := follower.start("runs", "events", made.RunID, "--follow", "--json")
	follower.saw(follower.out, `"interrupt.requested"`)
	w.signals <- syscall.SIGTERM
	w.wait(done)
	done = w.start(append(args, strings.TrimPrefix(url, "http://"))...)
	w.serving()
	if c, err = client.New(url, testKey); err != nil { // its connections died with the host
		t.Fatal(err)
	}
	if _, err := c.ResolveInterrupt(t.Context(), made.RunID, "ask", []byte(`{"action":"accept"}`)); err != nil {
		t.Fatal(err)
	}
	if code := follower.wait(followed); code != 0 {
		t.Fatalf("exit %d: %s", code, follower.err)
	}
	for i, l := range strings.Split(strings.TrimSpace(follower.out.String()), "\n") {
		contains(t, l, fmt.Sprintf(`"sequence":%d,`, i))
	}
	w.signals <- syscall.SIGTERM
	w.wait(done)
}

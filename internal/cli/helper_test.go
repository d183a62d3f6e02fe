package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/config"
	"github.com/fermata-run/fermata/node"
)

const testKey = "fermata_test-key-test-key-test-key-test-key"

// patience bounds waits for what must happen; it measures nothing.
const patience = 60 * time.Second

// openReal opens a real host, as the program does.
func openReal(ctx context.Context, cfg config.Config, log *slog.Logger) (Host, error) {
	return fermata.Open(ctx, fermata.Config{DataDir: cfg.Data, Store: cfg.Store, StoreConnections: 4, MasterKey: cfg.MasterKey, Logger: log, Mode: string(cfg.Mode), BootstrapKey: cfg.BootstrapKey, AllowEgress: cfg.AllowEgress,
		Retention: &fermata.Retention{Default: fermata.Bounds{MaxAge: cfg.Retention.MaxAge, MaxRuns: cfg.Retention.MaxRuns}}})
}

type types map[string]*node.Type

func (c types) Type(id string) (*node.Type, bool) { t, ok := c[id]; return t, ok }

func builtins() types {
	c := types{}
	for _, t := range fermata.BuiltinNodes() {
		c[t.ID] = &t
	}
	return c
}

// buffer is a writer that can be read while it is written.
type buffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{}
}

func newBuffer() *buffer { return &buffer{more: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// world is where one command line runs.
type world struct {
	t       *testing.T
	home    string
	vars    map[string]string
	stdin   io.Reader
	out     *buffer
	err     *buffer
	open    Open
	catalog bool
	tty     bool // all streams are a terminal
	signals chan os.Signal
	exits   chan int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	home := t.TempDir()
	return &world{
		t: t, home: home, vars: map[string]string{"HOME": home}, stdin: strings.NewReader(""), catalog: true,
		out: newBuffer(), err: newBuffer(), open: openReal, signals: make(chan os.Signal, 2), exits: make(chan int, 8),
	}
}

func (w *world) env() Env {
	e := Env{
		Stdin: w.stdin, Stdout: w.out, Stderr: w.err, Getenv: func(k string) string { return w.vars[k] },
		Environ: func() (out []string) {
			for k, v := range w.vars {
				out = append(out, k+"="+v)
			}
			return out
		},
		Version: "1.2.3", OpenHost: w.open, Migrator: realMigrator{}, Keeper: realKeeper{}, Signals: w.signals, Exit: func(code int) { w.exits <- code },
		Terminal: func(any) (Size, bool) { return Size{80, 24}, w.tty },
	}
	if w.catalog {
		e.Catalog = builtins()
	}
	return e
}

// run runs a command line with fresh output and returns its exit code.
func (w *world) run(args ...string) int {
	w.t.Helper()
	w.out, w.err = newBuffer(), newBuffer()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	code := Main(ctx, args, w.env())
	if ctx.Err() != nil {
		w.t.Fatalf("fermata %s hangs\nout: %s\nerr: %s", strings.Join(args, " "), w.out, w.err)
	}
	return code
}

// must runs a command line that has to succeed and returns its output.
func (w *world) must(args ...string) string {
	w.t.Helper()
	if code := w.run(args...); code != 0 {
		w.t.Fatalf("fermata %s: exit %d\nout: %s\nerr: %s", strings.Join(args, " "), code, w.out, w.err)
	}
	return w.out.String()
}

// start runs a command line in the background.
func (w *world) start(args ...string) <-chan int {
	w.out, w.err = newBuffer(), newBuffer()
	done, env := make(chan int, 1), w.env()
	go func() { done <- Main(context.Background(), args, env) }()
	return done
}

// wait waits for an exit code.
func (w *world) wait(done <-chan int) int {
	w.t.Helper()
	select {
	case code := <-done:
		return code
	case <-time.After(patience):
		w.t.Fatalf("the command does not end\nout: %s\nerr: %s", w.out, w.err)
		return -1
	}
}

// saw waits until a stream holds a text.
func (w *world) saw(b *buffer, text string) {
	w.t.Helper()
	late := time.After(patience)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.more:
		case <-late:
			w.t.Fatalf("%q never came\nout: %s\nerr: %s", text, w.out, w.err)
		}
	}
}

// file writes a file below the world's folder.
func (w *world) file(name, text string) string {
	w.t.Helper()
	p := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// server starts a real host over HTTP and points the world at it.
func (w *world) server() *httptest.Server {
	w.t.Helper()
	h, err := fermata.Open(context.Background(), fermata.Config{
		DataDir: w.t.TempDir(), BootstrapKey: testKey,
		Webhooks: fermata.Webhooks{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxAttempts: 1, DisableAfter: time.Nanosecond,
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := h.Start(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	s := httptest.NewServer(h.Handler())
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Stop(ctx); err != nil {
			w.t.Error(err)
		}
		s.CloseClientConnections()
		s.Close()
	})
	w.vars["FERMATA_SERVER"], w.vars["FERMATA_API_KEY"] = s.URL, testKey
	return s
}

// contains checks a text for pieces.
func contains(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// fakeHost is a host of a handler, for what needs no workflows.
type fakeHost struct {
	handler http.Handler
	key     string
	fail    error // of Start

	mu      sync.Mutex
	started bool
	stopped bool
	onStop  func(context.Context)
	onLeave func()
}

func (f *fakeHost) Leave() {
	if f.onLeave != nil {
		f.onLeave()
	}
}

func (f *fakeHost) Start(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = f.fail == nil
	return f.fail
}

func (f *fakeHost) Stop(ctx context.Context) error {
	if f.onStop != nil {
		f.onStop(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	return nil
}

func (f *fakeHost) Handler() http.Handler { return f.handler }
func (f *fakeHost) FirstKey() string      { return f.key }

func (f *fakeHost) Client() *client.Client {
	c, err := client.New("http://in-process", testKey, client.WithTransport(client.InProcess(f.handler)))
	if err != nil {
		panic(err)
	}
	return c
}

func (f *fakeHost) open(context.Context, config.Config, *slog.Logger) (Host, error) { return f, nil }

// workflow makes a definition of nodes and edges.
func workflow(id, version, variables, nodes, edges string) string {
	return `{"id":"` + id + `","name":"` + id + `","version":"` + version + `","nodes":[` + nodes + `],"edges":[` + edges + `],` +
		`"triggers":[],"variables":[` + variables + `],"metadata":{},"settings":{}}`
}

func aNode(id, typ, config, inputs string) string {
	return `{"id":"` + id + `","typeId":"` + typ + `","name":"` + strings.ToUpper(id) + `","position":{"x":0,"y":0},"config":` + config + `,"inputs":` + inputs + `}`
}

func anEdge(from, to string) string {
	return `{"id":"` + from + `-` + to + `","sourceNodeId":"` + from + `","targetNodeId":"` + to + `"}`
}

// echo answers with its input n.
func echo(version string) string {
	return workflow("echo", version, `{"name":"n","type":"number","required":true}`,
		aNode("out", "core.identity", "{}", `{"n":{"type":"variable","variableName":"n"}}`), "")
}

// gate waits for an approval.
const gateData = `"artifactType":"text","artifactData":{"text":"hi"},"title":"Send it?","description":"Look twice."`

func gate() string {
	return workflow("gate", "1", "", aNode("ask", "core.approvalGate", `{`+gateData+`,"actions":["accept","reject","refine","edit-accept"]}`, "{}"), "")
}

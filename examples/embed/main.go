// Embed is a program with a durable workflow host inside: it registers a node
// type of its own, applies a workflow that uses it, runs that once and prints
// what came out.
//
//	go run ./examples/embed
//	go run ./examples/embed -listen 127.0.0.1:7411 -data ./embed-data
//
// With -listen it goes on to serve the host's protocol beside a page of its own,
// until it is interrupted. Runs that are under way then go on at the next start
// with the same -data.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/client"
)

//go:embed reserve.json
var workflow []byte

func main() {
	listen := flag.String("listen", "", "serve on this address when the run is done")
	data := flag.String("data", "", "data folder; a temporary one if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *data, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, data, listen string) (err error) {
	if data == "" {
		if data, err = os.MkdirTemp("", "embed"); err != nil {
			return err
		}
		defer os.RemoveAll(data)
	}
	host, err := fermata.Open(ctx, fermata.Config{DataDir: data})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdown(host)) }()

	articles := &stock{left: map[string]int{"A-1": 10}, done: map[string]int{}, busy: 1}
	if err := host.RegisterNode(articles.reserveNode()); err != nil {
		return err
	}
	if err := host.Start(ctx); err != nil {
		return err
	}
	c := host.Client() // its calls stay in this process: nothing needs to listen
	if _, err := c.PutWorkflow(ctx, workflow); err != nil {
		return err
	}
	outputs, err := runOnce(ctx, c, "reserve", map[string]any{"sku": "A-1", "count": 3})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", outputs)
	if key := host.FirstKey(); key != "" && listen != "" {
		fmt.Fprintf(out, "the key for callers from outside, shown once: %s\n", key)
	}
	if listen == "" {
		return nil
	}
	return serve(ctx, listen, newMux(host, articles))
}

// runOnce runs a workflow, follows its events to the end and returns its
// outputs.
func runOnce(ctx context.Context, c *client.Client, workflow string, inputs map[string]any) (json.RawMessage, error) {
	b, err := json.Marshal(inputs)
	if err != nil {
		return nil, err
	}
	made, err := c.CreateRun(ctx, client.CreateRunRequest{WorkflowID: workflow, Inputs: b})
	if err != nil {
		return nil, err
	}
	var end struct {
		Outputs json.RawMessage
		Error   *client.RunError
	}
	for ev, err := range c.Stream(ctx, made.RunID, client.StreamOptions{}) {
		if err != nil {
			return nil, err
		}
		if ev.Terminal() {
			if err := ev.Decode(&end); err != nil {
				return nil, err
			}
		}
	}
	if end.Error != nil {
		return nil, end.Error
	}
	return end.Outputs, nil
}

// newMux puts the host beside the program's own pages.
func newMux(host *fermata.Host, articles *stock) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/", host.Handler())
	mux.HandleFunc("GET /stock/{sku}", func(w http.ResponseWriter, r *http.Request) {
		articles.mu.Lock()
		defer articles.mu.Unlock()
		fmt.Fprintln(w, articles.left[r.PathValue("sku")])
	})
	return mux
}

func serve(ctx context.Context, addr string, h http.Handler) error {
	server := &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	// Streams stay open for as long as a run takes, so that a server would wait
	// for them for ever; Host.Stop ends them.
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func shutdown(host *fermata.Host) error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return host.Stop(ctx)
}

package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/client"
)

// lines is what a receiver has printed.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestReceiver runs the example against a host: it is asked whether it wants
// deliveries, and prints what comes.
func TestReceiver(t *testing.T) {
	ctx := context.Background()
	h, err := fermata.Open(ctx, fermata.Config{
		DataDir: t.TempDir(), Webhooks: fermata.Webhooks{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer h.Stop(ctx)
	secret := client.NewWebhookSecret()
	out := &lines{}
	srv := httptest.NewServer(receiver(out, secret))
	defer srv.Close()

	c := h.Client()
	if _, err := c.RegisterWebhook(ctx, client.WebhookRegistration{
		URL: srv.URL, Events: []string{"run.started", "run.completed"}, Secret: secret,
		SignatureAlgorithms: []string{"v1", "standard-webhooks-1"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutWorkflow(ctx, []byte(`{"id":"one","name":"one","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},"edges":[],
		"nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{}}]}`)); err != nil {
		t.Fatal(err)
	}
	run, err := c.CreateRun(ctx, client.CreateRunRequest{WorkflowID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	want := run.RunID + " run.started #0\n" + run.RunID + " run.completed #3\n"
	for deadline := time.Now().Add(30 * time.Second); out.String() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) || !strings.HasPrefix(want, out.String()) {
			t.Fatalf("printed %q, want %q", out, want)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/client"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second time on the data of the first
		var out bytes.Buffer
		if err := run(context.Background(), &out, dir, ""); err != nil {
			t.Fatal(err)
		}
		if want := `{"message":"3 of A-1 reserved, 7 left"}` + "\n"; out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
	}
	if err := run(context.Background(), io.Discard, "", ""); err != nil {
		t.Errorf("in a temporary folder: %v", err)
	}
}

func TestRunServesUntilInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	printed := writer(func([]byte) { stop() }) // as soon as the run is done
	if err := run(ctx, printed, t.TempDir(), "127.0.0.1:0"); err != nil {
		t.Error(err)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

// The host, beside the program's own page, over HTTP.
func TestMux(t *testing.T) {
	const key = "embed-example-key-embed-example-key"
	ctx := context.Background()
	host, err := fermata.Open(ctx, fermata.Config{DataDir: t.TempDir(), BootstrapKey: key})
	if err != nil {
		t.Fatal(err)
	}
	articles := &stock{left: map[string]int{"A-1": 2}, done: map[string]int{}, busy: 2}
	if err := host.RegisterNode(articles.reserveNode()); err != nil {
		t.Fatal(err)
	}
	if err := host.Start(ctx); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(newMux(host, articles))
	t.Cleanup(func() {
		if err := shutdown(host); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	c, err := client.New(server.URL, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutWorkflow(ctx, workflow); err != nil {
		t.Fatal(err)
	}
	out, err := runOnce(ctx, c, "reserve", map[string]any{"sku": "A-1"})
	if err != nil || string(out) != `{"message":"1 of A-1 reserved, 1 left"}` {
		t.Errorf("%s, %v", out, err)
	}
	var failed *client.RunError
	if _, err := runOnce(ctx, c, "reserve", map[string]any{"sku": "A-1", "count": 5}); !errors.As(err, &failed) || failed.Code != "validation_error" {
		t.Errorf("reserving too many: %v", err)
	}
	res, err := http.Get(server.URL + "/stock/A-1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "1\n" {
		t.Errorf("the page shows %q", b)
	}
}

// A call that is repeated, as after a crash, has one effect.
func TestReserveOnce(t *testing.T) {
	s := &stock{left: map[string]int{"A-1": 5}, done: map[string]int{}}
	for range 3 {
		if left, err := s.reserve("k", "A-1", 2); left != 3 || err != nil {
			t.Errorf("%d left, %v", left, err)
		}
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

// inProcess is a host within the test, so that the test's own profiles show
// where its time and memory go:
//
//	go test ./internal/bench -run '^$' -bench 'OneNode/64' -cpuprofile cpu.out
//	go tool pprof -top bench.test cpu.out
//
// The load is in the profile, too; it is all below (*Conn).
func inProcess(tb testing.TB) (addr string) {
	tb.Helper()
	h, err := fermata.Open(context.Background(), fermata.Config{DataDir: tb.TempDir(), BootstrapKey: apiKey})
	if err != nil {
		tb.Fatal(err)
	}
	if err := h.Start(context.Background()); err != nil {
		tb.Fatal(err)
	}
	srv := httptest.NewServer(h.Handler())
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := h.Stop(ctx)
		srv.CloseClientConnections()
		srv.Close()
		if err != nil {
			tb.Error(err)
		}
	})
	addr = strings.TrimPrefix(srv.URL, "http://")
	if err := register(addr); err != nil {
		tb.Fatal(err)
	}
	return addr
}

// BenchmarkOneNode creates a run of one node and follows it to its end.
func BenchmarkOneNode(b *testing.B) { benchmarkRuns(b, "one") }

// BenchmarkFiveNodes does so with a chain of five.
func BenchmarkFiveNodes(b *testing.B) { benchmarkRuns(b, "five") }

func benchmarkRuns(b *testing.B, workflow string) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			addr := inProcess(b)
			body := createBody(workflow, "")
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			err := inParallel(clients, func(int) error {
				c, err := Dial(addr)
				if err != nil {
					return err
				}
				defer c.Close()
				for left.Add(-1) >= 0 {
					path, err := c.create(body)
					if err == nil {
						err = c.await(path)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSubscribers opens streams of a waiting run and keeps them, for
// -memprofile. One op is one subscriber.
func BenchmarkSubscribers(b *testing.B) {
	addr := inProcess(b)
	c, err := Dial(addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	path, err := c.create(createBody("gate", ""))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	subs, err := subscribe(addr, path, b.N)
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := c.answer(path); err != nil {
		b.Error(err)
	}
	events, _, err := subs.drain()
	subs.close()
	if err == nil && events < 5 {
		err = errors.New("a subscriber missed something")
	}
	if err != nil {
		b.Error(err)
	}
}

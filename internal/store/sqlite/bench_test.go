package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// BenchmarkAppend appends steps of two events, each writer to a run of its own,
// and compares with the bare cost of a synced write to the same disk.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			dir := b.TempDir()
			s := openTest(b, dir, Options{})
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for range writers {
				wg.Go(func() { appendAll(b, s, &left) })
			}
			wg.Wait()
			b.StopTimer()
			perSecond := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond, "appends/s")
			b.ReportMetric(perSecond/syncsPerSecond(b, dir), "per-fsync")
		})
	}
}

func appendAll(b *testing.B, s *Store, left *atomic.Int64) {
	a := newStep(2)
	for left.Add(-1) >= 0 {
		if err := s.Runs().Append(context.Background(), a); err != nil {
			b.Error(err)
			return
		}
		if a.Row.Seq > 40 {
			a = newStep(2)
		} else {
			a = nextStep(a, 2)
		}
	}
}

// syncsPerSecond is how often the disk can make four KiB durable.
func syncsPerSecond(b *testing.B, dir string) float64 {
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	const n = 300
	start := time.Now()
	for range n {
		f.Write(page)
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return n / time.Since(start).Seconds()
}

// filled is a store with runs of 40 events in steps of two.
func filled(b *testing.B, runs int) (*Store, []*store.Append) {
	s := openTest(b, b.TempDir(), Options{})
	out := make([]*store.Append, runs)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() {
			a := newStep(2)
			for range 20 {
				if err := s.Runs().Append(context.Background(), a); err != nil {
					b.Error(err)
				}
				out[i], a = a, nextStep(a, 2)
			}
		})
	}
	wg.Wait()
	return s, out
}

func BenchmarkRead(b *testing.B) {
	s, runs := filled(b, 200)
	ctx := context.Background()
	r := s.Runs()
	for name, read := range map[string]func(a *store.Append) error{
		"Get":     func(a *store.Append) error { _, err := r.Get(ctx, a.Row.ID); return err },
		"Load":    func(a *store.Append) error { _, err := r.Load(ctx, a.Row.ID); return err },
		"Wait":    func(a *store.Append) error { _, _, err := r.Events(ctx, a.Row.ID, a.Row.Seq, 100, 1<<20); return err },
		"LastTwo": func(a *store.Append) error { _, _, err := r.Events(ctx, a.Row.ID, a.Row.Seq-2, 100, 1<<20); return err },
		"ListPage": func(*store.Append) error {
			_, err := r.List(ctx, store.ListQuery{Tenant: "acme", Limit: 50})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := read(runs[i%len(runs)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

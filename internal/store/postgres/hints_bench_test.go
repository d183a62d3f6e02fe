package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// BenchmarkHints measures what steps of two replicas cost in all, with and without hints
// between them: go test ./internal/store/postgres -run xxx -bench Hints -benchtime 5000x
func BenchmarkHints(b *testing.B) {
	for _, name := range []string{"without", "with", "without again", "with again"} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			opts := Options{}
			if !strings.HasPrefix(name, "without") {
				opts.Listen = pgtest.Database(b, dir)
			}
			var s []*Store
			for i := range 2 {
				s = append(s, openTest(b, dir, "", opts))
				if err := s[i].Ownership().Register(b.Context(), fmt.Sprint("host-", i)); err != nil {
					b.Fatal(err)
				}
			}
			for i := range s {
				if _, err := s[i].Ownership().Claim(b.Context(), fmt.Sprint("host-", i), noon, 1); err != nil {
					b.Fatal(err)
				}
			}
			var done atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for w := range 64 {
				wg.Go(func() {
					a := newStep(1)
					for done.Add(1) <= int64(b.N) {
						if err := s[w%2].Runs().Append(context.Background(), a); err != nil {
							b.Error(err)
							return
						}
						a = nextStep(a, 1)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

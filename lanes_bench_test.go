package fermata_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/identity/idptest"
)

// BenchmarkGetRun measures what authentication adds to the reading of a run. The
// floor is the same request of a caller within the process, who needs no
// credential. Each credential is measured in turns with the floor, so that what
// else the machine does meets both; the medians go into the ratio.
func BenchmarkGetRun(b *testing.B) {
	p := idptest.New(b)
	s := start(b, withIssuer(p), func(c *fermata.Config) {
		c.Lanes.Own = []fermata.Lane{sessions(time.Time{})}
	})
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	id := s.run("one")
	s.await(id, "completed")
	request := func(h ...string) *http.Request {
		r := httptest.NewRequest("GET", "/runs/"+seg(id), nil)
		for i := 0; i+1 < len(h); i += 2 {
			r.Header.Set(h[i], h[i+1])
		}
		return r
	}
	floor := request().WithContext(identity.WithCaller(context.Background(), identity.Local(fermata.DefaultTenant)))
	h := s.host.Handler()
	took := func(r *http.Request) time.Duration {
		const n = 50
		begin := time.Now()
		for range n {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != 200 {
				b.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		return time.Since(begin) / n
	}
	for _, c := range []struct {
		name string
		r    *http.Request
	}{
		{"api-key", request("Authorization", "Bearer "+testKey)},
		{"token", request("Authorization", "Bearer "+p.Token(p.Standard(publicURL, time.Now())))},
		{"own lane", request("Cookie", "sid=ann")},
	} {
		b.Run(c.name, func(b *testing.B) {
			var with, without []time.Duration
			for b.Loop() {
				without, with = append(without, took(floor)), append(with, took(c.r))
			}
			slices.Sort(with)
			slices.Sort(without)
			x, y := with[len(with)/2], without[len(without)/2]
			b.ReportMetric(float64(y.Nanoseconds())/1000, "floor-µs")
			b.ReportMetric(float64((x-y).Nanoseconds())/1000, "above-µs")
			b.ReportMetric(float64(x)/float64(y), "ratio")
			b.ReportMetric(0, "ns/op")
			if testing.Verbose() {
				fmt.Printf("getRun by %s: %s, floor %s\n", c.name, x, y)
			}
		})
	}
}

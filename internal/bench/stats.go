package bench

import (
	"slices"
	"time"
)

// latencies are the durations of one kind of request.
type latencies []time.Duration

// at is the latency that a share of all requests stays within, in milliseconds.
func (l latencies) at(share float64) float64 {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return ms(l[min(int(share*float64(len(l))), len(l)-1)])
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func perSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

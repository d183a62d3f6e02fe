package run

import (
	"github.com/go-json-experiment/json"
)

// Limits are the host's ceilings (spec v2 capabilities.md, family limits). Zero
// means no ceiling.
type Limits struct {
	MaxNodeExecutions int
	MaxRunDurationMs  int64
	MaxLoopIterations int
	MaxPayloadBytes   int // of one event's payload
	MaxDepth          int // of child runs below child runs
	MaxSignals        int // answers kept for nodes that do not wait yet
	MaxChildren       int // child runs of one node visit

	// LegacyEvents says approvals and clarifications by their older types, too.
	LegacyEvents bool
	// OlderMajor says of them what readers of v1 look for: requests, and every answer
	// that is recorded.
	OlderMajor bool
}

// DefaultLimits are the ceilings of a host whose operator set none.
func DefaultLimits() Limits {
	return Limits{
		MaxNodeExecutions: 10_000,
		MaxRunDurationMs:  365 * 24 * 3600 * 1000,
		MaxLoopIterations: 1_000,
		MaxPayloadBytes:   8 << 20,
		MaxDepth:          16,
		MaxSignals:        100,
		MaxChildren:       10_000,
	}
}

// Options is the run section of configurable (spec v2 runs.md §Run options).
type Options struct {
	RecursionLimit    int   `json:"recursionLimit,omitzero"`
	RunTimeoutMs      int64 `json:"runTimeoutMs,omitzero"`
	MaxLoopIterations int   `json:"maxLoopIterations,omitzero"`
}

func (s *State) options() Options {
	var c struct {
		Run Options `json:"run"`
	}
	if len(s.Configurable) > 0 {
		// It was validated when the run was created; a reader of an odd log
		// falls back on the host's limits.
		_ = json.Unmarshal(s.Configurable, &c)
	}
	return c.Run
}

func smallest[T int | int64](values ...T) T {
	var out T
	for _, v := range values {
		if v > 0 && (out == 0 || v < out) {
			out = v
		}
	}
	return out
}

func (s *State) maxExecutions(lim Limits) int {
	return smallest(s.options().RecursionLimit, lim.MaxNodeExecutions)
}

func (s *State) maxDuration(lim Limits) int64 {
	return smallest(s.options().RunTimeoutMs, s.wf.Def.Settings.Timeout, lim.MaxRunDurationMs)
}

// maxRepeats bounds how often one loop may start over: the workflow's own
// bound, the caller's and the host's, whichever is smallest.
func (s *State) maxRepeats(lim Limits) int {
	return smallest(s.wf.Def.Settings.MaxLoopbackIterations, s.options().MaxLoopIterations, lim.MaxLoopIterations)
}

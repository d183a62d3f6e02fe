package clock

import (
	"sync/atomic"
	"time"
)

// Shared is the machine's clock, put right by how far it is from one that several
// machines agree on. The zero value is the machine's clock.
type Shared struct{ off atomic.Int64 }

// Now implements Clock.
func (s *Shared) Now() time.Time {
	return System{}.Now().Add(time.Duration(s.off.Load())).Truncate(time.Millisecond)
}

// After implements Clock.
func (s *Shared) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Agree sets the clock by what the common one has said between two readings of the
// machine's.
func (s *Shared) Agree(before, said, after time.Time) {
	s.off.Store(int64(said.Sub(before.Add(after.Sub(before) / 2))))
}

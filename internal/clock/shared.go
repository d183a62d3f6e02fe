package clock

import (
	"sync/atomic"
	"time"
)

// Shared is the machine's clock, put right by how far it is from one that several
// machines agree on. The zero value is the machine's clock.
type Shared struct {
	off atomic.Int64

	// Wrong, for tests, is by how much the machine's clock is wrong. It is set before
	// anything else.
	Wrong time.Duration
}

// Machine is what the machine's clock says.
func (s *Shared) Machine() time.Time { return time.Now().Add(s.Wrong) }

// Now implements Clock.
func (s *Shared) Now() time.Time {
	return s.Machine().Add(time.Duration(s.off.Load())).UTC().Truncate(time.Millisecond).Round(0)
}

// After implements Clock.
func (s *Shared) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Agree sets the clock by what the common one has said between two readings of
// Machine.
func (s *Shared) Agree(before, said, after time.Time) {
	s.off.Store(int64(said.Sub(before.Add(after.Sub(before) / 2))))
}

package clock

import (
	"testing"
	"time"
)

// The zero value is the machine's clock, and a clock that has agreed is right
// whatever the machine's says.
func TestShared(t *testing.T) {
	var s Shared
	var machine System
	before := machine.Now()
	if got := s.Now(); got.Before(before) || got.After(machine.Now()) {
		t.Errorf("%v at %v", got, before)
	}
	for _, off := range []time.Duration{7 * time.Minute, -3 * time.Hour} {
		now := time.Now()
		s.Agree(now.Add(-time.Second), now.Add(off), now.Add(time.Second))
		low := machine.Now().Add(off - time.Millisecond)
		if got, high := s.Now(), machine.Now().Add(off+time.Millisecond); got.Before(low) || got.After(high) {
			t.Errorf("%v, want between %v and %v", got, low, high)
		}
	}
}

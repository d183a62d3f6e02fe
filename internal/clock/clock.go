package clock

import (
	"sync"
	"time"
)

// Clock tells the time and waits for it. Implementations are safe for
// concurrent use.
type Clock interface {
	// Now is the current time, UTC, without a monotonic reading, in whole
	// milliseconds: the resolution in which time is stored and sent.
	Now() time.Time
	// After delivers one value once d has passed.
	After(d time.Duration) <-chan time.Time
}

// System is the machine's clock.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond).Round(0) }

// After implements Clock.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Manual is a clock that a test moves by hand.
type Manual struct {
	mu      sync.Mutex
	now     time.Time
	waiting []waiter
}

type waiter struct {
	at time.Time
	ch chan time.Time
}

// NewManual returns a clock that stands at t.
func NewManual(t time.Time) *Manual { return &Manual{now: t.UTC().Truncate(time.Millisecond)} }

// Now implements Clock.
func (m *Manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// After implements Clock.
func (m *Manual) After(d time.Duration) <-chan time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch := make(chan time.Time, 1)
	at := m.now.Add(d)
	if d <= 0 {
		ch <- m.now
		return ch
	}
	m.waiting = append(m.waiting, waiter{at, ch})
	return ch
}

// Advance moves the clock forward and releases every wait that is now due.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	kept := m.waiting[:0]
	for _, w := range m.waiting {
		if w.at.After(m.now) {
			kept = append(kept, w)
			continue
		}
		w.ch <- m.now
	}
	m.waiting = kept
}

package host

import (
	"crypto/sha256"
	"sync"

	"github.com/fermata-run/fermata/internal/store"
)

// recordName is how an idempotency record is found.
type recordName struct {
	tenant, endpoint string
	key              [sha256.Size]byte
}

// flights are the keyed requests that this process is at work on. The store
// keeps processes apart; these keep the requests of one process apart.
type flights struct {
	mu sync.Mutex
	m  map[recordName]*flight
}

// flight is one of them. Its members may be read once the channel that stands
// above them is closed.
type flight struct {
	settled chan struct{}
	holds   bool // the record is of this digest
	digest  [sha256.Size]byte

	done    chan struct{}
	outcome *store.Outcome // nil if none was kept
}

// enter joins the flight of a name; first reports whether it has just begun.
func (s *flights) enter(name recordName) (f *flight, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.m[name]; f != nil {
		return f, false
	}
	if s.m == nil {
		s.m = map[recordName]*flight{}
	}
	f = &flight{settled: make(chan struct{}), done: make(chan struct{})}
	s.m[name] = f
	return f, true
}

// settle says which request the flight is of.
func (f *flight) settle(digest [sha256.Size]byte) {
	f.holds, f.digest = true, digest
	close(f.settled)
}

// leave ends a flight.
func (s *flights) leave(name recordName, f *flight) {
	s.mu.Lock()
	delete(s.m, name)
	s.mu.Unlock()
	if !f.holds {
		close(f.settled)
	}
	close(f.done)
}

// size is how many requests are at work.
func (s *flights) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}

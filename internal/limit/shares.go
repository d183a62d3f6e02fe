package limit

import "sync"

// Shares is something that parties use at the same time: so much in all, and so
// much of it for one of them. It is safe for concurrent use.
type Shares[K comparable] struct {
	total, each int64 // zero or less: no bound

	mu   sync.Mutex
	used int64
	by   map[K]int64 // parties that use something
}

// NewShares makes shares of total, with at most each for one party. Zero or less
// is no bound.
func NewShares[K comparable](total, each int64) *Shares[K] {
	return &Shares[K]{total: total, each: each, by: map[K]int64{}}
}

// Portion is the share of one party that leaves a quarter to the others, rounded
// in its favour. No bound has no portion.
func Portion(total int) int {
	if total <= 0 {
		return 0
	}
	return total - total/4
}

// Take takes n for a party, or nothing.
func (s *Shares[K]) Take(k K, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total > 0 && s.used+n > s.total || s.each > 0 && s.by[k]+n > s.each {
		return false
	}
	s.used += n
	s.by[k] += n
	return true
}

// Give gives back what a party has taken.
func (s *Shares[K]) Give(k K, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	if s.by[k] -= n; s.by[k] <= 0 {
		delete(s.by, k)
	}
}

// Used is what all parties use, and how many of them there are.
func (s *Shares[K]) Used() (n int64, parties int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, len(s.by)
}

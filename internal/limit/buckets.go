package limit

import (
	"hash/maphash"
	"sync"
	"time"
)

const shards = 16

// Buckets hold one token bucket for each party, full at first. They are safe for
// concurrent use, and take memory for a bounded number of parties.
//
// A bucket is kept as the one moment at which it will be full again. A bucket
// that is full is the same as one that is not there, so it may be forgotten.
type Buckets[K comparable] struct {
	rate  Rate
	gap   int64     // nanoseconds
	depth int64     // of a full bucket, in nanoseconds
	room  int       // parties of one shard
	base  time.Time // before every moment that is asked about
	seed  maphash.Seed
	parts [shards]part[K]
}

type part[K comparable] struct {
	mu     sync.Mutex
	full   map[K]int64 // since base
	rest   int64       // the bucket that parties share for whom there is no room
	looked int64       // when those that are full were forgotten last
}

// NewBuckets makes buckets of a rate for up to room parties at once. Past that,
// newcomers share one bucket, so that a flood of names buys nothing.
func NewBuckets[K comparable](r Rate, room int) *Buckets[K] {
	b := &Buckets[K]{rate: r, room: max(room/shards, 1), base: time.Now().Add(-time.Hour), seed: maphash.MakeSeed()}
	if !r.None() {
		b.gap = int64(r.gap())
		b.depth = b.gap * int64(max(r.Burst, 1))
	}
	for i := range b.parts {
		b.parts[i].full = map[K]int64{}
	}
	return b
}

// Take takes a token of a party. It returns 0, or how long it takes until there is
// one again; then none is taken.
func (b *Buckets[K]) Take(k K, now time.Time) time.Duration { return b.use(k, now, true) }

// Wait is what Take would return, without taking a token.
func (b *Buckets[K]) Wait(k K, now time.Time) time.Duration { return b.use(k, now, false) }

func (b *Buckets[K]) use(k K, now time.Time, take bool) time.Duration {
	if b.rate.None() {
		return 0
	}
	at := int64(now.Sub(b.base)) // by the monotonic clock: a clock that is set changes nothing
	p := &b.parts[maphash.Comparable(b.seed, k)%shards]
	p.mu.Lock()
	defer p.mu.Unlock()
	full, known := p.full[k]
	alone := known || p.admit(at, b.room)
	if !alone {
		full = p.rest
	}
	next := max(full, at) + b.gap
	if over := next - at - b.depth; over > 0 {
		return time.Duration(over)
	}
	switch {
	case !take:
	case alone:
		p.full[k] = next
	default:
		p.rest = next
	}
	return 0
}

// admit reports whether there is room for one more party. It forgets full buckets
// now and then, not for every newcomer.
func (p *part[K]) admit(at int64, room int) bool {
	if len(p.full) < room {
		return true
	}
	if at-p.looked < int64(time.Second) && p.looked != 0 {
		return false
	}
	p.looked = max(at, 1)
	for k, full := range p.full {
		if full <= at {
			delete(p.full, k)
		}
	}
	return len(p.full) < room
}

// Len is how many buckets are kept.
func (b *Buckets[K]) Len() int {
	n := 0
	for i := range b.parts {
		b.parts[i].mu.Lock()
		n += len(b.parts[i].full)
		b.parts[i].mu.Unlock()
	}
	return n
}

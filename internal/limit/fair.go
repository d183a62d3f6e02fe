package limit

import (
	"context"
	"slices"
	"sync"
)

// Fair is a number of places that parties wait for. Within a party the first comes
// first; between parties they take turns, however many wait for each. It is safe
// for concurrent use.
type Fair[K comparable] struct {
	each int

	mu   sync.Mutex
	free int
	held map[K]int
	wait map[K][]*ticket
	turn []K // parties with somebody waiting; the first is next
}

type ticket struct {
	called chan struct{}
	in     bool
}

// NewFair makes total places, at most each of them for one party; zero or less for
// no bound of a party.
func NewFair[K comparable](total, each int) *Fair[K] {
	if each <= 0 {
		each = total
	}
	return &Fair[K]{each: each, free: total, held: map[K]int{}, wait: map[K][]*ticket{}}
}

// Enter waits for a place. It fails with the context's error once that is done;
// otherwise Leave must be called.
func (f *Fair[K]) Enter(ctx context.Context, k K) error {
	f.mu.Lock()
	if f.free > 0 && f.held[k] < f.each { // nobody who could go in waits then
		f.free--
		f.held[k]++
		f.mu.Unlock()
		return nil
	}
	t := &ticket{called: make(chan struct{})}
	if len(f.wait[k]) == 0 {
		f.turn = append(f.turn, k)
	}
	f.wait[k] = append(f.wait[k], t)
	f.mu.Unlock()
	select {
	case <-t.called:
		return nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.in { // called at the same moment: the place is another's
		f.leave(k)
		return ctx.Err()
	}
	f.drop(k, slices.Index(f.wait[k], t))
	return ctx.Err()
}

// Leave gives a place back.
func (f *Fair[K]) Leave(k K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave(k)
}

// Held is how many places are taken.
func (f *Fair[K]) Held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, h := range f.held {
		n += h
	}
	return n
}

func (f *Fair[K]) leave(k K) {
	f.free++
	if f.held[k]--; f.held[k] == 0 {
		delete(f.held, k)
	}
	for i := 0; f.free > 0 && i < len(f.turn); {
		next := f.turn[i]
		if f.held[next] >= f.each {
			i++ // it waits for itself
			continue
		}
		t := f.wait[next][0]
		f.drop(next, 0)
		f.free--
		f.held[next]++
		t.in = true
		close(t.called)
		if len(f.wait[next]) > 0 { // behind those who have waited for a turn
			f.turn = append(slices.Delete(f.turn, i, i+1), next)
		}
	}
}

// drop takes one of a party's tickets out of the line.
func (f *Fair[K]) drop(k K, i int) {
	f.wait[k] = slices.Delete(f.wait[k], i, i+1)
	if len(f.wait[k]) == 0 {
		delete(f.wait, k)
		if at := slices.Index(f.turn, k); at >= 0 {
			f.turn = slices.Delete(f.turn, at, at+1)
		}
	}
}

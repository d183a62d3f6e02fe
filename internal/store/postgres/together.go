package postgres

import (
	"context"
	"sync"
	"time"
)

// together lets all who want to know one thing at one moment ask once. Who comes while
// a question is under way is not given its answer, which may be older than what it
// must see: it waits with the others for the next one, which is asked after all of
// them have come. So a busy host asks who a key belongs to as often as the database
// answers, and not as often as it is called; and a change counts for every call that
// begins after it, as if each had asked by itself.
type together[K comparable, V any] struct {
	mu     sync.Mutex
	asking map[K]*lookup[V]
}

// lookup is a question that is asked, or will be when the one before it is answered.
type lookup[V any] struct {
	done chan struct{}
	v    V
	err  error
	next *lookup[V] // of those who came too late for this one; nil for nobody
}

// lookTime bounds one question: it is asked for several, so none of them ends it.
const lookTime = 30 * time.Second

// do answers with what ask says at a moment after the call began.
func (t *together[K, V]) do(ctx context.Context, k K, ask func(ctx context.Context) (V, error)) (V, error) {
	t.mu.Lock()
	l := t.asking[k]
	switch {
	case l == nil:
		if t.asking == nil {
			t.asking = map[K]*lookup[V]{}
		}
		l = newLookup[V]()
		t.asking[k] = l
		go t.run(context.WithoutCancel(ctx), k, l, ask)
	case l.next == nil:
		l.next = newLookup[V]()
		l = l.next
	default:
		l = l.next
	}
	t.mu.Unlock()
	select {
	case <-l.done:
		return l.v, l.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

func newLookup[V any]() *lookup[V] { return &lookup[V]{done: make(chan struct{})} }

// run asks, and again as long as somebody has come meanwhile.
func (t *together[K, V]) run(ctx context.Context, k K, l *lookup[V], ask func(ctx context.Context) (V, error)) {
	for l != nil {
		one, end := context.WithTimeout(ctx, lookTime)
		l.v, l.err = ask(one)
		end()
		close(l.done)
		t.mu.Lock()
		l = l.next
		if l == nil {
			delete(t.asking, k)
		} else {
			t.asking[k] = l
		}
		t.mu.Unlock()
	}
}

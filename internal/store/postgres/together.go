package postgres

import (
	"context"
	"fmt"
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
	done    chan struct{}
	v       V
	err     error
	waiting int        // who wants to know; a question of nobody is not asked any longer
	end     func()     // of the question while it is asked; nil before
	next    *lookup[V] // of those who came too late for this one; nil for nobody
}

// lookTime bounds one question: it is asked for several, so none of them ends it, but
// all of them together do by going away.
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
	l.waiting++
	t.mu.Unlock()
	select {
	case <-l.done:
		return l.v, l.err
	case <-ctx.Done():
		t.leave(l)
		var none V
		return none, ctx.Err()
	}
}

func newLookup[V any]() *lookup[V] { return &lookup[V]{done: make(chan struct{})} }

// leave is said by who does not wait any longer. The last one ends the question: who
// asks and hangs up, again and again, must not leave more behind than he holds.
func (t *together[K, V]) leave(l *lookup[V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.waiting--; l.waiting == 0 && l.end != nil {
		l.end()
	}
}

// run asks, and again as long as somebody has come meanwhile.
func (t *together[K, V]) run(ctx context.Context, k K, l *lookup[V], ask func(ctx context.Context) (V, error)) {
	for l != nil {
		if one, end := t.begin(ctx, l); one != nil {
			l.v, l.err = asked(one, ask)
			end()
		}
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

// begin is the context of a question; nil if nobody is left who wants to know.
func (t *together[K, V]) begin(ctx context.Context, l *lookup[V]) (context.Context, func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.waiting == 0 {
		return nil, nil
	}
	one, end := context.WithTimeout(ctx, lookTime)
	l.end = end
	return one, end
}

// asked makes a failure of a panic: it is in a goroutine of nobody, where it would end
// the whole process and not one request.
func asked[V any](ctx context.Context, ask func(ctx context.Context) (V, error)) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a question to the database broke off: %v", p)
		}
	}()
	return ask(ctx)
}

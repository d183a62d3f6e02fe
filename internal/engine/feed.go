package engine

import (
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
)

// How much of a watched run's recent log is kept in memory for its watchers. A
// watcher that falls further behind reads the store; it costs nobody else
// anything.
const (
	tailEvents = 8192
	tailBytes  = 1 << 20
)

// Feed tells watchers of a run that its log has grown. It holds nothing for
// runs nobody watches.
type Feed struct {
	shards [64]feedShard
	closed chan struct{}
	once   sync.Once
}

type feedShard struct {
	mu     sync.Mutex
	topics map[ids.Run]*topic
}

type topic struct {
	mu       sync.Mutex
	watchers int
	changed  chan struct{} // closed at the next publication
	tail     []event.Event // without gaps
	bytes    int
	lookAt   time.Time     // when to look into the store, where others append, too
	gap      time.Duration // between looks
	next     int64         // every event before this sequence is known to be durable
}

func newFeed() *Feed {
	f := &Feed{closed: make(chan struct{})}
	for i := range f.shards {
		f.shards[i].topics = map[ids.Run]*topic{}
	}
	return f
}

func (f *Feed) shard(id ids.Run) *feedShard {
	return &f.shards[spread(id)%uint32(len(f.shards))]
}

// publish announces events that are durable.
func (f *Feed) publish(id ids.Run, events []event.Event) {
	if len(events) == 0 {
		return
	}
	if t := f.topic(id); t != nil {
		t.add(events)
	}
}

// reached says that a run's log reaches up to a sequence. Where that was not
// announced (the write seemed to have failed), watchers are sent to the store.
func (f *Feed) reached(id ids.Run, seq int64) {
	if t := f.topic(id); t != nil {
		t.reached(seq)
	}
}

func (f *Feed) topic(id ids.Run) *topic {
	sh := f.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.topics[id]
}

func (t *topic) add(events []event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := events[len(events)-1].Seq
	if last < t.next {
		return // announced out of turn: watchers have been sent to the store for it
	}
	if events[0].Seq != t.next {
		t.tail, t.bytes = nil, 0
	}
	for i := range events {
		t.tail = append(t.tail, events[i])
		t.bytes += len(events[i].Doc())
	}
	for len(t.tail) > tailEvents || t.bytes > tailBytes && len(t.tail) > 1 {
		t.bytes -= len(t.tail[0].Doc())
		t.tail = t.tail[1:]
	}
	t.next = last + 1
	t.wake()
}

func (t *topic) reached(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next > seq {
		return
	}
	t.tail, t.bytes, t.next = nil, 0, seq+1
	t.wake()
}

func (t *topic) wake() {
	t.gap, t.lookAt = 0, time.Time{}
	close(t.changed)
	t.changed = make(chan struct{})
}

// Watch follows one run until Close.
type Watch struct {
	f  *Feed
	id ids.Run
	t  *topic
}

// Watch begins to follow a run. Watch first, then read the store: what is
// published in between is in the watch's tail.
func (f *Feed) Watch(id ids.Run) *Watch {
	sh := f.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t := sh.topics[id]
	if t == nil {
		t = &topic{changed: make(chan struct{})}
		sh.topics[id] = t
	}
	t.watchers++
	return &Watch{f, id, t}
}

// Close ends the watch.
func (w *Watch) Close() {
	sh := w.f.shard(w.id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if w.t.watchers--; w.t.watchers == 0 {
		delete(sh.topics, w.id)
	}
}

// After returns the events behind a sequence that are at hand, and a channel
// that closes when there are more. ok is false when the tail does not reach
// back far enough: then the store must be read.
func (w *Watch) After(seq int64) (events []event.Event, more <-chan struct{}, ok bool) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	more = w.t.changed
	tail := w.t.tail
	if len(tail) == 0 {
		return nil, more, seq+1 >= w.t.next
	}
	if first := tail[0].Seq; seq+1 < first {
		return nil, more, false
	}
	from := seq + 1 - tail[0].Seq
	if from >= int64(len(tail)) {
		return nil, more, true
	}
	return tail[from:len(tail):len(tail)], more, true
}

// Closed is closed when the host shuts down.
func (w *Watch) Closed() <-chan struct{} { return w.f.closed }

// Close ends every watch's wait, for shutdown.
func (f *Feed) Close() { f.once.Do(func() { close(f.closed) }) }

package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/fermata-run/fermata/internal/store"
)

// Bounds of one transaction. The first is also how many requests may wait.
const (
	maxBatch      = 512
	maxBatchBytes = 16 << 20
)

// A request is waiting until the writer takes it, unless its caller gives up
// first; after that only the outcome counts.
const (
	waiting int32 = iota
	taken
	abandoned
)

// request is one caller's write. do may run more than once, each time in a
// fresh transaction. If it fails after it has changed a row, the change is
// rolled back.
type request struct {
	do    func(c *conn) error
	size  int
	state atomic.Int32
	err   error // of do, until the commit
	done  chan error
}

// writer is the one goroutine that writes: it runs all requests that wait at
// one moment in one transaction, so that they share one fsync.
type writer struct {
	conn  *conn
	open  func() (*conn, error)
	undo  func() // called when a transaction was rolled back
	queue chan *request
	ended chan struct{}

	// mu is held for reading while a request is put into the queue, so that
	// close knows when the last one is in.
	mu     sync.RWMutex
	closed bool

	batch []*request // reused

	// stuck: the last that was written met a disk that is full or broken.
	stuck atomic.Bool
}

// startWriter starts a writer on c. open makes another such connection; undo
// hears of every transaction that came to nothing.
func startWriter(c *conn, open func() (*conn, error), undo func()) *writer {
	w := &writer{conn: c, open: open, undo: undo, queue: make(chan *request, maxBatch), ended: make(chan struct{})}
	go w.loop()
	return w
}

// close lets what is in the queue finish, and ends the goroutine.
func (w *writer) close() error {
	w.mu.Lock()
	already := w.closed
	if !already {
		w.closed = true
		close(w.queue)
	}
	w.mu.Unlock()
	<-w.ended
	if already {
		return nil
	}
	return w.conn.close()
}

// submit has do executed and returns its durable outcome. size is roughly what
// it writes, in bytes. A request whose ctx ends before it was taken is not
// executed. What ctx has to be audited goes into the same transaction: every
// change comes by here, so none can be without.
func (w *writer) submit(ctx context.Context, size int, do func(c *conn) error) error {
	drafts := store.Drafts(ctx)
	if len(drafts) == 0 {
		return w.send(ctx, size, do)
	}
	err := w.send(ctx, size+len(drafts)<<10, func(c *conn) error {
		if err := do(c); err != nil {
			return err
		}
		return place(c, drafts)
	})
	if err == nil {
		store.Keep(drafts)
	}
	return err
}

func (w *writer) send(ctx context.Context, size int, do func(c *conn) error) error {
	r := &request{do: do, size: size, done: make(chan error, 1)}
	if err := w.enqueue(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		return <-r.done
	}
}

func (w *writer) enqueue(ctx context.Context, r *request) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil { // or the select might not notice
		return err
	}
	select {
	case w.queue <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ready says whether a request would be accepted.
func (w *writer) ready(ctx context.Context) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

func (w *writer) loop() {
	defer close(w.ended)
	for r := range w.queue {
		w.collect(r)
		w.commit(w.batch)
		clear(w.batch)
		if w.conn.grown {
			w.renew()
		}
	}
}

// renew gives the memory back that heavy values have taken. The new connection
// comes first: if the last one were closed, the log would be folded up.
func (w *writer) renew() {
	c, err := w.open()
	if err != nil {
		return // the old one is as good, only larger
	}
	w.conn.close()
	w.conn = c
}

// collect takes first and everything that waits behind it, up to the bounds.
func (w *writer) collect(first *request) {
	w.batch = w.batch[:0]
	bytes := 0
	for r := first; ; {
		if r.state.CompareAndSwap(waiting, taken) {
			w.batch = append(w.batch, r)
			bytes += r.size
		}
		if len(w.batch) == maxBatch || bytes >= maxBatchBytes {
			return
		}
		select {
		case next, ok := <-w.queue:
			if !ok {
				return
			}
			r = next
		default:
			return
		}
	}
}

// commit runs a batch in one transaction and answers it. If one request goes
// wrong in the middle of its writes, the transaction is given up and each
// request gets its own, so that the others do not suffer.
func (w *writer) commit(batch []*request) {
	if len(batch) == 0 {
		return
	}
	before := w.conn.db.TotalChanges()
	if err := w.conn.prep(`BEGIN IMMEDIATE`).run(); err != nil {
		w.failed(err)
		answer(batch, fmt.Errorf("begin: %w", err))
		return
	}
	for _, r := range batch {
		if w.try(r) {
			continue
		}
		w.undo()
		w.failed(r.err)
		if err := w.conn.rollback(); err != nil {
			answer(batch, fmt.Errorf("roll back: %w", err))
			return
		}
		if len(batch) == 1 {
			r.done <- r.err
			return
		}
		for i := range batch {
			w.commit(batch[i : i+1])
		}
		return
	}
	if err := w.conn.prep(`COMMIT`).run(); err != nil {
		w.conn.rollback()
		w.undo()
		w.failed(err)
		answer(batch, fmt.Errorf("commit: %w", err))
		return
	}
	if w.conn.db.TotalChanges() != before {
		w.stuck.Store(false)
	}
	for _, r := range batch {
		r.done <- r.err
	}
}

func (w *writer) failed(err error) {
	if isAway(err) {
		w.stuck.Store(true)
	}
}

// probe says whether the disk takes writes. As long as they go well it only looks at
// that; once they do not, it writes something that changes nothing, so that a host to
// which nobody sends work finds out that there is room again.
func (w *writer) probe(ctx context.Context) error {
	if !w.stuck.Load() {
		return nil
	}
	err := w.send(ctx, 0, func(c *conn) error {
		version := int64(0)
		if _, err := c.prep(`PRAGMA user_version`).one(func(r *row) { version = r.int() }); err != nil {
			return err
		}
		return c.db.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, version))
	})
	if err == nil {
		w.stuck.Store(false)
	}
	return err
}

// try executes one request. It reports false if the transaction must not be
// committed: a failed request has left something behind, or SQLite has rolled
// back.
func (w *writer) try(r *request) bool {
	before := w.conn.db.TotalChanges()
	r.err = r.do(w.conn)
	return r.err == nil || w.conn.db.TotalChanges() == before && !w.conn.db.GetAutocommit()
}

func answer(batch []*request, err error) {
	for _, r := range batch {
		r.done <- err
	}
}

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/ncruces/go-sqlite3"
)

// readers is a pool of reading connections. They are opened when first needed
// and the one used last is used again, so a quiet host has one or none.
type readers struct {
	open  func() (*conn, error)
	slots chan struct{} // holds one token per connection in use

	mu     sync.Mutex
	idle   []*conn
	closed chan struct{}
}

func newReaders(max int, open func() (*conn, error)) *readers {
	return &readers{open: open, slots: make(chan struct{}, max), closed: make(chan struct{})}
}

// close waits for the reads under way and refuses new ones.
func (p *readers) close() error {
	p.mu.Lock()
	select {
	case <-p.closed:
		p.mu.Unlock()
		return nil
	default:
	}
	close(p.closed)
	p.mu.Unlock()
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	var errs []error
	for _, c := range p.idle {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

func (p *readers) acquire(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.closed:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := p.take()
	if err != nil {
		<-p.slots
	}
	return c, err
}

func (p *readers) take() (*conn, error) {
	p.mu.Lock()
	select {
	case <-p.closed:
		p.mu.Unlock()
		return nil, store.ErrClosed
	default:
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.open()
	if err != nil {
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	return c, nil
}

// release takes a connection back, unless it has grown or is still inside a
// transaction that cannot be ended.
func (p *readers) release(c *conn) {
	if err := c.rollback(); err != nil || c.grown {
		c.close()
	} else {
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}
	<-p.slots
}

// read runs fn, which executes one statement, on a reading connection.
func (p *readers) read(ctx context.Context, fn func(c *conn) error) error {
	c, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer p.release(c)
	c.db.SetInterrupt(ctx)
	err = fn(c)
	if err != nil && errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// snapshot runs fn, which may execute several statements, as of one moment.
func (p *readers) snapshot(ctx context.Context, fn func(c *conn) error) error {
	return p.read(ctx, func(c *conn) error {
		if err := c.prep(`BEGIN`).run(); err != nil {
			return err
		}
		return fn(c) // release ends the transaction
	})
}

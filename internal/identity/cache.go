package identity

import (
	"context"
	"sync"
	"time"
)

// cacheSize bounds how many verified tokens a lane remembers.
const cacheSize = 10_000

// cache remembers tokens that were verified, by their hash, for as long as that
// may be relied on and no longer. What was refused is not remembered: it could
// push out what is good. Requests with the same token wait for one verification.
type cache struct {
	now func() time.Time

	mu      sync.RWMutex
	entries map[[32]byte]*verified
	flights map[[32]byte]*flight
}

type flight struct {
	done chan struct{}
	v    *verified
	err  error
}

func newCache(now func() time.Time) *cache {
	return &cache{now: now, entries: map[[32]byte]*verified{}, flights: map[[32]byte]*flight{}}
}

// get returns what is known of a token, or verifies it.
func (c *cache) get(ctx context.Context, key [32]byte, verify func(context.Context) (*verified, error)) (*verified, error) {
	c.mu.RLock()
	v := c.entries[key]
	c.mu.RUnlock()
	if v != nil && c.now().Before(v.until) {
		return v, nil
	}
	c.mu.Lock()
	f := c.flights[key]
	if f != nil {
		c.mu.Unlock()
		select {
		case <-f.done:
			return f.v, f.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f = &flight{done: make(chan struct{})}
	c.flights[key] = f
	c.mu.Unlock()
	landed := false
	defer func() {
		if !landed { // a panic on its way up: nobody may be left waiting
			f.err = context.Canceled
		}
		c.land(key, f)
	}()
	// Others wait for this, so it must not end because this client has gone.
	f.v, f.err = verify(context.WithoutCancel(ctx))
	landed = true
	return f.v, f.err
}

func (c *cache) land(key [32]byte, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, key)
	delete(c.entries, key)
	if f.err == nil {
		c.room()
		c.entries[key] = f.v
	}
	close(f.done)
}

// room makes place for one more: of what is over if there is any, else of
// anything. A token that is forgotten is verified again.
func (c *cache) room() {
	if len(c.entries) < cacheSize {
		return
	}
	now := c.now()
	for key, v := range c.entries {
		if !now.Before(v.until) {
			delete(c.entries, key)
		}
	}
	for key := range c.entries {
		if len(c.entries) < cacheSize*9/10 {
			return
		}
		delete(c.entries, key)
	}
}

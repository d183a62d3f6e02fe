package sqlite

import "sync"

// cache keeps rows that are read with almost every request and change almost
// never. It is exact: the database belongs to this process, and what changes a
// row clears the cache once that is durable, before it is announced. What was
// not found is not kept, or guessing would fill it. A full cache starts over, so it
// should be larger than what a host has in daily use.
type cache[K comparable, V any] struct {
	mu    sync.RWMutex
	most  int // entries
	byKey map[K]V
	epoch int // counts clears, so that a read begun before one is not kept
}

// get also returns the epoch to put with.
func (c *cache[K, V]) get(key K) (v V, epoch int, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok = c.byKey[key]
	return v, c.epoch, ok
}

func (c *cache[K, V]) put(key K, v V, epoch int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
	if len(c.byKey) >= c.most {
		c.byKey = nil
	}
	if c.byKey == nil {
		c.byKey = map[K]V{}
	}
	c.byKey[key] = v
}

func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey = nil
	c.epoch++
}

package host

import (
	"container/list"
	"sync"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// snapshots keeps the encoded snapshots read last, within a bound of bytes. A
// snapshot is named by run and sequence, so it can never be out of date.
type snapshots struct {
	mu    sync.Mutex
	max   int
	bytes int
	byKey map[ids.Run]*list.Element
	order *list.List // most recent first
}

type snapshotEntry struct {
	id  ids.Run
	seq int64
	v   jsontext.Value
}

func newSnapshots(max int) *snapshots {
	return &snapshots{max: max, byKey: map[ids.Run]*list.Element{}, order: list.New()}
}

// has reports whether some snapshot of a run is at hand, of whatever sequence.
func (c *snapshots) has(id ids.Run) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[id] != nil
}

func (c *snapshots) get(id ids.Run, seq int64) jsontext.Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byKey[id]
	if el == nil || el.Value.(*snapshotEntry).seq != seq {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*snapshotEntry).v
}

func (c *snapshots) put(id ids.Run, seq int64, v jsontext.Value) {
	if len(v) > c.max/8 {
		return // one large run must not push out everything else
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byKey[id]; el != nil {
		c.remove(el)
	}
	c.byKey[id] = c.order.PushFront(&snapshotEntry{id, seq, v})
	c.bytes += len(v)
	for c.bytes > c.max {
		c.remove(c.order.Back())
	}
}

// forget drops what is at hand of a run.
func (c *snapshots) forget(id ids.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byKey[id]; el != nil {
		c.remove(el)
	}
}

func (c *snapshots) remove(el *list.Element) {
	e := el.Value.(*snapshotEntry)
	c.order.Remove(el)
	delete(c.byKey, e.id)
	c.bytes -= len(e.v)
}

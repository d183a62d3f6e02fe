package engine

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// performing are the effects that calls of this process are at: the store tells
// its instances apart, and this its calls.
type performing struct {
	mu sync.Mutex
	by map[ids.Run]chan struct{} // closed when the call lets go
}

// enter waits until an effect is nobody's, and takes it.
func (f *performing) enter(ctx context.Context, e *Engine, id ids.Run) (leave func(), err error) {
	var late <-chan time.Time
	for {
		f.mu.Lock()
		held := f.by[id]
		if held == nil {
			mine := make(chan struct{})
			if f.by == nil {
				f.by = map[ids.Run]chan struct{}{}
			}
			f.by[id] = mine
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.by, id)
				f.mu.Unlock()
				close(mine)
			}, nil
		}
		f.mu.Unlock()
		if late == nil {
			late = e.clock.After(waitForOther)
		}
		select {
		case <-held:
		case <-late:
			return nil, busyElsewhere()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// insideKey is where a context says which effects it is a part of: from the
// innermost one outwards.
type insideKey struct{}

type inside struct {
	id    string
	outer context.Context
}

func within(ctx context.Context, id string) bool {
	for {
		i, ok := ctx.Value(insideKey{}).(inside)
		if !ok || i.id == id {
			return ok
		}
		ctx = i.outer
	}
}

package identity

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// useEvery is how often the use of one key is taken down, at most.
const useEvery = time.Minute

// maxUses bounds what is remembered between two flushes: the use of more keys than
// that in one minute is taken down for some of them.
const maxUses = 16384

// uses remembers when keys were last used, away from the path of requests.
type uses struct {
	mu   sync.Mutex
	last map[[2]string]time.Time // by tenant and key: since the last flush
	done map[[2]string]time.Time // taken down, and not due again
}

func (u *uses) note(tenant, id string, now time.Time) {
	at := [2]string{tenant, id}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.last[at]; known || now.Sub(u.done[at]) < useEvery && !now.Before(u.done[at]) || len(u.last) >= maxUses {
		return
	}
	if u.last == nil {
		u.last = map[[2]string]time.Time{}
	}
	u.last[at] = now
}

// take empties the list.
func (u *uses) take(now time.Time) []store.Used {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]store.Used, 0, len(u.last))
	for at, when := range u.done {
		if now.Sub(when) >= useEvery || now.Before(when) {
			delete(u.done, at)
		}
	}
	for at, when := range u.last {
		out = append(out, store.Used{Tenant: at[0], ID: at[1], At: when})
		if u.done == nil {
			u.done = map[[2]string]time.Time{}
		}
		u.done[at] = when
	}
	u.last = nil
	return out
}

// Flush takes down which keys have been used since the last call. What a call
// cannot write is lost: it says when a key was last seen, and nothing rests on it.
func (k *APIKeys) Flush(ctx context.Context) error {
	list := k.uses.take(k.now())
	if len(list) == 0 {
		return nil
	}
	return k.store.Touch(ctx, list)
}

// FlushEvery is Flush now and then, and once more when ctx ends.
func (k *APIKeys) FlushEvery(ctx context.Context, after func(time.Duration) <-chan time.Time, failed func(error)) {
	for {
		select {
		case <-ctx.Done():
			last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer done()
			if err := k.Flush(last); err != nil {
				failed(err)
			}
			return
		case <-after(useEvery / 4):
			if err := k.Flush(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		}
	}
}

package engine

import "sync"

// tally counts work in progress. Unlike a sync.WaitGroup it may be added to
// while somebody waits for it to come down to nothing.
type tally struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n reaches nothing; nil if nobody waits
}

func (t *tally) add() {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// nothing returns a channel that is closed once nothing is in progress.
func (t *tally) nothing() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	ch := t.idle
	if t.n == 0 {
		close(ch)
		t.idle = nil
	}
	return ch
}

package postgres

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// watched counts who waits for it.
type watched struct {
	context.Context
	n *atomic.Int64
}

func (w watched) Done() <-chan struct{} {
	w.n.Add(1)
	return w.Context.Done()
}

// TestTogether: nobody is given an answer to a question that was asked before it came,
// and those who wait together cost one question.
func TestTogether(t *testing.T) {
	var tg together[string, int64]
	var value, asked atomic.Int64
	begun, answer := make(chan struct{}), make(chan struct{})
	ask := func(context.Context) (int64, error) {
		asked.Add(1)
		v := value.Load()
		begun <- struct{}{}
		<-answer
		return v, nil
	}
	var first, late sync.WaitGroup
	first.Go(func() {
		if v, err := tg.do(t.Context(), "k", ask); v != 0 || err != nil {
			t.Errorf("first: %d, %v", v, err)
		}
	})
	<-begun
	value.Store(1) // a change, after which the others come
	const n = 20
	var waiting atomic.Int64
	for range n {
		late.Go(func() {
			if v, err := tg.do(watched{t.Context(), &waiting}, "k", ask); v != 1 || err != nil {
				t.Errorf("late: %d, %v", v, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tg.do(ctx, "k", ask); !errors.Is(err, context.Canceled) {
		t.Errorf("whose time is over: %v", err)
	}
	for waiting.Load() < n {
		runtime.Gosched()
	}
	answer <- struct{}{}
	first.Wait()
	<-begun
	answer <- struct{}{}
	late.Wait()
	if got := asked.Load(); got != 2 {
		t.Errorf("%d questions", got)
	}
	tg.mu.Lock()
	defer tg.mu.Unlock()
	if len(tg.asking) != 0 {
		t.Errorf("%d questions are kept", len(tg.asking))
	}
}

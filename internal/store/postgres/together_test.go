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

// TestTogetherOfNobody: a question that nobody waits for any longer is ended, and one
// that nobody is left to ask is not asked. Whoever comes later asks anew.
func TestTogetherOfNobody(t *testing.T) {
	var tg together[string, int64]
	var asked, ended atomic.Int64
	begun := make(chan struct{}, 1)
	ask := func(ctx context.Context) (int64, error) {
		asked.Add(1)
		begun <- struct{}{}
		<-ctx.Done() // a database that is silent
		ended.Add(1)
		return 0, ctx.Err()
	}
	come := func() (leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int64
		var gone sync.WaitGroup
		gone.Go(func() {
			if _, err := tg.do(watched{ctx, &n}, "k", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("hung up: %v", err)
			}
		})
		for n.Load() == 0 {
			runtime.Gosched()
		}
		return func() { cancel(); gone.Wait() }
	}
	first := come()
	<-begun
	late := come() // waits for the question after the first
	late()
	first()
	for { // the one who asks is gone by and by
		tg.mu.Lock()
		n := len(tg.asking)
		tg.mu.Unlock()
		if n == 0 {
			break
		}
		runtime.Gosched()
	}
	if asked.Load() != 1 || ended.Load() != 1 {
		t.Errorf("%d questions, %d ended", asked.Load(), ended.Load())
	}
	v, err := tg.do(t.Context(), "k", func(context.Context) (int64, error) { return 7, nil })
	if v != 7 || err != nil {
		t.Errorf("afterwards: %d, %v", v, err)
	}
}

// TestTogetherPanics: what breaks off is a failure of those who asked, and of nobody else.
func TestTogetherPanics(t *testing.T) {
	var tg together[string, int64]
	if _, err := tg.do(t.Context(), "k", func(context.Context) (int64, error) { panic("no such row") }); err == nil {
		t.Error("it was answered")
	}
	if v, err := tg.do(t.Context(), "k", func(context.Context) (int64, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("afterwards: %d, %v", v, err)
	}
}

package fermata

import "context"

// background is work that goes on until it is ended.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// begin does work beside everything else.
func begin(work func(context.Context)) *background {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		work(ctx)
	}()
	return b
}

// end returns once the work has ended, or ctx has. Work that never began is over.
func (b *background) end(ctx context.Context) {
	if b == nil {
		return
	}
	b.cancel()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

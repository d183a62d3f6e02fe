package engine

import (
	"context"
	"sync"
	"testing"

	"github.com/fermata-run/fermata/node"
)

// probe is a node type whose calls a test watches and holds. It stands for work
// with an effect outside.
type probe struct {
	id      string
	deaf    bool             // it does not notice that it is not wanted any more
	entered chan *node.Input // each call as it begins
	let     chan struct{}    // one receive lets one call go on; closed: all of them

	mu    sync.Mutex
	calls map[string]int // by run, node and visit
	open  int
	most  int // calls open at the same time
}

func newProbe(t testing.TB, id string) *probe {
	p := &probe{id: id, entered: make(chan *node.Input, 4096), let: make(chan struct{}), calls: map[string]int{}}
	t.Cleanup(p.free)
	return p
}

// free lets every call go on, now and from now on.
func (p *probe) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.let:
	default:
		close(p.let)
	}
}

func (p *probe) typ() node.Type { return node.Type{ID: p.id, Run: p.run} }

func (p *probe) run(ctx context.Context, in *node.Input) (node.Result, error) {
	p.mu.Lock()
	p.calls[in.NodeID]++
	p.open++
	p.most = max(p.most, p.open)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.open--
		p.mu.Unlock()
	}()
	select {
	case p.entered <- in:
	default: // a test that does not watch
	}
	if p.deaf {
		<-p.let
		return node.Done(node.Outputs{"attempt": in.Attempt}), nil
	}
	select {
	case <-p.let:
		return node.Done(node.Outputs{"attempt": in.Attempt}), nil
	case <-ctx.Done():
		return node.Result{}, ctx.Err()
	}
}

// count is how many times a node has been called.
func (p *probe) count(nodeID string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[nodeID]
}

// total is how many calls there have been.
func (p *probe) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.calls {
		n += c
	}
	return n
}

// atOnce is how many calls were open at the same time.
func (p *probe) atOnce() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// pass lets one call go on.
func (p *probe) pass(t testing.TB) {
	t.Helper()
	send(t, "a call to go on", p.let)
}

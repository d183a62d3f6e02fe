package engine

import (
	"context"
	"sync"
	"unicode/utf8"

	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json/jsontext"
)

// launch makes a call of an impure node beside the turn. Its start is durable.
// A draining engine leaves the call to the run's next owner.
func (a *actor) launch(x run.Execute) {
	e := a.e
	if e.draining.Load() || a.s.Replaying() {
		return // of a replay nothing but pure nodes is ever executed
	}
	key := keyOf(x)
	step, typ, bad := e.target(a.s, x)
	if bad != nil {
		e.actors.deliver(e, a.id, message{cmd: *bad, done: &key})
		return
	}
	ctx, cancel := context.WithCancel(effect.Permit(a.life.ctx, e.cfg.Seams))
	if a.calls == nil {
		a.calls = map[callKey]context.CancelFunc{}
	}
	a.calls[key] = cancel
	// Only here may a call have effects: that of a pure node, within a turn, may not.
	chunk, flush := a.chunker(ctx, x)
	in := e.input(a.s, step, typ, x, callServices{scope: &locked{scope: a.s.Frozen()}, chunk: chunk})
	e.outsideServices(a.s, typ, x, in)
	e.backlog.add(a.id.Tenant, 1)
	e.calls.add()
	over := sync.OnceFunc(e.calls.done)
	go func() {
		defer over()
		r, ok := e.outside(ctx, typ, in, over)
		if !ok || ctx.Err() != nil {
			return // nobody wants it any more, or the next owner will ask again
		}
		flush()
		r.Inverse = key.inverse
		e.actors.deliver(e, a.id, message{cmd: r, done: &key})
	}()
}

// locked is a scope that any number of goroutines may ask, for a node may have
// several.
type locked struct {
	mu     sync.Mutex
	scope  expr.Scope
	closed bool // nothing is to be seen any more
}

// Lookup implements expr.Scope.
func (l *locked) Lookup(name string) (jsontext.Value, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false
	}
	return l.scope.Lookup(name)
}

// outside makes a call once there is room for it. over is called when nobody waits
// for the call any more, even if its code does not notice.
func (e *Engine) outside(ctx context.Context, typ *node.Type, in *node.Input, over func()) (r run.NodeResult, ok bool) {
	tenant := in.TenantID
	ready, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.looking, cancel) // an engine that stops leaves what has not begun to others
	err := e.slots.Enter(ready, tenant)
	stop()
	cancel()
	e.begun(tenant)
	if err != nil {
		return r, false
	}
	leave := sync.OnceFunc(func() { e.slots.Leave(tenant) })
	defer leave()
	for wait := firstWait; ; wait = min(2*wait, longestGap) {
		err := outcomes(in.Wake)
		if err == nil {
			return e.tracked(ctx, typ, in, leave, over), true
		}
		if isDefect(err) {
			return unreadable(in, err), true
		}
		if !e.rest(wait) || ctx.Err() != nil {
			return r, false
		}
	}
}

// chunker makes the function by which a call streams its output, and the one that
// sends what is left at its end. Text need not be cut between characters, nor within
// a secret: what may be the beginning of one waits for the rest of it.
func (a *actor) chunker(ctx context.Context, x run.Execute) (chunk func(string, bool) error, flush func()) {
	var mu sync.Mutex
	rest := ""
	send := func(text string, last bool) error {
		if text == "" && !last {
			return nil
		}
		c := run.NodeChunk{NodeID: x.NodeID, Visit: x.Visit, Attempt: x.Attempt, Text: cleanText(text), Last: last}
		return a.e.Do(ctx, a.id, c).Err
	}
	chunk = func(text string, last bool) error {
		mu.Lock()
		defer mu.Unlock()
		text, rest = whole(rest + text)
		if last {
			text, rest = text+rest, ""
		} else if n := a.e.cfg.Redact.Hold(a.id.Tenant, text); n > 0 {
			text, rest = text[:len(text)-n], text[len(text)-n:]+rest
		}
		if max := a.e.cfg.Limits.MaxPayloadBytes; max > 0 && len(text) > max {
			return node.Fail(string(problem.PayloadTooLarge), "a piece of output is larger than %d bytes", max)
		}
		return send(text, last)
	}
	flush = func() {
		mu.Lock()
		defer mu.Unlock()
		text, _ := whole(rest)
		rest = ""
		send(text, false) //nolint:errcheck // the call is over: its result says what became of it
	}
	return chunk, flush
}

// whole cuts off a character that is begun at the end of text.
func whole(text string) (string, string) {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if i := len(text) - n; utf8.RuneStart(text[i]) {
			if !utf8.FullRuneInString(text[i:]) {
				return text[:i], text[i:]
			}
			break
		}
	}
	return text, ""
}

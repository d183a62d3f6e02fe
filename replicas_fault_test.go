package fermata_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/node"
)

// swallowing is a way to a server on which everything can get lost without a word.
type swallowing struct{ hole atomic.Bool }

// through is an address that leads to a database by such a way.
func (s *swallowing) through(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c, server)
		}
	}()
	u.Host = l.Addr().String()
	return u.String() + "&connect_timeout=2"
}

func (s *swallowing) serve(client net.Conn, at string) {
	server, err := net.Dial("tcp", at)
	if err != nil {
		client.Close()
		return
	}
	var gone atomic.Bool // nothing gets through any more, whatever becomes of the way
	pass := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := from.Read(b)
			if s.hole.Load() {
				gone.Store(true)
			}
			if n > 0 && !gone.Load() {
				_, err = to.Write(b[:n])
			}
			if err != nil {
				return
			}
		}
	}
	go pass(server, client)
	pass(client, server)
}

// TestReplicaCutOffByTheNetwork: a replica from which nothing comes back any more loses
// its runs to another one, answers that it cannot, and works again by itself once the
// network is there; what it was doing when it was cut off counts once.
func TestReplicaCutOffByTheNetwork(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	begun := make(chan string, 10)
	work := func(name string) func(*fermata.Config) {
		return func(c *fermata.Config) {
			c.Nodes = []node.Type{{ID: "test.work", Run: func(ctx context.Context, _ *node.Input) (node.Result, error) {
				begun <- name
				if calls.Add(1) == 1 {
					<-ctx.Done() // until its replica knows that it is lost
					return node.Result{}, ctx.Err()
				}
				return node.Done(nil), nil
			}}}
		}
	}
	address := pgtest.Database(t, t.TempDir())
	var way swallowing
	at := func(address string) func(*fermata.Config) {
		return func(c *fermata.Config) { c.Store, c.StoreConnections, c.Lease = address, 6, 2*time.Second }
	}
	b := start(t, at(address), work("b"))
	a := start(t, at(way.through(t, address)), work("a"))
	a.register(flow("w", []any{step("x", "test.work", nil)}, []any{}))
	id := a.run("w")
	if name := <-begun; name != "a" {
		t.Fatalf("the run began on %s", name)
	}
	way.hole.Store(true)
	b.await(id, "completed")
	if name := <-begun; name != "b" || calls.Load() != 2 {
		t.Errorf("gone on with by %s, after %d calls", name, calls.Load())
	}
	a.do("GET", "/runs/"+seg(id), nil).want(t, 503)
	way.hole.Store(false)
	var got answer
	for range 600 {
		if got = a.do("GET", "/runs/"+seg(id), nil); got.status == 200 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if got.status != 200 || got.str("status") != "completed" {
		t.Fatalf("after the network is back: %d %s", got.status, got.body)
	}
	next := a.run("w")
	a.await(next, "completed")
	b.await(next, "completed")
}

// TestReplicasWithWrongClocks: machines whose clocks are wrong by minutes, each in its
// own direction. What one puts off another one finds due at its time; logs are in order;
// leases, and credentials that expire, are not what a machine's clock says.
func TestReplicasWithWrongClocks(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t, t.TempDir())
	at := func(wrong time.Duration) *server {
		return start(t, func(c *fermata.Config) { c.Store, c.StoreConnections, c.Lease = address, 6, 2*time.Second }, fermata.WrongClock(wrong))
	}
	ahead, behind := at(7*time.Minute), at(-11*time.Minute)
	began := time.Now().Add(-2 * time.Second)
	ahead.register(flow("nap", []any{step("ok", "core.approvalGate", map[string]any{"title": "?"}), step("d", "core.delay", map[string]any{"delayMs": 300})},
		[]any{edge("ok", "d")}))
	for i, s := range []*server{ahead, behind} {
		other := []*server{behind, ahead}[i]
		id := s.run("nap")
		other.await(id, "waiting-approval")
		other.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
		s.await(id, "completed") // a timer of the other's, minutes away by some clock
		last := began
		for _, e := range s.events(id) {
			at, err := time.Parse(time.RFC3339, e["timestamp"].(string))
			if err != nil || at.Before(last.Add(-time.Second)) {
				t.Errorf("an event of %v behind one of %v: %v", at, last, err)
			}
			last = at
		}
		if last.Equal(began) || last.After(time.Now().Add(time.Minute)) {
			t.Errorf("the last event is of %v", last)
		}
	}
	// Good for three minutes: whoever is seven ahead must take it, too; and one that is
	// over is over for whoever is eleven behind.
	keyFor := func(seconds int) string {
		return "Bearer " + behind.do("POST", "/host/fermata/keys", map[string]any{
			"name": fmt.Sprint(seconds), "scopes": []string{"runs:read"}, "expiresInSeconds": seconds}).want(t, 201).str("key")
	}
	soon, over := keyFor(180), keyFor(1)
	for name, s := range map[string]*server{"ahead": ahead, "behind": behind} {
		if r := s.do("GET", "/runs", nil, "Authorization", soon); r.status != 200 {
			t.Errorf("a key that is good for minutes, %s: %d %s", name, r.status, r.body)
		}
		status := 0
		for range 600 {
			if status = s.do("GET", "/runs", nil, "Authorization", over).status; status == 401 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if status != 401 {
			t.Errorf("a key that is over, %s: %d", name, status)
		}
	}
}

// mostIdle bounds the statements an idle replica has executed in a minute.
const mostIdle = 420

// TestIdleReplicasAskLittle: however many replicas there are, each asks the database a
// bounded number of times while nothing happens.
func TestIdleReplicasAskLittle(t *testing.T) {
	t.Parallel()
	r := replicas(t, 3, func(c *fermata.Config) { c.Lease = 15 * time.Second })
	r[0].register(gate("g"))
	id := r[0].run("g")
	r[0].await(id, "waiting-approval")
	time.Sleep(2 * time.Second) // what follows from the start has been done
	began, before := time.Now(), make([]int64, len(r))
	for i, s := range r {
		before[i] = s.host.Statements()
	}
	time.Sleep(10 * time.Second)
	for i, s := range r {
		n := float64(s.host.Statements() - before[i])
		// Of a machine that is held up: fewer, in a longer time.
		if most := mostIdle*time.Since(began).Minutes() + 20; n > most || n == 0 {
			t.Errorf("replica %d had %.0f statements executed, at most %.0f are expected", i, n, most)
		}
		t.Logf("%.0f statements a minute", n/time.Since(began).Minutes())
	}
}

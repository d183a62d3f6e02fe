package fermata_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/node"
)

// replicas starts hosts that share a database.
func replicas(t *testing.T, n int, change ...func(*fermata.Config)) []*server {
	t.Helper()
	address := pgtest.Database(t, t.TempDir())
	var out []*server
	for range n {
		out = append(out, start(t, append(change, func(c *fermata.Config) {
			c.Store, c.StoreConnections, c.Lease = address, 8, 2*time.Second
		})...))
	}
	return out
}

// TestReplicasServeAnyRun: what one replica begins, another one lists, streams,
// answers and ends; the streams of both see every event once. All of that holds where
// replicas do not hear of each other, where they do, where all that is said is lost,
// and where the address to listen at leads nowhere.
func TestReplicasServeAnyRun(t *testing.T) {
	t.Parallel()
	pgtest.Shared(t)
	for name, listen := range map[string]string{
		"by looking": "", "by listening": fermata.SameStore, "everything said is lost": pgtest.Database(t, t.TempDir()),
		"nobody answers": "postgres://fermata@127.0.0.1:1/x?sslmode=disable",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replicas(t, 2, func(c *fermata.Config) { c.StoreListen = listen })
			serveAnyRun(t, r[0], r[1])
		})
	}
}

func serveAnyRun(t *testing.T, a, b *server) {
	a.register(gate("g"))
	id := a.run("g")
	a.await(id, "waiting-approval")
	onA, onB := a.subscribe(id, "?streamMode=debug"), b.subscribe(id, "?streamMode=debug")
	b.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	for name, s := range map[string]*subscription{"the replica that began it": onA, "the other": onB} {
		frames := s.frames()
		want := int64(0)
		for _, f := range frames {
			if seq := f.seq(t); seq >= 0 {
				if seq != want {
					t.Errorf("%s: event %d in place of %d", name, seq, want)
				}
				want = seq + 1
			}
		}
		if last := frames[len(frames)-1]; !strings.Contains(string(last.data), "run.completed") {
			t.Errorf("%s: the stream ends with %s", name, last.data)
		}
	}
	for _, s := range []*server{a, b} {
		if got := s.await(id, "completed"); got["runId"] != id {
			t.Errorf("snapshot %v", got)
		}
	}
}

// TestReplicasReachARunUnderWay: a call under way on one replica is cut off by a
// cancellation that comes to another, and by nobody else.
func TestReplicasReachARunUnderWay(t *testing.T) {
	t.Parallel()
	begun, cut := make(chan string, 10), make(chan string, 10)
	var calls atomic.Int64
	block := func(name string) func(*fermata.Config) {
		return func(c *fermata.Config) {
			c.Nodes = []node.Type{{ID: "test.block", Run: func(ctx context.Context, _ *node.Input) (node.Result, error) {
				calls.Add(1)
				begun <- name
				<-ctx.Done()
				cut <- name
				return node.Result{}, ctx.Err()
			}}}
		}
	}
	address := pgtest.Database(t, t.TempDir())
	shared := func(c *fermata.Config) { c.Store, c.StoreConnections, c.Lease = address, 8, 2*time.Second }
	a, b := start(t, shared, block("a")), start(t, shared, block("b"))
	a.register(flow("b", []any{step("x", "test.block", nil)}, []any{}))
	id := a.run("b")
	if name := <-begun; name != "a" {
		t.Fatalf("the run began on %s", name)
	}
	b.do("POST", "/runs/"+seg(id)+"/cancel", map[string]any{"reason": "enough"}).want(t, 200)
	select {
	case name := <-cut:
		if name != "a" {
			t.Errorf("a call on %s was cut off", name)
		}
	case <-time.After(hang):
		t.Fatal("the call goes on after the cancellation")
	}
	a.await(id, "cancelled")
	b.await(id, "cancelled")
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestReplicasHandOver: a replica that leaves in order hands its runs over; they are
// gone on with at once, and each once.
func TestReplicasHandOver(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	begun := make(chan struct{}, 10)
	work := func(c *fermata.Config) {
		c.Nodes = []node.Type{{ID: "test.work", Run: func(ctx context.Context, _ *node.Input) (node.Result, error) {
			begun <- struct{}{}
			if calls.Add(1) == 1 {
				<-ctx.Done() // until its replica leaves
				return node.Result{}, ctx.Err()
			}
			return node.Done(nil), nil
		}}}
	}
	r := replicas(t, 2, work)
	r[0].register(flow("w", []any{step("x", "test.work", nil)}, []any{}))
	id := r[0].run("w")
	<-begun
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no grace
	h := r[0].host
	r[0].host = nil
	if err := h.Stop(ctx); err != nil {
		t.Error(err)
	}
	r[0].http.CloseClientConnections()
	r[0].http.Close()
	r[1].await(id, "completed")
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestReplicasMakeOneFirstKey: of replicas that begin together on an empty database, one
// makes the first key and shows it; the others show none.
func TestReplicasMakeOneFirstKey(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t, t.TempDir())
	if _, err := fermata.MigrateUp(t.Context(), address, 0); err != nil {
		t.Fatal(err)
	}
	hosts := make([]*fermata.Host, 6)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range hosts {
		wg.Go(func() {
			<-begin
			h, err := fermata.Open(t.Context(), fermata.Config{Store: address, StoreConnections: 3, MasterKey: testMasterKey})
			if err != nil {
				t.Error(err)
				return
			}
			hosts[i] = h
		})
	}
	close(begin)
	wg.Wait()
	shown := 0
	for _, h := range hosts {
		if h == nil {
			continue
		}
		if h.FirstKey() != "" {
			shown++
		}
		if n, err := h.Store().Keys().Count(t.Context()); err != nil || n != 1 {
			t.Errorf("%d keys: %v", n, err)
		}
		if err := h.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if shown != 1 {
		t.Errorf("%d first keys were shown", shown)
	}
}

// TestListenNeedsAStore: what replicas hear of each other is about a shared database.
func TestListenNeedsAStore(t *testing.T) {
	if _, err := fermata.Open(t.Context(), fermata.Config{DataDir: t.TempDir(), StoreListen: fermata.SameStore}); err == nil {
		t.Error("a folder is listened to")
	}
}

// TestReplicasShareAKey: an Idempotency-Key counts whichever replica sees it.
func TestReplicasShareAKey(t *testing.T) {
	t.Parallel()
	r := replicas(t, 3)
	r[0].register(gate("g"))
	body := map[string]any{"workflowId": "g"}
	var mu sync.Mutex
	ids := map[string]int{}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			a := r[i%3].as(t).do("POST", "/runs", body, keyHeader, idem(1))
			for range 50 {
				if a.status != http.StatusConflict && a.status != http.StatusServiceUnavailable {
					break
				}
				time.Sleep(20 * time.Millisecond)
				a = r[i%3].as(t).do("POST", "/runs", body, keyHeader, idem(1))
			}
			if a.status != 201 {
				t.Errorf("%d %s", a.status, a.body)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[a.str("runId")]++
		})
	}
	wg.Wait()
	if len(ids) != 1 || r[1].runCount() != 1 {
		t.Errorf("%v, %d runs", ids, r[1].runCount())
	}
}

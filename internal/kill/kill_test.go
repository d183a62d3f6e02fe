package kill

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// always answers everything: any random source will do.
var always = rand.New(rand.NewPCG(1, 2))

// kills is how often TestKill kills.
func kills(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("FERMATA_KILLS"))
	if os.Getenv("FERMATA_KILLS") == "" {
		return 4
	}
	if err != nil || n < 1 {
		t.Fatalf("FERMATA_KILLS=%s is no number of kills", os.Getenv("FERMATA_KILLS"))
	}
	return n
}

// seed is what a test's choices follow from. What the host makes of the moment
// of a kill cannot be repeated exactly, only the moment.
func seed(t *testing.T) uint64 {
	s := rand.Uint64()
	if v := os.Getenv("FERMATA_KILL_SEED"); v != "" {
		var err error
		if s, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FERMATA_KILL_SEED=%d", s)
	return s
}

// TestKill drives a mixed load, kills the host again and again, and then holds
// everything it has ever promised against what it says.
func TestKill(t *testing.T) {
	s := seed(t)
	rng := rand.New(rand.NewPCG(s, 0))
	w := newLoad(t)
	w.most = 400
	w.begin(8, s)
	for round := range kills(t) {
		time.Sleep(time.Duration(20+rng.IntN(900)) * time.Millisecond)
		w.h.kill()
		if w.r != nil {
			w.r.drain()
		}
		for rng.IntN(4) == 0 {
			// Not even allowed to come up, or to finish what it found.
			w.h.begin()
			time.Sleep(time.Duration(rng.IntN(120)) * time.Millisecond)
			w.h.kill()
			if w.r != nil {
				w.r.drain()
			}
		}
		w.made.Store(0)
		w.h.start()
		if round%3 != 1 {
			w.sweep(rng, 0.5)
		}
		if t.Failed() {
			break
		}
	}
	w.end()
	all := w.finish()
	w.settle()
	w.verify(all)
	t.Logf("%d runs, %d acknowledged, %d gates answered, %d logs watched", len(all), len(w.l.runs), len(w.l.gates), len(w.l.shown))
}

// newLoad starts a host with its workflows registered. Workflows that call out
// take part if the host can be told to let them call loopback.
func newLoad(t *testing.T) *load {
	w := &load{l: newLedger(t), quit: make(chan struct{}), over: make(chan struct{})}
	receiverURL := ""
	if flags := egress(t); flags != nil {
		w.r = newReceiver(t)
		receiverURL = w.r.http.URL
		w.h = newHost(t, flags...)
	} else {
		t.Log("no calls to the outside: serve has no flag --allow-egress")
		w.h = newHost(t)
	}
	w.defs = definitions(receiverURL)
	w.h.start()
	for _, d := range w.defs {
		w.h.register(d)
	}
	return w
}

// egress are the flags that admit calls to loopback, or nil if there are none.
func egress(t *testing.T) []string {
	flags := []string{"--allow-egress", "127.0.0.0/8"}
	p, err := launch(binary(t), t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	if _, err := p.address(); err != nil {
		return nil
	}
	return flags
}

// settle waits until the followers have seen the end of their runs.
func (w *load) settle() {
	done := make(chan struct{})
	go func() {
		w.follower.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		w.h.t.Errorf("%d streams of ended runs do not end", w.streams.Load())
	}
	close(w.over)
	<-done
}

package kill

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load is several clients that go on whatever happens to the host.
type load struct {
	h        *host
	l        *ledger
	r        *receiver // nil: nothing calls out
	defs     []object
	quit     chan struct{} // closed when drivers start nothing more
	over     chan struct{} // closed when followers give up
	made     atomic.Int64  // creates tried
	most     int64         // of them
	drivers  sync.WaitGroup
	follower sync.WaitGroup
	streams  atomic.Int64

	// answering is held for reading while a driver changes a run, and for
	// writing while a sweep wants to be the only one who does.
	answering sync.RWMutex
}

func (w *load) begin(drivers int, seed uint64) {
	for i := range drivers {
		w.drivers.Add(1)
		go func() {
			defer w.drivers.Done()
			d := driver{load: w, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
			for n := 0; w.h.wait(w.quit); n++ {
				select {
				case <-w.quit:
					return
				default:
					d.one(fmt.Sprintf("%d-%d-%x", i, n, seed&0xffff))
				}
			}
		}()
	}
}

// end lets the drivers come to an end. Followers go on until their runs end.
func (w *load) end() {
	close(w.quit)
	w.drivers.Wait()
}

// driver is one client.
type driver struct {
	*load
	rng *rand.Rand
}

// one starts a run of some workflow and does what its story asks for.
func (d *driver) one(tag string) {
	if d.made.Add(1) > d.most {
		time.Sleep(time.Millisecond) // enough for now: the log must be read, too
		return
	}
	workflow := d.defs[d.rng.IntN(len(d.defs))]["id"].(string)
	id, err := d.h.create(workflow, tag)
	if err != nil {
		return
	}
	d.l.created(id, tag)
	if d.followed(workflow) && d.streams.Load() < 100 {
		d.streams.Add(1)
		d.follower.Add(1)
		go d.follow(id)
	}
	switch workflow {
	case "gate", "effects", "gates":
		d.gated(id, workflow)
	case "parent":
		d.parent(id)
	case "long":
		d.cancel(id)
	default:
		if d.rng.IntN(2) == 0 {
			d.watch(id, tag)
		}
	}
}

// followed picks the runs whose stream is read as well. One that ticks all the
// time is the most likely to be caught saying what it has not made durable.
func (d *driver) followed(workflow string) bool {
	return workflow == "ticks" || workflow != "long" && d.rng.IntN(8) == 0
}

// watch polls a run until it ends or the host goes, and tells the receiver
// which calls it has seen the outcome of.
func (d *driver) watch(id, tag string) {
	visits := map[string]int{}
	for next := 0; ; {
		query := "?timeout=1"
		if next > 0 {
			query += "&afterSequence=" + strconv.Itoa(next-1)
		}
		r, err := d.h.call("GET", "/runs/"+segment(id)+"/events/poll"+query, nil)
		var p page
		if err != nil {
			return
		}
		if r.status != 200 || json.Unmarshal(r.body, &p) != nil {
			d.l.t.Errorf("poll %s: %v", id, r)
			return
		}
		d.l.show(id, next, p.Events)
		next += len(p.Events)
		for _, doc := range p.Events {
			d.sealCall(doc, tag, visits)
		}
		select {
		case <-d.quit:
			return
		default:
		}
		if p.IsTerminal {
			return
		}
	}
}

// sealCall tells the receiver of a call whose outcome the log shows.
func (d *driver) sealCall(doc json.RawMessage, tag string, visits map[string]int) {
	var e event
	if json.Unmarshal(doc, &e) != nil || e.Type != "node.completed" || d.r == nil || !callsOut(e.NodeID) {
		return
	}
	visits[e.NodeID]++
	d.r.seal(site{tag, e.NodeID}, visits[e.NodeID])
}

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

// gated answers a run's gates, or leaves them to a later sweep.
func (d *driver) gated(id, workflow string) {
	if d.rng.IntN(4) == 0 {
		return
	}
	nodes := []string{"ok"}
	if workflow == "gates" {
		nodes = []string{"left", "right"}
	}
	if !d.suspended(id, nodes[len(nodes)-1]) {
		return
	}
	if d.rng.IntN(4) == 0 && !d.pauseAndResume(id) {
		return
	}
	for _, n := range nodes {
		d.answerTwice(gate{id, n})
	}
}

// suspended waits until a node holds its gate; false if the host goes.
func (d *driver) suspended(id, node string) bool {
	for range 1000 {
		s, ok := d.look(id)
		if !ok || terminal(s.Status) {
			return false
		}
		if s.NodeStates[node].Status == "suspended" {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func (d *driver) look(id string) (s snapshot, ok bool) {
	r, err := d.h.call("GET", "/runs/"+segment(id), nil)
	if err != nil {
		return s, false
	}
	if r.status != 200 || json.Unmarshal(r.body, &s) != nil {
		d.l.t.Errorf("snapshot of %s: %v", id, r)
		return s, false
	}
	return s, true
}

func (d *driver) pauseAndResume(id string) bool {
	d.answering.RLock()
	defer d.answering.RUnlock()
	return d.load.turn("pause", id) && d.load.turn("resume", id)
}

// turn pauses or resumes a run; false if it is not known whether it did.
func (w *load) turn(verb, id string) bool {
	if verb == "resume" {
		w.l.pause(id, false) // it may happen from now on
	}
	r, err := w.h.call("POST", "/runs/"+segment(id)+":"+verb, object{})
	if err != nil {
		return false // a sweep finds the run as it is
	}
	switch {
	case r.status == 202 && verb == "pause":
		w.l.pause(id, true)
	case r.status == 409 && verb == "pause":
		return false // a sweep has answered its gate in the meantime
	case r.status != 202:
		w.l.t.Errorf("%s %s: %v", verb, id, r)
	}
	return true
}

// parent answers the gate of the child run, or cancels the whole.
func (d *driver) parent(id string) {
	for range 1000 {
		s, ok := d.look(id)
		if !ok {
			return
		}
		if c := s.NodeStates["sub"].Children; len(c) > 0 {
			switch d.rng.IntN(4) {
			case 0:
				d.cancel(id)
			case 1: // left to a sweep
			default:
				if d.suspended(c[0].RunID, "ok") {
					d.answerTwice(gate{c[0].RunID, "ok"})
				}
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (d *driver) cancel(id string) {
	d.answering.RLock()
	defer d.answering.RUnlock()
	r, err := d.h.call("POST", "/runs/"+segment(id)+"/cancel", object{"reason": "enough"})
	switch {
	case err != nil:
	case r.status == 200:
		d.l.cancelled(id)
	case r.status != 409:
		d.l.t.Errorf("cancel %s: %v", id, r)
	}
}

// answerTwice answers one gate from two sides at once.
func (d *driver) answerTwice(g gate) {
	d.answering.RLock()
	defer d.answering.RUnlock()
	var both [2]answers
	var wg sync.WaitGroup
	for i := range both {
		wg.Go(func() { both[i] = d.load.answer(g) })
	}
	wg.Wait()
	d.l.answer(g, answers{
		both[0].accepted + both[1].accepted, both[0].refused + both[1].refused, both[0].unknown + both[1].unknown,
	})
}

func (w *load) answer(g gate) answers {
	r, err := w.h.call("POST", "/runs/"+segment(g.run)+"/interrupts/"+g.node, object{"resumeValue": object{"action": "accept"}})
	switch {
	case err != nil:
		return answers{unknown: 1}
	case r.status == 200:
		return answers{accepted: 1}
	case r.status == 409:
		return answers{refused: 1}
	}
	w.l.t.Errorf("answer %v: %v", g, r)
	return answers{unknown: 1}
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

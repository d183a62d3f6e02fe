package bench

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// sample is what some clients have seen in a span of time.
type sample struct {
	runs     int
	took     time.Duration
	create   latencies // of the create alone
	complete latencies // from the create to the answer that says the run ended
	host     time.Duration
	load     time.Duration
}

// join adds what was seen at another time.
func (s *sample) join(o sample) {
	s.runs += o.runs
	s.took += o.took
	s.create = append(s.create, o.create...)
	s.complete = append(s.complete, o.complete...)
	s.host += o.host
	s.load += o.load
}

// drive has clients start runs and follow each to its end, for a while, and
// takes the processor time of the host meanwhile.
func drive(s *Server, body []byte, clients int, span time.Duration) (sample, error) {
	before, err := CPU(s.PID)
	if err != nil {
		return sample{}, err
	}
	load := ownCPU()
	out, err := driveAll(s.Addr, body, clients, span)
	out.load = ownCPU() - load
	after, cpuErr := CPU(s.PID)
	out.host = after - before
	return out, errors.Join(err, cpuErr)
}

func driveAll(addr string, body []byte, clients int, span time.Duration) (out sample, err error) {
	var mu sync.Mutex
	begun := time.Now()
	err = inParallel(clients, func(int) error {
		one, err := driveOne(addr, body, begun.Add(span))
		mu.Lock()
		defer mu.Unlock()
		out.join(one)
		return err
	})
	out.took = time.Since(begun)
	return out, err
}

func driveOne(addr string, body []byte, until time.Time) (out sample, err error) {
	c, err := Dial(addr)
	if err != nil {
		return out, err
	}
	defer c.Close()
	for {
		begun := time.Now()
		if begun.After(until) {
			return out, nil
		}
		path, err := c.create(body)
		if err != nil {
			return out, err
		}
		created := time.Now()
		if err := c.await(path); err != nil {
			return out, err
		}
		out.runs++
		out.create = append(out.create, created.Sub(begun))
		out.complete = append(out.complete, time.Since(begun))
	}
}

// turns is how often the host and its floors are measured in turn: what else
// the machine does meanwhile should hit all of them.
const turns = 4

// runs measures how fast short runs go, and what the driver, the disk and the
// HTTP server alone would allow.
func (b *bench) runs() error {
	for _, workflow := range []string{"one", "five"} {
		segment, err := b.segment(workflow)
		if err != nil {
			return err
		}
		if _, err := drive(b.host, createBody(workflow, ""), 16, time.Second); err != nil {
			return err // warming up
		}
		for _, clients := range []int{1, 16, 64} {
			if err := b.clients(workflow, segment, clients); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) clients(workflow string, s *segment, clients int) error {
	span := time.Duration(b.pick(2500, 600)) * time.Millisecond
	var got sample
	var floor commits
	bare := 0.0
	for range turns {
		one, err := drive(b.host, createBody(workflow, ""), clients, span)
		if err != nil {
			return err
		}
		got.join(one)
		commit, err := commitFloor(b.scratch("floor"), s, clients, span/2)
		if err != nil {
			return err
		}
		floor.join(commit)
		http, err := httpFloor(b.scratch("floor"), s, clients, span/2)
		if err != nil {
			return err
		}
		bare += http / turns
	}
	b.report(workflow, clients, got, floor, bare)
	return nil
}

func (b *bench) report(workflow string, clients int, got sample, floor commits, bare float64) {
	group := fmt.Sprintf("runs of %s node, %d clients", workflow, clients)
	per := func(d time.Duration) float64 { return ms(d) / float64(max(got.runs, 1)) }
	rate := perSecond(got.runs, got.took)
	b.out.add(group, "runs to their end (floor: commits)", rate, "/s", perSecond(len(floor.latency), floor.took))
	b.out.add(group, "runs to their end (floor: commits and HTTP)", rate, "/s", bare)
	for _, at := range []float64{.5, .95, .99} {
		b.out.add(group, fmt.Sprintf("create p%.0f", 100*at), got.create.at(at), "ms", floor.latency.at(at))
	}
	for _, at := range []float64{.5, .95, .99} {
		b.out.add(group, fmt.Sprintf("create to end p%.0f", 100*at), got.complete.at(at), "ms", floor.latency.at(at))
	}
	b.out.add(group, "processor time a run, host", per(got.host), "ms", ms(floor.cpu)/float64(max(len(floor.latency), 1)))
	b.out.add(group, "processor time a run, load", per(got.load), "ms", 0)
	b.out.add(group, "runs in a commit of the floor", float64(len(floor.latency))/float64(max(floor.transactions, 1)), "", 0)
}

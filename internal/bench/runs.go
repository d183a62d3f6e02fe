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
	reads    int       // of a run, until it had ended
	host     time.Duration
	db       time.Duration
	load     time.Duration
}

// side is what is measured: hosts, and the database they share, if they do.
type side struct {
	hosts []*Server
	db    func() (time.Duration, error) // processor time of the database's processes; nil for none
}

func (m side) addrs() (out []string) {
	for _, s := range m.hosts {
		out = append(out, s.Addr)
	}
	return out
}

// cpu is the processor time that all hosts and the database have used.
func (m side) cpu() (hosts, db time.Duration, err error) {
	for _, s := range m.hosts {
		one, err := CPU(s.PID)
		if err != nil {
			return 0, 0, err
		}
		hosts += one
	}
	if m.db != nil {
		db, err = m.db()
	}
	return hosts, db, err
}

// join adds what was seen at another time.
func (s *sample) join(o sample) {
	s.runs += o.runs
	s.took += o.took
	s.create = append(s.create, o.create...)
	s.complete = append(s.complete, o.complete...)
	s.reads += o.reads
	s.host += o.host
	s.db += o.db
	s.load += o.load
}

// drive has clients start runs and follow each to its end, for a while, and
// takes the processor time of the hosts meanwhile.
func drive(m side, body []byte, clients int, span time.Duration) (sample, error) {
	host, db, err := m.cpu()
	if err != nil {
		return sample{}, err
	}
	load := ownCPU()
	out, err := driveAll(m.addrs(), body, clients, span)
	out.load = ownCPU() - load
	hostAfter, dbAfter, cpuErr := m.cpu()
	out.host, out.db = hostAfter-host, dbAfter-db
	return out, errors.Join(err, cpuErr)
}

func driveAll(addrs []string, body []byte, clients int, span time.Duration) (out sample, err error) {
	var mu sync.Mutex
	begun := time.Now()
	err = inParallel(clients, func(i int) error {
		one, err := driveOne(addrs, i, body, begun.Add(span))
		mu.Lock()
		defer mu.Unlock()
		out.join(one)
		return err
	})
	out.took = time.Since(begun)
	return out, err
}

// driveOne is one client. With several hosts each of its requests goes to the next
// one, as through a load balancer.
func driveOne(addrs []string, first int, body []byte, until time.Time) (out sample, err error) {
	conns := make([]*Conn, len(addrs))
	for i, addr := range addrs {
		if conns[i], err = Dial(addr); err != nil {
			return out, err
		}
		defer conns[i].Close()
	}
	n := first
	next := func() *Conn {
		n++
		return conns[n%len(conns)]
	}
	for {
		begun := time.Now()
		if begun.After(until) {
			return out, nil
		}
		path, err := next().create(body)
		if err != nil {
			return out, err
		}
		created := time.Now()
		reads, err := awaitBy(next, path)
		if err != nil {
			return out, err
		}
		out.runs++
		out.reads += reads
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
	m := side{hosts: []*Server{b.host}}
	open := func() (floor, error) { return openFloor(b.scratch("floor")) }
	for _, workflow := range []string{"one", "five"} {
		if err := b.workflow(m, open, "", workflow, []int{1, 16, 64}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) workflow(m side, open func() (floor, error), where, workflow string, clients []int) error {
	segment, err := b.segment(workflow)
	if err != nil {
		return err
	}
	if _, err := drive(m, createBody(workflow, ""), 16, time.Second); err != nil {
		return err // warming up
	}
	for _, n := range clients {
		if err := b.clients(m, open, where, workflow, segment, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) clients(m side, open func() (floor, error), where, workflow string, s *segment, clients int) error {
	span := time.Duration(b.pick(2500, 600)) * time.Millisecond
	var got sample
	var floor commits
	bare := 0.0
	for range turns {
		one, err := drive(m, createBody(workflow, ""), clients, span)
		if err != nil {
			return err
		}
		got.join(one)
		commit, err := commitFloor(open, s, clients, span/2)
		if err != nil {
			return err
		}
		floor.join(commit)
		http, err := httpFloor(open, s, clients, span/2)
		if err != nil {
			return err
		}
		bare += http / turns
	}
	b.report(fmt.Sprintf("%sruns of %s node, %d clients", where, workflow, clients), got, floor, bare)
	return nil
}

func (b *bench) report(group string, got sample, floor commits, bare float64) {
	per := func(d time.Duration) float64 { return ms(d) / float64(max(got.runs, 1)) }
	perFloor := func(d time.Duration) float64 { return ms(d) / float64(max(len(floor.latency), 1)) }
	rate := perSecond(got.runs, got.took)
	b.out.add(group, "runs to their end (floor: commits)", rate, "/s", perSecond(len(floor.latency), floor.took))
	b.out.add(group, "runs to their end (floor: commits and HTTP)", rate, "/s", bare)
	for _, at := range []float64{.5, .95, .99} {
		b.out.add(group, fmt.Sprintf("create p%.0f", 100*at), got.create.at(at), "ms", floor.latency.at(at))
	}
	for _, at := range []float64{.5, .95, .99} {
		b.out.add(group, fmt.Sprintf("create to end p%.0f", 100*at), got.complete.at(at), "ms", floor.latency.at(at))
	}
	b.out.add(group, "processor time a run, host", per(got.host), "ms", perFloor(floor.cpu))
	if got.db > 0 {
		b.out.add(group, "processor time a run, database", per(got.db), "ms", perFloor(floor.db))
	}
	b.out.add(group, "processor time a run, load", per(got.load), "ms", 0)
	b.out.add(group, "reads until a run has ended", float64(got.reads)/float64(max(got.runs, 1)), "", 0)
	b.out.add(group, "runs in a commit of the floor", float64(len(floor.latency))/float64(max(floor.transactions, 1)), "", 0)
}

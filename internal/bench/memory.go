package bench

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// start measures an empty host: how soon it answers, and what it holds at rest.
func (b *bench) start() error {
	var up latencies
	for range 7 {
		if err := b.restart("start"); err != nil {
			return err
		}
		up = append(up, b.host.Up)
	}
	b.out.add("an empty host", "process start to first answer, median", up.at(.5), "ms", 0)
	time.Sleep(2 * time.Second) // at rest
	return b.memory("an empty host", "memory at rest")
}

func (b *bench) memory(group, name string) error {
	rss, err := RSS(b.host.PID)
	b.out.add(group, name, mib(rss), "MiB", 0)
	return err
}

// parked measures a host that has done a lot, and one that has a lot to wait for.
func (b *bench) parked() error {
	n := b.pick(100_000, 5_000)
	group := "a host with history"
	if _, err := b.many("one", n); err != nil {
		return err
	}
	if err := b.memory(group, fmt.Sprintf("memory right after %d runs", n)); err != nil {
		return err
	}
	time.Sleep(10 * time.Second)
	if err := b.memory(group, fmt.Sprintf("memory at rest after %d runs", n)); err != nil {
		return err
	}
	took, err := b.many("gate", n)
	if err != nil {
		return err
	}
	b.out.add(group, "runs to their gate, 64 clients", perSecond(n, took), "/s", 0)
	if err := b.memory(group, fmt.Sprintf("memory with %d parked runs", n)); err != nil {
		return err
	}
	var up latencies
	for range 5 {
		if err := b.restart("parked"); err != nil {
			return err
		}
		up = append(up, b.host.Up)
	}
	b.out.add(group, fmt.Sprintf("process start to first answer, %d parked runs", n), up.at(.5), "ms", 0)
	time.Sleep(2 * time.Second)
	return b.memory(group, fmt.Sprintf("memory at rest after a start, %d parked runs", n))
}

// many starts a number of runs from 64 clients.
func (b *bench) many(workflow string, n int) (time.Duration, error) {
	var left atomic.Int64
	left.Store(int64(n))
	begun := time.Now()
	err := inParallel(64, func(int) error {
		c, err := Dial(b.host.Addr)
		if err != nil {
			return err
		}
		defer c.Close()
		body := createBody(workflow, "")
		for left.Add(-1) >= 0 {
			if _, err := c.create(body); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(begun), err
}

// inParallel runs n tasks at once and joins their errors.
func inParallel(n int, task func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = task(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

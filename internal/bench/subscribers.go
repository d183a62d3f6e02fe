package bench

import (
	"fmt"
	"time"
)

// subscribers measures what subscribers cost that only wait, and whether they
// stand in anybody's way.
func (b *bench) subscribers() error {
	control, err := Dial(b.host.Addr)
	if err != nil {
		return err
	}
	defer control.Close()
	alone, err := approvals(control, b.pick(100, 30))
	if err != nil {
		return err
	}
	if err := b.idle(control, 1000, func() error {
		beside, err := approvals(control, b.pick(100, 30))
		for _, at := range []float64{.5, .95} {
			b.out.add("idle subscribers", fmt.Sprintf("an approval beside 1000 of them p%.0f (floor: alone)", 100*at), beside.at(at), "ms", alone.at(at))
		}
		return err
	}); err != nil {
		return err
	}
	return b.idle(control, b.pick(5000, 2000), func() error { return nil })
}

// idle holds subscribers on one waiting run, and lets it end at last.
func (b *bench) idle(control *Conn, n int, meanwhile func() error) error {
	path, err := control.create(createBody("gate", ""))
	if err != nil {
		return err
	}
	before, err := RSS(b.host.PID)
	if err != nil {
		return err
	}
	subs, err := subscribe(b.host.Addr, path, n)
	if err != nil {
		return err
	}
	defer subs.close()
	time.Sleep(2 * time.Second)
	after, err := RSS(b.host.PID)
	if err != nil {
		return err
	}
	name := func(what string) string { return fmt.Sprintf("%s, %d subscribers", what, n) }
	b.out.add("idle subscribers", name("memory"), mib(after), "MiB", 0)
	b.out.add("idle subscribers", name("memory a subscriber"), float64(after-before)/1024/float64(n), "KiB", 0)
	if err := meanwhile(); err != nil {
		return err
	}
	begun := time.Now()
	if err := control.answer(path); err != nil {
		return err
	}
	b.out.add("idle subscribers", name("an approval of their run answered"), ms(time.Since(begun)), "ms", 0)
	events, _, err := subs.drain()
	b.out.add("idle subscribers", name("the last one told of the end"), ms(time.Since(begun)), "ms", 0)
	if err == nil && events < 5 {
		err = fmt.Errorf("the subscribers were sent %d events", events)
	}
	return err
}

// approvals takes the time from an answer to the end of its run.
func approvals(c *Conn, n int) (latencies, error) {
	var out latencies
	for range n {
		path, err := c.create(createBody("gate", ""))
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := c.answer(path); err != nil {
			return nil, err
		}
		if err := c.await(path); err != nil {
			return nil, err
		}
		out = append(out, time.Since(begun))
	}
	return out, nil
}

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// streams measures how fast events reach subscribers: a run is released that
// writes many, with its subscribers there already, and the time is taken until
// the last of them has read its stream to the end.
func (b *bench) streams() error {
	rounds := map[int]int{1: b.pick(400, 100), 100: b.pick(100, 20), 1000: b.pick(30, 5)}
	for _, subscribers := range []int{1, 100, 1000} {
		got, err := b.burst(subscribers, rounds[subscribers])
		if err != nil {
			return err
		}
		floor, err := streamFloor(subscribers, got.events, got.bytes/int64(max(got.events*subscribers, 1)))
		if err != nil {
			return err
		}
		n := got.events * subscribers
		b.out.add("event streams", fmt.Sprintf("events delivered, %d subscribers", subscribers),
			perSecond(n, got.took), "/s", perSecond(n, floor))
		b.out.add("event streams", fmt.Sprintf("processor time an event delivered, %d subscribers", subscribers),
			1000*ms(got.host)/float64(n), "µs", 0)
	}
	return nil
}

type delivery struct {
	events int // that each subscriber was sent
	bytes  int64
	took   time.Duration
	host   time.Duration
}

func (b *bench) burst(subscribers, rounds int) (out delivery, err error) {
	control, err := Dial(b.host.Addr)
	if err != nil {
		return out, err
	}
	defer control.Close()
	path, err := control.create(createBody("burst", fmt.Sprintf(`{"n":%d}`, rounds)))
	if err != nil {
		return out, err
	}
	subs, err := subscribe(b.host.Addr, path, subscribers)
	if err != nil {
		return out, err
	}
	defer subs.close()
	cpu, err := CPU(b.host.PID)
	if err != nil {
		return out, err
	}
	begun := time.Now()
	if err := control.answer(path); err != nil {
		return out, err
	}
	if out.events, out.bytes, err = subs.drain(); err != nil {
		return out, err
	}
	out.took = time.Since(begun)
	after, err := CPU(b.host.PID)
	out.host = after - cpu
	return out, err
}

// subscribers is a number of open streams of one run.
type subscribers struct {
	conns   []*Conn
	streams []io.Reader
}

// subscribe opens streams and reads each one's first bytes.
func subscribe(addr, path string, n int) (*subscribers, error) {
	s := &subscribers{conns: make([]*Conn, n), streams: make([]io.Reader, n)}
	err := inParallel(min(n, 32), func(w int) error {
		for i := w; i < n; i += 32 {
			c, err := Dial(addr)
			if err != nil {
				return err
			}
			s.conns[i] = c
			if s.streams[i], err = c.Stream(path + "/events?streamMode=debug"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *subscribers) close() {
	for _, c := range s.conns {
		if c != nil {
			c.Close()
		}
	}
}

// drain reads every stream to its end and counts the events. All subscribers
// must have been sent the same.
func (s *subscribers) drain() (events int, total int64, err error) {
	counts := make([]int, len(s.streams))
	var sum atomic.Int64
	err = inParallel(len(s.streams), func(i int) error {
		n, size, err := countEvents(s.streams[i])
		counts[i] = n
		sum.Add(size)
		return err
	})
	for i, n := range counts {
		if n != counts[0] && err == nil {
			err = fmt.Errorf("subscriber %d was sent %d events and the first %d", i, n, counts[0])
		}
	}
	return counts[0], sum.Load(), err
}

// countEvents counts the data lines of a stream.
func countEvents(r io.Reader) (n int, size int64, err error) {
	in := bufio.NewReaderSize(r, 16<<10)
	for whole := true; ; {
		line, err := in.ReadSlice('\n')
		size += int64(len(line))
		if whole && bytes.HasPrefix(line, []byte("data:")) {
			n++
		}
		switch whole = err == nil; err {
		case nil, bufio.ErrBufferFull:
		case io.EOF:
			return n, size, nil
		default:
			return n, size, err
		}
	}
}

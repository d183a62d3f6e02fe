package bench

import (
	"fmt"
	"time"
)

// long compares a step of a run that has a long log behind it with a step of
// one that has not: an answer to a gate, which takes the parked run up, records
// six events, and parks it again.
func (b *bench) long() error {
	rounds := b.pick(1000, 100)
	answers := b.pick(200, 50)
	short, shortRead, err := b.steps(1, answers)
	if err != nil {
		return err
	}
	deep, deepRead, err := b.steps(rounds, answers)
	if err != nil {
		return err
	}
	group := fmt.Sprintf("a log of %d events (floor: one of %d)", rounds*perRound, perRound)
	for _, at := range []float64{.5, .95} {
		b.out.add(group, fmt.Sprintf("an answer to its gate p%.0f", 100*at), deep.at(at), "ms", short.at(at))
	}
	for _, at := range []float64{.5, .95} {
		b.out.add(group, fmt.Sprintf("its snapshot afterwards p%.0f", 100*at), deepRead.at(at), "ms", shortRead.at(at))
	}
	return nil
}

// steps makes a run with some rounds of events behind it and answers its gates.
func (b *bench) steps(rounds, answers int) (answer, read latencies, err error) {
	c, err := Dial(b.host.Addr)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	path, err := c.create(createBody("long", fmt.Sprintf(`{"n":%d,"m":%d}`, rounds, answers)))
	if err != nil {
		return nil, nil, err
	}
	for s := ""; s != "waiting-approval"; {
		if s, err = c.status(path); err != nil || s == "failed" {
			return nil, nil, fmt.Errorf("run %s is %s: %w", path, s, err)
		}
		time.Sleep(time.Millisecond)
	}
	for range answers {
		begun := time.Now()
		if err := c.answer(path); err != nil {
			return nil, nil, err
		}
		answer = append(answer, time.Since(begun))
		begun = time.Now()
		if _, err := c.status(path); err != nil {
			return nil, nil, err
		}
		read = append(read, time.Since(begun))
	}
	return answer, read, nil
}

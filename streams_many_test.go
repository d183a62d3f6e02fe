package fermata_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
)

// TestThousandSubscribersSeeEachEventOnce has a thousand readers on one run, a
// quarter of whom drop and resume, each at points of its own.
func TestThousandSubscribersSeeEachEventOnce(t *testing.T) {
	readers, events := long(1000, 5000), 60
	needFiles(t, uint64(2*readers+500))
	say := make(chan string)
	s := start(t, func(c *fermata.Config) { c.Nodes = append(c.Nodes, speaker(say)) })
	s.register(flow("talk", []any{step("a", "test.speaker", nil)}, []any{}))
	id := s.run("talk")
	client := crowd(t)

	errs := make(chan error, readers)
	var ready sync.WaitGroup
	ready.Add(readers)
	for i := range readers {
		go func() { errs <- reader(client, s, id, i%4 == 0, sync.OnceFunc(ready.Done)) }()
	}
	ready.Wait()
	for i := range events {
		say <- fmt.Sprintf("chunk %d", i)
	}
	close(say)
	for range readers {
		select {
		case err := <-errs:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(hang):
			t.Fatal("a subscriber does not come to the end")
		}
	}
	s.await(id, "completed")
}

// reader follows a run to its end; one that drops does so after every few events.
func reader(client *http.Client, s *server, id string, drops bool, ready func()) error {
	defer ready()
	p := &tap{}
	for {
		if err := p.open(client, s, id); err != nil {
			return err
		}
		if !drops {
			if err := p.step(); err != nil {
				return err
			}
			ready()
			return p.toEnd()
		}
		for range 1 + rand.IntN(20) {
			if err := p.step(); err != nil {
				return err
			}
			ready()
			if terminalType(p.last) {
				return p.toEnd()
			}
		}
		p.body.Close()
	}
}

// TestResumeAtEveryPoint drops and resumes a stream behind each event of a log,
// while it is live and when it is over.
func TestResumeAtEveryPoint(t *testing.T) {
	say := make(chan string)
	s := start(t, func(c *fermata.Config) { c.Nodes = append(c.Nodes, speaker(say)) })
	s.register(flow("talk", []any{step("a", "test.speaker", nil)}, []any{}))
	id := s.run("talk")
	client := crowd(t)
	p, n := &tap{}, 20
	for range n {
		say <- "x"
		if err := p.open(client, s, id); err != nil {
			t.Fatal(err)
		}
		if err := p.step(); err != nil {
			t.Fatal(err)
		}
		p.body.Close()
	}
	close(say)
	s.await(id, "completed")
	all := int64(len(s.events(id)))
	for after := range all {
		p := &tap{next: after}
		if err := p.open(client, s, id); err != nil {
			t.Fatal(err)
		}
		if err := p.toEnd(); err != nil || p.next != all {
			t.Fatalf("resumed behind %d: %v, got as far as %d of %d", after-1, err, p.next, all)
		}
	}
}

// TestStreamDoesNotEndBeforeItsRun opens streams while runs are ending.
func TestStreamDoesNotEndBeforeItsRun(t *testing.T) {
	say := make(chan string)
	s := start(t, func(c *fermata.Config) { c.Nodes = append(c.Nodes, speaker(say)) })
	s.register(flow("talk", []any{step("a", "test.speaker", nil)}, []any{}))
	close(say) // every run ends as soon as it can
	client := crowd(t)
	for range long(30, 2000) {
		id := s.run("talk")
		errs := make(chan error, 4)
		for range cap(errs) {
			go func() {
				p := &tap{}
				err := p.open(client, s, id)
				if err == nil {
					err = p.toEnd()
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	}
}

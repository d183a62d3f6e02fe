package kill

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"
)

// ledger is what the host has promised, across all its lives.
type ledger struct {
	t testing.TB

	mu      sync.Mutex
	runs    map[string]bool              // acknowledged creates, by run id
	tags    map[string]string            // run id of a tag, once known
	shown   map[string][]json.RawMessage // the log as readers have seen it
	gates   map[gate]*answers
	cancels map[string]bool // acknowledged
	paused  map[string]bool // acknowledged, and not asked to go on since
}

// gate is an interrupt: in these workflows a node asks once.
type gate struct{ run, node string }

// answers counts what came of the answers to one gate.
type answers struct{ accepted, refused, unknown int }

func newLedger(t testing.TB) *ledger {
	return &ledger{
		t: t, runs: map[string]bool{}, tags: map[string]string{}, shown: map[string][]json.RawMessage{},
		gates: map[gate]*answers{}, cancels: map[string]bool{}, paused: map[string]bool{},
	}
}

func (l *ledger) created(id, tag string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[id], l.tags[id] = true, tag
}

func (l *ledger) cancelled(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancels[id] = true
}

func (l *ledger) pause(id string, on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on {
		l.paused[id] = true
	} else {
		delete(l.paused, id)
	}
}

// answer notes the outcomes of some answers to a gate that were given at once.
// Of all answers ever, one is accepted; one that broke off may have been it.
func (l *ledger) answer(g gate, now answers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.gates[g]
	if a == nil {
		a = &answers{}
		l.gates[g] = a
	}
	a.accepted += now.accepted
	a.refused += now.refused
	a.unknown += now.unknown
	switch {
	case a.accepted > 1:
		l.t.Errorf("%v: %d answers were accepted", g, a.accepted)
	case a.accepted == 0 && a.unknown == 0:
		l.t.Errorf("%v: %d answers were refused and none was accepted", g, a.refused)
	}
}

// answered reports whether an answer to the gate was acknowledged.
func (l *ledger) answered(g gate) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gates[g] != nil && l.gates[g].accepted > 0
}

// show notes what a reader was sent of a log from a place on. What was sent
// before must come out the same.
func (l *ledger) show(run string, from int, docs []json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	have := l.shown[run]
	for i, d := range docs {
		at := from + i
		switch {
		case at < len(have):
			if !bytes.Equal(have[at], d) {
				l.t.Errorf("run %s: event %d was\n%s\nand now is\n%s", run, at, have[at], d)
			}
		case at == len(have):
			have = append(have, d)
		default:
			l.t.Errorf("run %s: event %d was sent after event %d", run, at, len(have)-1)
			return
		}
	}
	l.shown[run] = have
}

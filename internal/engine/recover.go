package engine

import "github.com/fermata-run/fermata/internal/run"

// orphaned reports whether the run executes something of which nobody here
// makes the call: its owner was lost, or its step could not be written.
func (a *actor) orphaned() bool {
	if a.row.Instance != a.e.Instance() || a.fresh || a.e.draining.Load() {
		return false
	}
	a.fresh = true
	if a.s.Closing != nil {
		return true
	}
	for _, x := range a.s.Executing() {
		if _, ours := a.calls[keyOf(x)]; !ours {
			return true
		}
	}
	return false
}

// recover takes up a run that waits for calls nobody makes. Outcomes that are at
// hand come first: they must not be brought about a second time.
func (a *actor) recover(t *turn, mail []message, outs []Outcome) error {
	outcome := func(m message) bool { return m.done != nil }
	if err := t.take(mail, outs, outcome); err != nil {
		return err
	}
	if t.decide(run.Recover{Alive: a.alive(mail)}); t.broken != nil {
		return t.broken
	}
	t.later, t.todo = newest(t.later), newest(t.todo)
	return t.take(mail, outs, func(m message) bool { return !outcome(m) })
}

// alive lists the calls in flight that the run waits for, and cuts off the rest:
// they may begin afresh, and there are never two at once.
func (a *actor) alive(mail []message) []run.Call {
	wanted := map[callKey]bool{}
	for _, x := range a.s.Executing() {
		wanted[keyOf(x)] = true
	}
	var out []run.Call
	for k := range a.calls {
		switch {
		case finished(mail, k):
		case wanted[k]:
			out = append(out, run.Call{NodeID: k.node, Visit: k.visit, Attempt: k.attempt, Inverse: k.inverse})
		default:
			a.over(k)
		}
	}
	return out
}

func finished(mail []message, k callKey) bool {
	for _, m := range mail {
		if m.done != nil && *m.done == k {
			return true
		}
	}
	return false
}

// newest keeps the last call asked for of each node.
func newest(list []run.Execute) []run.Execute {
	out := list[:0]
	for i, x := range list {
		last := true
		for _, y := range list[i+1:] {
			last = last && (y.NodeID != x.NodeID || (y.Inverse == nil) != (x.Inverse == nil))
		}
		if last {
			out = append(out, x)
		}
	}
	return out
}

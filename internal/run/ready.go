package run

import "github.com/fermata-run/fermata/internal/flow"

type verdict uint8

const (
	wait verdict = iota
	begin
	skipUpstream // a source failed or was skipped
	skipBranch   // no branch led here
	skipDisabled
)

func (v verdict) reason() string {
	switch v {
	case skipDisabled:
		return "disabled"
	case skipBranch:
		return "branch-not-taken"
	}
	return "upstream"
}

// ready finds the first idle step that can be decided: begun or skipped.
func (t *turn) ready() (*flow.Step, verdict) {
	s := t.s
	for _, i := range s.wf.Order {
		if s.Nodes[i].Phase != Idle {
			continue
		}
		step := &s.wf.Steps[i]
		if v := s.judge(step); v != wait {
			if v == begin && step.Node.Disabled {
				v = skipDisabled
			}
			return step, v
		}
	}
	return nil, wait
}

// judge applies a step's trigger rule to its incoming links (spec: the
// workflow-definition schema's triggerRule).
func (s *State) judge(step *flow.Step) verdict {
	if s.Nodes[step.Index].Forced {
		return begin
	}
	var total, open, good, bad, refused int
	for _, i := range step.In {
		l := &s.wf.Links[i]
		if l.Back {
			continue
		}
		total++
		switch s.outcome(l) {
		case Undecided:
			open++
		case Success:
			good++
		case Failure:
			bad++
		case Refused:
			refused++
		}
	}
	if total == 0 {
		return begin
	}
	switch step.Rule {
	case flow.AnySuccess:
		return choose(good > 0, open > 0, refused == total)
	case flow.AnyFailed:
		return choose(bad > 0, open > 0, refused == total)
	case flow.AllComplete:
		return choose(open == 0 && refused < total, open > 0, true)
	case flow.NoneFailed:
		return choose(open == 0 && bad == 0 && refused < total, open > 0, bad == 0)
	}
	return choose(open == 0 && bad == 0 && good > 0, open > 0, bad == 0 && refused > 0)
}

func choose(start, later, branch bool) verdict {
	switch {
	case start:
		return begin
	case later:
		return wait
	case branch:
		return skipBranch
	}
	return skipUpstream
}

// outcome is what a link carries now. A link that leaves a loop is not final
// before the loop is over: the next round may decide it anew.
func (s *State) outcome(l *flow.Link) Outcome {
	o := s.Links[l.Index]
	for _, n := range l.Exits {
		if !s.over(&s.wf.Loops[n]) {
			return Undecided
		}
	}
	return o
}

// over reports whether a loop will not start again: every step that could have
// sent it back has ended without doing so.
func (s *State) over(loop *flow.Loop) bool {
	for _, l := range loop.Latches {
		if !s.Nodes[l].Phase.final() {
			return false
		}
	}
	return true
}

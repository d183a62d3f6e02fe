package run

import "time"

// Status is the run's status as the snapshot shows it.
func (s *State) Status() string {
	switch {
	case s.Ended != "":
		return s.Ended
	case s.Seq < 0:
		return Pending
	case s.Closing != nil && s.Closing.Kind == "cancel":
		return Cancelling
	case s.Paused:
		return Paused
	}
	waiting := ""
	for _, n := range s.Nodes {
		switch n.Phase {
		case Executing, Sleeping, Retrying, Resolved, Cut:
			return Running
		case Suspended:
			if waiting == "" {
				waiting = waitingFor(n.Interrupt.Request.Kind)
			}
		case Awaiting:
			w := n.childrenWaiting()
			if w == "" {
				return Running
			}
			if waiting == "" {
				waiting = w
			}
		}
	}
	if waiting != "" {
		return waiting
	}
	return Running
}

// waitingFor is the status of a run that is suspended on an interrupt of a kind.
func waitingFor(kind string) string {
	switch kind {
	case "approval", "low-confidence", "conversation.exchange":
		return WaitingApproval
	case "external-event":
		return WaitingExternal
	}
	return WaitingInput
}

// childrenWaiting is the waiting status of a node all of whose open children
// wait; empty if one of them is at work.
func (n *Node) childrenWaiting() string {
	w := ""
	if n.children().working > 0 {
		return w
	}
	for _, c := range n.Children {
		switch c.Status {
		case WaitingApproval, WaitingInput, WaitingExternal:
			if w == "" {
				w = c.Status
			}
		case Completed, Failed, Cancelled:
		default:
			return ""
		}
	}
	return w
}

// CurrentNode names the node that holds the interrupt while the run waits.
func (s *State) CurrentNode() string {
	switch s.Status() {
	case WaitingApproval, WaitingInput, WaitingExternal:
	default:
		return ""
	}
	for i, n := range s.Nodes {
		if n.Phase == Suspended {
			return s.wf.Steps[i].Node.ID
		}
	}
	for i, n := range s.Nodes {
		if n.Phase == Awaiting {
			return s.wf.Steps[i].Node.ID
		}
	}
	return ""
}

// Parked reports whether nothing happens to the run until something comes from
// outside: an answer, a timer, a child's news.
func (s *State) Parked() bool {
	if s.Ended != "" {
		return s.undoCall() == nil
	}
	if s.Closing != nil {
		return false // its children are being cancelled: somebody must see to it
	}
	if s.Replaying() {
		return false // it waits for nobody: what it waits for is recorded
	}
	for _, n := range s.Nodes {
		if n.Phase == Executing {
			return false
		}
	}
	return true
}

// NextWake is the earliest moment at which Tick would have something to do;
// zero for never.
func (s *State) NextWake(lim Limits) time.Time {
	if s.Ended != "" {
		return s.undoWake()
	}
	if s.Paused || s.Seq < 0 || s.Replaying() {
		return time.Time{}
	}
	var next time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, n := range s.Nodes {
		switch n.Phase {
		case Sleeping, Retrying:
			if s.Draining == nil { // else it waits for the end of the pause
				earlier(n.Due)
			}
		case Executing, Awaiting:
			earlier(n.Deadline)
		case Suspended:
			earlier(n.Interrupt.ExpiresAt)
		}
	}
	if s.Closing == nil {
		earlier(s.deadline(lim))
	}
	return next
}

// deadline is when the run has used up its time (spec v2 runs.md §run section).
func (s *State) deadline(lim Limits) time.Time {
	ms := s.maxDuration(lim)
	if ms <= 0 || s.StartedAt.IsZero() || s.Replaying() {
		return time.Time{}
	}
	// One millisecond past the limit, so that what is observed exceeds it.
	return s.StartedAt.Add(s.lag() + time.Duration(ms+1)*time.Millisecond)
}

package run

import (
	"slices"

	"github.com/fermata-run/fermata/node"
)

// Memo is what is remembered of a node between its calls while its run stays in
// memory. It follows from the state, is no part of it, and may be lost at any time.
type Memo struct {
	Scratch any                // the node's own (node.Input.Scratch)
	Results []node.ChildResult // a beginning of Node.Children, as the node is shown it
}

// brood sums a node's children up, so that each child's news costs the same however
// many there are.
type brood struct {
	known   bool
	open    int   // have not ended
	working int   // have not ended and do not wait for anybody
	untold  []int // positions of those that ended without the node knowing
}

// working reports whether a child is at work: neither over nor waiting.
func atWork(status string) bool {
	switch status {
	case WaitingApproval, WaitingInput, WaitingExternal:
		return false
	}
	return !Terminal(status)
}

func (n *Node) children() *brood {
	b := &n.sum
	if b.known {
		return b
	}
	*b = brood{known: true}
	for i := range n.Children {
		b.add(i, n.Children[i])
	}
	return b
}

func (b *brood) add(i int, c Child) {
	if !Terminal(c.Status) {
		b.open++
	} else if !c.Told {
		b.untold = append(b.untold, i)
	}
	if atWork(c.Status) {
		b.working++
	}
}

// adopt adds a child to the node's visit.
func (n *Node) adopt(c Child) {
	b := n.children()
	n.Children = append(n.Children, c)
	b.add(len(n.Children)-1, c)
}

// turned records a child's new status.
func (n *Node) turned(i int, status string) {
	b, c := n.children(), &n.Children[i]
	if Terminal(c.Status) {
		b.known = false // not expected; count afresh
	} else if b.open--; atWork(c.Status) {
		b.working--
	}
	c.Status = status
	if b.known {
		b.add(i, *c)
	}
	if i < len(n.Memo.Results) {
		n.Memo.Results[i].Status, n.Memo.Results[i].Ended = status, Terminal(status)
	}
}

// tell marks every child that has ended as known to its node, and lists those that
// were not before.
func (n *Node) tell() []int {
	b := n.children()
	fresh := b.untold
	b.untold = nil
	slices.Sort(fresh) // whatever order the news came in, or a checkpoint lists it
	for _, i := range fresh {
		n.Children[i].Told = true
	}
	return fresh
}

// place says where a child run is listed.
type place struct{ node, child int }

// placeOf finds a child run among those of the nodes' current visits.
func (s *State) placeOf(runID string) (place, bool) {
	if s.places == nil {
		s.places = map[string]place{}
		for i, n := range s.Nodes {
			for k := range n.Children {
				s.places[n.Children[k].RunID] = place{i, k}
			}
		}
	}
	p, ok := s.places[runID]
	return p, ok
}

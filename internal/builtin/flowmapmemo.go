package builtin

import (
	"sort"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/node"
)

// mapMemo is what a map finds again when it is called again, so that each child's
// end costs the same however many there are.
type mapMemo struct {
	mapState
	cfg     *mapConfig
	attempt int
	open    int                      // children of this attempt that have not ended, after the last call; -1 before the first
	over    map[int]bool             // those that have
	got     map[int]node.ChildResult // what came of them, as far as it is at hand
	size    int                      // of what was got
}

// maxGot bounds what a map keeps at hand of its children's outputs, in bytes. The
// rest is read once more in the end.
const maxGot = 1 << 20

// atHand finds what the last call of this attempt has left.
func atHand(in *node.Input) *mapMemo {
	if in.Scratch == nil || in.Wake == nil || in.Wake.Fresh == nil {
		return nil
	}
	if m, ok := (*in.Scratch).(*mapMemo); ok && m.attempt == in.Attempt {
		return m
	}
	return nil
}

// look reads what came of the children that ended since the last call, while it is
// quick to be had.
func (m *mapMemo) look(w *node.Wake, first int) error {
	for _, i := range w.Fresh {
		if i < first || m.size > maxGot {
			continue
		}
		c, err := outcome(w, i)
		if err != nil {
			return err
		}
		c.Variables = nil
		m.got[i] = c
		m.size += len(c.Outputs)
	}
	return nil
}

// outcome is what came of a child that has ended.
func (m *mapMemo) outcome(w *node.Wake, i int) (node.ChildResult, error) {
	if c, ok := m.got[i]; ok {
		return c, nil
	}
	return outcome(w, i)
}

// mine finds where in Wake.Children those of this attempt begin (they are in the
// order in which they were asked for, which is that of the items, and the attempts
// before were before), and how many have not ended.
func (m *mapMemo) mine(in *node.Input) (first, open int) {
	all := in.Wake.Children
	first = sort.Search(len(all), func(i int) bool {
		attempt, _, _ := strings.Cut(all[i].Key, ":")
		n, err := strconv.Atoi(attempt)
		return err != nil || n >= in.Attempt
	})
	if m.open >= 0 {
		// One that ended while the last call was made may have been counted then.
		open = m.open
		for _, i := range in.Wake.Fresh {
			if i >= first && !m.over[i] {
				m.over[i] = true
				open--
			}
		}
		return first, open
	}
	for i := first; i < len(all); i++ {
		if m.over[i] = all[i].Ended; !all[i].Ended {
			open++
		}
	}
	return first, open
}

// firstFailure finds the first item that has failed: among those that ended since
// the last call, where these are known, for one that failed before ended the map.
func (m *mapMemo) firstFailure(w *node.Wake, first int) error {
	look := func(i int) error {
		if c := w.Children[i]; i < first || !c.Ended || c.Status == "completed" {
			return nil
		}
		child, err := m.outcome(w, i)
		if err != nil {
			return err
		}
		return atIndex(childError(child), i-first)
	}
	if w.Fresh != nil {
		for _, i := range w.Fresh {
			if err := look(i); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range w.Children {
		if err := look(i); err != nil {
			return err
		}
	}
	return nil
}

func (cfg *mapConfig) gather(m *mapMemo, w *node.Wake, first int) (node.Result, error) {
	var found mapResults
	for i := first; i < len(w.Children); i++ {
		child, err := m.outcome(w, i)
		switch {
		case err != nil:
			return node.Result{}, err
		case child.Status == "completed":
			found.add(outputsOf(child))
		case cfg.OnItemFailure == "fail":
			return node.Result{}, atIndex(childError(child), i-first)
		default:
			found.fail(i-first, childError(child))
		}
	}
	return found.done(), nil
}

package flow

import "sort"

// graph orders links, tells forward from back, and finds each loop's body.
func (c *compiler) graph() {
	w := c.w
	sort.SliceStable(w.Links, func(a, b int) bool { return w.Links[a].ID < w.Links[b].ID })
	for i := range w.Links {
		l := &w.Links[i]
		l.Index = i
		w.Steps[l.From].Out = append(w.Steps[l.From].Out, i)
		w.Steps[l.To].In = append(w.Steps[l.To].In, i)
		if l.Cond != nil || l.Edge != nil && l.Edge.SourceOutput != "" {
			w.Steps[l.From].Routed = true
		}
	}
	c.classify()
	c.findLoops()
	for i := range w.Steps {
		s := &w.Steps[i]
		forwardOut := false
		for _, l := range s.Out {
			if w.Links[l].Back {
				s.Routed = true
			} else {
				forwardOut = true
			}
		}
		w.Order = append(w.Order, i)
		if !forwardOut {
			w.Sinks = append(w.Sinks, i)
		}
		s.Rule = ruleOf(w, s)
	}
	if len(w.Links) > 0 {
		// Ties go by node id; without edges the definition's order stands.
		sort.SliceStable(w.Order, func(a, b int) bool {
			return w.Steps[w.Order[a]].Node.ID < w.Steps[w.Order[b]].Node.ID
		})
	}
	for i := range w.Links {
		l := &w.Links[i]
		for n := range w.Loops {
			if !l.Back && w.Loops[n].in[l.From] && !w.Loops[n].in[l.To] {
				l.Exits = append(l.Exits, n)
			}
		}
	}
}

// ruleOf reads a step's trigger rule from its first incoming edge by id that
// states one: rules sit on edges, but the step has only one.
func ruleOf(w *Workflow, s *Step) string {
	for _, l := range s.In {
		if e := w.Links[l].Edge; e != nil && !w.Links[l].Back && e.TriggerRule != "" {
			return e.TriggerRule
		}
	}
	return AllSuccess
}

// classify marks the links that close a cycle, by a depth-first walk from the
// steps nothing leads to, then from whatever is left, in definition order.
func (c *compiler) classify() {
	w := c.w
	const (
		white = iota
		grey
		black
	)
	color := make([]int, len(w.Steps))
	type frame struct{ step, next int }
	walk := func(root int) {
		stack := []frame{{root, 0}}
		color[root] = grey
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			out := w.Steps[f.step].Out
			if f.next == len(out) {
				color[f.step] = black
				stack = stack[:len(stack)-1]
				continue
			}
			l := &w.Links[out[f.next]]
			f.next++
			switch color[l.To] {
			case grey:
				l.Back = true
			case white:
				color[l.To] = grey
				stack = append(stack, frame{l.To, 0})
			}
		}
	}
	for i := range w.Steps {
		if len(w.Steps[i].In) == 0 {
			walk(i)
		}
	}
	for i := range w.Steps {
		if color[i] == white {
			walk(i)
		}
	}
}

// findLoops builds one loop per header: the union of the natural loops of its
// back links.
func (c *compiler) findLoops() {
	w := c.w
	byHeader := map[int]int{}
	for i := range w.Links {
		if l := &w.Links[i]; l.Back {
			byHeader[l.To] = -1
		}
	}
	if len(byHeader) > MaxLoops {
		c.fail("edges", "at most %d loops are allowed", MaxLoops)
		return
	}
	clear(byHeader)
	for i := range w.Links {
		l := &w.Links[i]
		if !l.Back {
			continue
		}
		n, ok := byHeader[l.To]
		if !ok {
			n = len(w.Loops)
			byHeader[l.To] = n
			w.Loops = append(w.Loops, Loop{Header: l.To, in: map[int]bool{l.To: true}})
		}
		l.Loop = n
		loop := &w.Loops[n]
		loop.Latches = append(loop.Latches, l.From)
		c.grow(loop, l.From)
	}
	for n := range w.Loops {
		loop := &w.Loops[n]
		c.trim(loop)
		for s := range loop.in {
			loop.Body = append(loop.Body, s)
			w.Steps[s].Loops = append(w.Steps[s].Loops, n)
		}
		sort.Ints(loop.Body)
	}
	for i := range w.Steps {
		sort.Ints(w.Steps[i].Loops)
	}
}

// grow adds to a loop everything from which the latch can be reached without
// passing the header.
func (c *compiler) grow(loop *Loop, latch int) {
	stack := []int{latch}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if loop.in[at] {
			continue
		}
		loop.in[at] = true
		for _, l := range c.w.Steps[at].In {
			stack = append(stack, c.w.Links[l].From)
		}
	}
}

// trim takes out of a loop what lies ahead of it: a step that leads into the middle
// of a loop, but is not reached from its header, does its work once.
func (c *compiler) trim(loop *Loop) {
	seen := map[int]bool{loop.Header: true}
	stack := []int{loop.Header}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, l := range c.w.Steps[at].Out {
			if to := c.w.Links[l].To; loop.in[to] && !seen[to] {
				seen[to] = true
				stack = append(stack, to)
			}
		}
	}
	for s := range loop.in {
		if !seen[s] {
			delete(loop.in, s)
		}
	}
}

// bound refuses a cycle that nothing bounds.
func (c *compiler) bound() {
	w := c.w
	if len(w.Loops) == 0 || w.Def.Settings.MaxLoopbackIterations > 0 {
		return
	}
	for _, loop := range w.Loops {
		c.fail("settings.maxLoopbackIterations",
			"nodes %q and %q form a cycle; state how often it may repeat",
			w.Steps[loop.Header].Node.ID, w.Steps[loop.Latches[0]].Node.ID)
	}
}

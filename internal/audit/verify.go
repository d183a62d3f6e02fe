package audit

// maxAnomalies bounds what one verdict lists.
const maxAnomalies = 1000

// Anomaly is a place at which a chain does not hold.
type Anomaly struct {
	AtSeq    int64  `json:"atSeq"`
	Expected string `json:"expectedPrevHash"` // "null" before the first entry
	Actual   string `json:"actualPrevHash"`   // empty if there is none: the entry is missing
}

// Walker verifies a chain, entry by entry in the order in which they are kept.
type Walker struct {
	chain string
	keys  Keys
	end   Position // of what has been walked

	leaves []string // since the last checkpoint, or since the walk began
	base   int64    // the sequence before leaves[0]
	points []Checkpoint
	cut    *Mark // the walk begins where entries were removed

	Anomalies []Anomaly
	// BadCheckpoints are those whose signature or root does not hold.
	BadCheckpoints []int64
	More           bool // there were more anomalies than are listed
}

// Walk begins to verify a chain after a position. Points are the checkpoints of
// what is walked, in order.
func Walk(chain string, after Position, keys Keys, points []Checkpoint) *Walker {
	return &Walker{chain: chain, keys: keys, end: after, base: after.Sequence, points: points}
}

// End is how far the chain has been walked.
func (w *Walker) End() Position { return w.end }

// Leaves are the hashes walked since the last checkpoint.
func (w *Walker) Leaves() []string { return w.leaves }

// Until ends a walk that goes no further than a sequence, which is not the chain's
// end.
func (w *Walker) Until(sequence int64) {
	if w.end.Sequence < sequence {
		w.odd(w.end.Sequence+1, "")
	}
}

func (w *Walker) odd(at int64, actual string) {
	if len(w.Anomalies) == maxAnomalies {
		w.More = true
		return
	}
	w.Anomalies = append(w.Anomalies, Anomaly{AtSeq: at, Expected: w.expected(), Actual: actual})
}

func (w *Walker) expected() string {
	if w.end.Sequence == 0 || w.end.Hash == "" {
		return "null"
	}
	return w.end.Hash
}

// Add takes the next entry that is kept, under the sequence it is kept at.
func (w *Walker) Add(sequence int64, body []byte) {
	if sequence != w.end.Sequence+1 {
		w.odd(w.end.Sequence+1, "")
	}
	e, err := read(body)
	prev := ""
	if e.PrevHash != nil {
		prev = *e.PrevHash
	} else if err == nil && e.Sequence == 1 {
		prev = "null"
	}
	if err != nil || e.Sequence != sequence || e.Chain != w.chain || prev != w.expected() {
		w.odd(sequence, prev)
	}
	w.end = Position{sequence, Hash(body)}
	w.leaves = append(w.leaves, w.end.Hash)
	for len(w.points) > 0 && w.points[0].AtSequence <= sequence {
		w.point(w.points[0])
		w.points = w.points[1:]
	}
}

// point holds a checkpoint against the entries that it anchors. Both the root and
// the number of leaves count: a tree of another size could have the same root. A
// walk begins where a checkpoint ended, so none may be missing in between.
func (w *Walker) point(c Checkpoint) {
	whole := c.From == w.base && c.AtSequence == w.end.Sequence && c.AtSequence-c.From == int64(len(w.leaves))
	if !whole || Root(w.leaves) != c.Root || !w.keys.Signed(c) {
		w.Bad(c.AtSequence)
	}
	w.base, w.leaves = w.end.Sequence, w.leaves[:0]
}

// Bad notes a checkpoint that does not hold.
func (w *Walker) Bad(at int64) {
	if len(w.BadCheckpoints) < maxAnomalies {
		w.BadCheckpoints = append(w.BadCheckpoints, at)
	}
}

// Close ends a walk that has reached the end of what is kept. The chain must reach
// as far as its head says and as far as its last checkpoint, and the last checkpoint
// as far as the head says.
func (w *Walker) Close(head Position, anchored int64) {
	reach := head.Sequence
	for _, c := range w.points {
		w.Bad(c.AtSequence)
		reach = max(reach, c.AtSequence)
	}
	if anchored != w.base && len(w.points) == 0 {
		w.Bad(anchored)
	}
	switch {
	case w.end.Sequence < reach:
		w.odd(w.end.Sequence+1, "")
	case w.end.Sequence > head.Sequence, w.end.Sequence > 0 && w.end.Hash != head.Hash:
		w.odd(w.end.Sequence+1, head.Hash)
	}
}

// Valid reports whether nothing is wrong with what has been walked.
func (w *Walker) Valid() bool { return len(w.Anomalies) == 0 && len(w.BadCheckpoints) == 0 }

package run_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"pgregory.net/rapid"
)

// fork makes a fork of the world's run and lets it go on as far as it does by
// itself. The world it returns knows its source.
func (w *world) fork(mode string, seq int64, o *event.ForkOptions) (*world, error) {
	w.t.Helper()
	w.forks++
	id := ids.Run{Tenant: "acme", Opaque: fmt.Sprintf("%s-fork%d", w.s.ID.Opaque, w.forks)}
	f := run.Fork{Mode: mode, Source: w.s.ID, Seq: seq, At: w.now, Options: o}
	v := &world{
		t: w.t, wf: w.wf, s: run.NewFork(id, w.wf, f), now: w.now, lim: w.lim, pending: map[string]run.Execute{},
		source: w, held: map[string]run.NodeResult{}, calls: map[string]run.Execute{},
	}
	for i := range w.log[:seq] {
		e := w.log[i].Inherited(id)
		if err := v.s.Fold(&e); err != nil {
			w.t.Fatal(err)
		}
		v.log = append(v.log, e)
	}
	if mode == run.ModeReplay {
		v.record = run.NewRecord(w.s.ID)
		for i := range w.log {
			v.record.Add(&w.log[i])
		}
	}
	begin := run.Begin{Payload: w.log[0].Payload, Sealed: w.log[0].Sealed, At: w.log[0].Time}
	if v.record != nil {
		ends, _ := v.record.End(seq)
		for _, at := range ends {
			begin.End = append(begin.End, w.log[at])
		}
	}
	err := v.decide(begin)
	if err == nil {
		v.replay()
	}
	return v, err
}

// replay leads a replay through its source's record, as the engine does.
func (w *world) replay() {
	w.t.Helper()
	for n := 0; w.record != nil; n++ {
		cue := w.record.Next(w.s, func(nodeID string) run.Held {
			if _, ok := w.calls[nodeID]; ok {
				return run.HeldCall
			}
			h, ok := w.held[nodeID]
			if !ok {
				return run.HeldNothing
			}
			if h.Result.Kind() == node.Awaiting {
				return run.HeldChildren
			}
			return run.HeldAnswer
		})
		if cue.Kind == run.NoCue {
			return
		}
		if n > 20*(len(w.source.log)+len(w.log)+20) {
			w.t.Fatalf("the replay does not end: %+v", cue)
		}
		if cue.Kind == run.CueCall {
			step, _ := w.wf.Step(cue.NodeID)
			x := w.calls[cue.NodeID]
			delete(w.calls, cue.NodeID)
			if r := w.call(step, x); !w.hold(r) {
				if err := w.decide(r); err != nil {
					w.t.Fatal(err)
				}
			}
			continue
		}
		if err := w.decide(w.cued(cue)); err != nil {
			w.t.Fatalf("cue %+v: %v", cue, err)
		}
	}
}

func (w *world) cued(cue run.Cue) run.Command {
	switch cue.Kind {
	case run.CueEcho:
		return run.Echo{Event: w.source.log[cue.Seq], Hold: cue.Hold}
	case run.CueElapse:
		return run.Elapse{NodeID: cue.NodeID, Hold: cue.Hold}
	case run.CueLate:
		return run.Late{}
	case run.CueAnswer:
		r := w.held[cue.NodeID]
		for _, seq := range w.record.Answers(w.s, cue.NodeID) {
			r.Recorded = append(r.Recorded, w.source.log[seq])
		}
		delete(w.held, cue.NodeID)
		return r
	case run.CueCancel:
		p, _ := event.Read[event.Cancelled](w.source.log[cue.Seq].Payload)
		return run.Cancel{Reason: p.Reason, By: p.CancelledBy, ParentRunID: p.ParentRunID}
	}
	return run.Missing{NodeID: cue.NodeID}
}

// hold keeps what a pure call of a replay wants from the record.
func (w *world) hold(r run.NodeResult) bool {
	if w.record == nil || r.Err != nil {
		return false
	}
	switch r.Result.Kind() {
	case node.Suspended:
		if w.s.Answered(r.NodeID, r.Result.Interrupt().Key) {
			return false
		}
	case node.Awaiting:
	default:
		return false
	}
	w.held[r.NodeID] = r
	return true
}

// said is what a run says that a replay of it says too.
func said(log []event.Event) []string {
	var out []string
	for i := range log {
		if run.Comparable(&log[i]) {
			out = append(out, string(log[i].Essence()))
		}
	}
	return out
}

// prefix holds a fork's inherited part against its source: the same bytes, and
// the same state at every index.
func (w *world) prefix() {
	w.t.Helper()
	src := w.source
	a, b := run.New(src.s.ID, src.wf), run.NewFork(w.s.ID, w.wf, *w.s.Fork)
	for i := range w.s.Fork.Seq {
		x, y := &src.log[i], &w.log[i]
		same := x.Seq == y.Seq && x.Type == y.Type && x.NodeID == y.NodeID && x.Time.Equal(y.Time) &&
			bytes.Equal(x.Payload, y.Payload) && bytes.Equal(x.Sealed, y.Sealed) && y.Run == w.s.ID && x.ID() != y.ID()
		if !same {
			w.t.Fatalf("event %d differs:\n%s\n%s", i, x.Doc(), y.Doc())
		}
		if a.Fold(x) != nil || b.Fold(y) != nil {
			w.t.Fatal("a prefix does not fold")
		}
		p, q := a.Snapshot(), b.Snapshot()
		last := i == w.s.Fork.Seq-1 // there a replay takes no part in a pause, and children are let go
		if !bytes.Equal(p.Variables, q.Variables) || !bytes.Equal(p.Channels, q.Channels) || p.Status != q.Status && !last {
			w.t.Fatalf("at %d: %s %s %s, in the fork %s %s %s", i, p.Status, p.Variables, p.Channels, q.Status, q.Variables, q.Channels)
		}
	}
}

// paused reports whether somebody made the run stand still. A replay takes no part
// in that, so the order of what was held up meanwhile may differ.
func (w *world) paused() bool {
	return slices.ContainsFunc(w.log, func(e event.Event) bool {
		return e.Type == event.RunPaused || e.Type == event.LogAppended && bytes.Contains(e.Payload, []byte(`"draining"`))
	})
}

// TestReplayOfRandomRuns: whatever happened to a run that has ended, a replay of it
// from anywhere has no effect, says the same, and ends the same.
func TestReplayOfRandomRuns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorldR(t, drawWorkflow(r))
		if err := w.decide(run.Start{Owner: owner("alice"), Transport: "rest"}); err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(0, 40).Draw(r, "steps") {
			w.randomStep(r)
		}
		w.settle(r)
		before := len(w.log)
		seq := rapid.Int64Range(0, int64(len(w.log)-1)).Draw(r, "from")
		v, err := w.fork(run.ModeReplay, seq, nil)
		if err != nil {
			r.Fatal(err)
		}
		v.check()
		v.wellFormed()
		v.prefix()
		if len(w.log) != before || len(v.effects) > 0 || len(v.pending) > 0 {
			r.Fatalf("the replay reached out: %v, calls %v, the source has %d of %d events", v.effects, v.pending, len(w.log), before)
		}
		for i := range v.log[seq:] {
			switch e := &v.log[seq+int64(i)]; e.Type {
			case event.ReplayDiverged:
				if w.paused() {
					continue
				}
				fallthrough
			case event.InterruptRequested, event.NodeDispatched, event.RunPaused:
				r.Fatalf("the replay from %d says %s\n%s\n%s", seq, e.Doc(), dump(w.log), dump(v.log))
			}
		}
		if w.paused() {
			if v.s.Ended == "" {
				r.Fatal("the replay does not end")
			}
			return
		}
		if a, b := said(w.log), said(v.log); !slices.Equal(a, b) {
			r.Fatalf("the replay from %d differs\n%s\n%s\n%s", seq, dump(w.log), dump(v.log), w.wf.Raw)
		}
		if v.s.Status() != w.s.Status() {
			r.Fatalf("the source is %s, the replay %s", w.s.Status(), v.s.Status())
		}
		again, err := v.fork(run.ModeReplay, 0, nil) // of a replay
		if err != nil {
			r.Fatal(err)
		}
		if a, b := said(v.log), said(again.log); !slices.Equal(a, b) {
			r.Fatalf("the replay of the replay differs\n%s\n%s", dump(v.log), dump(again.log))
		}
	})
}

// TestBranchOfRandomRuns: a branch from anywhere is a run of its own that can be
// led to its end, and leaves its source alone.
func TestBranchOfRandomRuns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorldR(t, drawWorkflow(r))
		if err := w.decide(run.Start{Owner: owner("alice"), Transport: "rest"}); err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(0, 40).Draw(r, "steps") {
			w.randomStep(r)
		}
		last := len(w.log) - 1
		if w.s.Ended == "" && last > 0 {
			last-- // the newest event of a run that goes on may be forked at as well
		}
		before, status := len(w.log), w.s.Status()
		seq := rapid.Int64Range(0, int64(last)).Draw(r, "from")
		v, err := w.fork(run.ModeBranch, seq, nil)
		if err != nil {
			r.Fatal(err)
		}
		v.check()
		v.prefix()
		theirs := map[string]bool{}
		for _, c := range w.s.OpenChildren() {
			theirs[c.RunID] = true
		}
		for range rapid.IntRange(0, 20).Draw(r, "more") {
			v.randomStep(r)
			v.check()
		}
		v.settle(r)
		v.check()
		for i := range v.log {
			if e := &v.log[i]; e.Seq >= seq && e.Type == event.NodeDispatched {
				if p, _ := event.Read[event.NodeDispatch](e.Payload); theirs[p.ChildRunID] {
					r.Fatalf("the branch shares child %s of its source", p.ChildRunID)
				}
			}
			if v.log[i].Type.Terminal() != (i == len(v.log)-1) {
				r.Fatalf("event %d of %d is %s", i, len(v.log), v.log[i].Type)
			}
		}
		for _, id := range v.cancelled {
			if theirs[id] {
				r.Fatalf("the branch cancels child %s of its source", id)
			}
		}
		if len(w.log) != before || w.s.Status() != status {
			r.Fatal("the branch changed its source")
		}
	})
}

func dump(log []event.Event) string {
	var b bytes.Buffer
	for i := range log {
		b.WriteString(line2(&log[i]))
	}
	return b.String()
}

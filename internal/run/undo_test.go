package run_test

import (
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/node"
	"github.com/rogpeppe/go-internal/txtar"
)

// charged is a run of a script's workflow that has charged and shipped.
func charged(t *testing.T, id string) *world {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/undo.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, ar.Files[0].Data)
	if err := w.decide(run.Start{Owner: owner("alice"), Transport: "rest", Inputs: raw(`{"who":"ann"}`)}); err != nil {
		t.Fatal(err)
	}
	w.finish("charge", node.DoneRaw(map[string]stdjson.RawMessage{"id": stdjson.RawMessage(id), "amount": stdjson.RawMessage("1")}), nil)
	w.finish("ship", node.DoneRaw(map[string]stdjson.RawMessage{"id": stdjson.RawMessage(`"s-1"`)}), nil)
	return w
}

// What undoing would be given and cannot be kept is no reason to forget the effect.
func TestFactsTooLargeToKeep(t *testing.T) {
	w := charged(t, `"`+strings.Repeat("x", 1<<20)+`"`)
	w.finish("last", node.Result{}, node.Fail("upstream_unavailable", "no stock"))
	w.finish("undo ship", node.DoneRaw(nil), nil)
	w.check()
	if got := undoing(w.s); got != ", compensation partial: ship/1 succeeded charge/1 failed (node_config_invalid)" {
		t.Error(got)
	}
	if b, err := w.s.Encode(); err != nil || len(b) > 3<<20 {
		t.Errorf("a state of %d bytes: %v", len(b), err)
	}
}

// A fork does not undo what the run did whose log it began with.
func TestDisownedEffectsAreNotUndone(t *testing.T) {
	w := charged(t, `"c-1"`)
	w.s.Disown()
	w.finish("last", node.Result{}, node.Fail("upstream_unavailable", "no stock"))
	if got := w.s.CompensationStatus(); got != run.UndoNone || !w.s.Settled() {
		t.Errorf("compensation %s", got)
	}
}

// A plan that is longer than one event may be is written in several, and is whole.
func TestLongPlans(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/undo_loop.txt")
	if err != nil {
		t.Fatal(err)
	}
	def := strings.Replace(string(ar.Files[0].Data), `"maxLoopbackIterations": 3`, `"maxLoopbackIterations": 100`, 1)
	w := newWorld(t, []byte(def))
	if err := w.decide(run.Start{Owner: owner("alice"), Transport: "rest"}); err != nil {
		t.Fatal(err)
	}
	const rounds = 12
	id := stdjson.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`)
	for i := range rounds {
		w.finish("charge", node.DoneRaw(map[string]stdjson.RawMessage{"id": id}), nil)
		again := stdjson.RawMessage("true")
		if i == rounds-1 {
			again = stdjson.RawMessage("false")
		}
		w.finish("more", node.DoneRaw(map[string]stdjson.RawMessage{"again": again}), nil)
	}
	w.finish("last", node.Result{}, node.Fail("upstream_unavailable", "no stock"))
	w.check()
	plans := 0
	for i := range w.log {
		if strings.Contains(string(w.log[i].Payload), `"plan":`) {
			plans++
			if n := len(w.log[i].Sealed); n > 512<<10 {
				t.Errorf("an event of %d bytes", n)
			}
		}
	}
	if c := w.s.Compensation(); len(c.Plan) != rounds || plans < 4 {
		t.Errorf("%d actions in %d events", len(c.Plan), plans)
	}
	for range rounds {
		w.finish("undo charge", node.DoneRaw(nil), nil)
	}
	w.check()
	if got := w.s.CompensationStatus(); got != run.UndoCompleted {
		t.Error(got)
	}
}

package builtin

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-run/fermata/node"
)

// mapState is what a map over child runs waits with: the list and the mapped
// variables as they were when it began. How far it has come is read off the
// children themselves, so the state stays the same bytes from wake to wake.
type mapState struct {
	Items  []json.RawMessage          `json:"items"`
	Mapped map[string]json.RawMessage `json:"mapped"`
}

func (cfg *mapConfig) runChildren(in *node.Input) (node.Result, error) {
	if in.Wake == nil {
		list, err := newScope(in).items(cfg.Items)
		if err != nil {
			return node.Result{}, err
		}
		st := mapState{Items: list, Mapped: mapped(in, cfg.InputMapping)}
		if len(list) == 0 {
			return (&mapResults{}).done(), nil
		}
		return cfg.startNext(in, st, st.raw(), 0, 0), nil
	}
	var st mapState
	if err := json.Unmarshal(in.Wake.State, &st); err != nil {
		return node.Result{}, node.Fail(node.CodeInternal, "the map was woken without its items")
	}
	own, open := mine(in)
	if cfg.OnItemFailure == "fail" {
		if err := firstFailure(in.Wake, own); err != nil {
			return node.Result{}, err
		}
	}
	if len(own) < len(st.Items) || open > 0 {
		return cfg.startNext(in, st, in.Wake.State, len(own), open), nil
	}
	return gather(in.Wake, own)
}

// raw writes the state with the items as they came in.
func (st mapState) raw() json.RawMessage {
	var m object
	for _, name := range sortedKeys(st.Mapped) {
		m.set(name, st.Mapped[name])
	}
	return object{{"items", array(st.Items)}, {"mapped", m.raw()}}.raw()
}

// startNext fills up to the bound with children for the items that come next.
func (cfg *mapConfig) startNext(in *node.Input, st mapState, state json.RawMessage, started, open int) node.Result {
	bound, _ := cfg.Concurrency.whole("concurrency", 4, 1, 64)
	var children []node.Child
	for i := started; i < len(st.Items) && open < int(bound); i++ {
		inputs := make(map[string]json.RawMessage, len(st.Mapped)+2)
		for name, v := range st.Mapped {
			inputs[name] = v
		}
		inputs["item"], inputs["index"] = orNull(st.Items[i]), position(i)
		children = append(children, node.Child{
			WorkflowID: cfg.WorkflowID, Inputs: inputs, Key: fmt.Sprintf("%d:%d", in.Attempt, i),
		})
		open++
	}
	return node.Await(state, children...)
}

// mine lists the children of this attempt, by item, as positions in
// Wake.Children, and counts those that have not ended. They are in the order in
// which they were asked for, which is that of the items.
func mine(in *node.Input) (own []int, open int) {
	for i, c := range in.Wake.Children {
		if c.Key != fmt.Sprintf("%d:%d", in.Attempt, len(own)) {
			continue
		}
		own = append(own, i)
		if !c.Ended {
			open++
		}
	}
	return own, open
}

func firstFailure(w *node.Wake, own []int) error {
	for item, i := range own {
		if c := w.Children[i]; !c.Ended || c.Status == "completed" {
			continue
		}
		child, err := outcome(w, i)
		if err != nil {
			return err
		}
		return atIndex(childError(child), item)
	}
	return nil
}

func gather(w *node.Wake, own []int) (node.Result, error) {
	var found mapResults
	for item, i := range own {
		child, err := outcome(w, i)
		if err != nil {
			return node.Result{}, err
		}
		if child.Status == "completed" {
			found.add(outputsOf(child))
			continue
		}
		found.fail(item, childError(child))
	}
	return found.done(), nil
}

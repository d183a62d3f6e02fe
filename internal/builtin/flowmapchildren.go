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
		r, _ := cfg.startNext(in, st, st.raw(), 0, 0)
		return r, nil
	}
	m := &mapMemo{cfg: cfg, attempt: in.Attempt, open: -1, over: map[int]bool{}, got: map[int]node.ChildResult{}}
	if err := json.Unmarshal(in.Wake.State, &m.mapState); err != nil {
		return node.Result{}, node.Fail(node.CodeInternal, "the map was woken without its items")
	}
	if in.Scratch != nil {
		*in.Scratch = m
	}
	return cfg.goOn(in, m)
}

// goOn deals with children that have ended.
func (cfg *mapConfig) goOn(in *node.Input, m *mapMemo) (node.Result, error) {
	first, open := m.mine(in)
	if err := m.look(in.Wake, first); err != nil {
		return node.Result{}, err
	}
	if cfg.OnItemFailure == "fail" {
		if err := m.firstFailure(in.Wake, first); err != nil {
			return node.Result{}, err
		}
	}
	started := len(in.Wake.Children) - first
	if started < len(m.Items) || open > 0 {
		r, asked := cfg.startNext(in, m.mapState, in.Wake.State, started, open)
		m.open = open + asked
		return r, nil
	}
	return cfg.gather(m, in.Wake, first)
}

// raw writes the state with the items as they came in.
func (st mapState) raw() json.RawMessage {
	var m object
	for _, name := range sortedKeys(st.Mapped) {
		m.set(name, st.Mapped[name])
	}
	return object{{"items", array(st.Items)}, {"mapped", m.raw()}}.raw()
}

// startNext fills up to the bound with children for the items that come next, and
// counts them.
func (cfg *mapConfig) startNext(in *node.Input, st mapState, state json.RawMessage, started, open int) (node.Result, int) {
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
	return node.Await(state, children...), len(children)
}

package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/node"
)

// awaits runs a node that must ask for children.
func awaits(t *testing.T, id string, i *node.Input) node.Result {
	t.Helper()
	r, err := run(t, id, i)
	if err != nil || r.Kind() != node.Awaiting {
		t.Fatalf("%s %s: kind %v, %v", id, i.Config, r.Kind(), err)
	}
	return r
}

func inputsOf(c node.Child) string {
	var o object
	for _, name := range sortedKeys(c.Inputs) {
		o = append(o, pair{name, c.Inputs[name]})
	}
	return string(o.raw())
}

func TestSubWorkflowStartsOneChild(t *testing.T) {
	i := in(`{"workflowId":"child","inputMapping":{"received":"current","absent":"never","null":"void"}}`, "port", exact, "received", `"port"`)
	i.Variables = raws{"current": json.RawMessage(exact), "void": json.RawMessage("null")}
	r := awaits(t, "core.subWorkflow", i)
	if len(r.Children()) != 1 || r.Children()[0].WorkflowID != "child" || r.Children()[0].Detached {
		t.Fatalf("%+v", r.Children())
	}
	if got := inputsOf(r.Children()[0]); got != `{"null":null,"port":`+exact+`,"received":`+exact+`}` {
		t.Error(got)
	}
	r = awaits(t, "core.subWorkflow", in(`{"workflowId":"child","propagateCancellation":false}`, "workflowId", `"other"`))
	if c := r.Children()[0]; !c.Detached || c.WorkflowID != "child" {
		t.Errorf("%+v", c)
	}
}

func ended(key, status string) node.ChildResult {
	return node.ChildResult{RunID: "acme/child-" + key, Key: key, Status: status, Ended: true}
}

func subWoken(config string, children ...node.ChildResult) *node.Input {
	i := in(config)
	i.Wake = &node.Wake{Children: children}
	return i
}

func TestSubWorkflowCompletes(t *testing.T) {
	c := ended("0", "completed")
	c.Outputs = json.RawMessage(exact)
	c.Variables = raws{"result": json.RawMessage("12345678901234567890"), "empty": json.RawMessage("null")}
	i := subWoken(`{"workflowId":"child","outputMapping":{"outcome":"result","kept":"missing","cleared":"empty"}}`, c)
	completes(t, "core.subWorkflow", i, `{"childRunId":"acme/child-0","childStatus":"completed","outputs":`+exact+`}`)
	writes, _ := i.Recorded()
	if len(writes) != 2 || writes[0].Variable != "cleared" || string(writes[0].Value) != "null" ||
		writes[1].Variable != "outcome" || string(writes[1].Value) != "12345678901234567890" {
		t.Errorf("%+v", writes)
	}
	completes(t, "core.subWorkflow", subWoken(`{"workflowId":"child"}`, ended("0", "completed")),
		`{"childRunId":"acme/child-0","childStatus":"completed","outputs":{}}`)
}

func TestSubWorkflowFails(t *testing.T) {
	c := ended("0", "failed")
	c.Outputs = json.RawMessage(`{"partial":1}`)
	c.Variables = raws{"result": json.RawMessage("1")}
	c.Error = &node.Error{Code: "approval_rejected", Message: "Nein.", Details: map[string]any{"action": "reject"}, Retryable: true}
	i := subWoken(`{"workflowId":"child","outputMapping":{"outcome":"result"}}`, c)
	e := fails(t, "core.subWorkflow", i, "approval_rejected", "Nein.")
	if e.Retryable || e.Details["childRunId"] != "acme/child-0" || e.Details["action"] != "reject" {
		t.Errorf("%+v", e)
	}
	if len(c.Error.Details) != 1 {
		t.Error("the child's own error was changed")
	}
	i = subWoken(`{"workflowId":"child","onChildFailure":"absorb","outputMapping":{"outcome":"result"}}`, c)
	completes(t, "core.subWorkflow", i, `{"childRunId":"acme/child-0","childStatus":"failed",`+
		`"error":{"code":"approval_rejected","message":"Nein.","details":{"action":"reject","childRunId":"acme/child-0"}},"outputs":{"partial":1}}`)
	if writes, _ := i.Recorded(); len(writes) != 0 {
		t.Errorf("harvested from a failed child: %+v", writes)
	}
	fails(t, "core.subWorkflow", subWoken(`{"workflowId":"child"}`, ended("0", "cancelled")), node.CodeInternal, "cancelled")
}

func TestSubWorkflowWakesEarlyAndAgain(t *testing.T) {
	open := node.ChildResult{RunID: "acme/child-0", Key: "0", Status: "waiting-approval"}
	if r := awaits(t, "core.subWorkflow", subWoken(`{"workflowId":"child"}`, open)); len(r.Children()) != 0 {
		t.Errorf("a second child was started: %+v", r.Children())
	}
	// A second attempt is shown the child of the first one too.
	i := subWoken(`{"workflowId":"child"}`, ended("0", "failed"), node.ChildResult{Key: "1", Status: "running"})
	i.Attempt = 1
	awaits(t, "core.subWorkflow", i)
	i.Wake.Children[1] = ended("1", "completed")
	completes(t, "core.subWorkflow", i, `{"childRunId":"acme/child-1","childStatus":"completed","outputs":{}}`)
	fails(t, "core.subWorkflow", subWoken(`{"workflowId":"child"}`), node.CodeInternal, "woken")

	loaded := ended("0", "completed")
	loaded.Outputs = json.RawMessage(`{"a":1}`)
	i = subWoken(`{"workflowId":"child"}`, ended("0", "completed"))
	i.Wake.Load = func(int) (node.ChildResult, error) { return loaded, nil }
	completes(t, "core.subWorkflow", i, `{"childRunId":"acme/child-0","childStatus":"completed","outputs":{"a":1}}`)
	i.Wake.Load = func(int) (node.ChildResult, error) { return loaded, errors.New("disk") }
	if _, err := run(t, "core.subWorkflow", i); err == nil || err.Error() != "disk" {
		t.Error(err)
	}
}

func TestSubWorkflowConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{}`: "workflowId",
		`{"workflowId":"c","waitForCompletion":false}`:   "waitForCompletion",
		`{"workflowId":"c","onChildFailure":"ignore"}`:   "onChildFailure",
		`{"workflowId":"c","inputMapping":{"a":1}}`:      "config.inputMapping",
		`{"workflowId":"c","outputMapping":[]}`:          "config.outputMapping",
		`{"workflowId":"c","propagateCancellation":"n"}`: "config.propagateCancellation",
	} {
		refused(t, "core.subWorkflow", config, field)
		badConfig(t, "core.subWorkflow", in(config), field)
	}
	accepted(t, "core.subWorkflow", `{"workflowId":"c","waitForCompletion":true,"onChildFailure":"absorb"}`)
}

func TestMapExpression(t *testing.T) {
	completes(t, "core.flow.map", in(`{"items":[12345678901234567890,"é"],"expression":"item"}`), `{"count":2,"results":[12345678901234567890,"é"]}`)
	completes(t, "core.flow.map", in(`{"expression":"index"}`, "items", `["a","b","c"]`), `{"count":3,"results":[0,1,2]}`)
	completes(t, "core.flow.map", in(`{"items":"= []","expression":"fail"}`), `{"count":0,"results":[]}`)
	e := fails(t, "core.flow.map", in(`{"items":[1],"expression":"fail"}`), node.CodeConfig, "config.expression")
	if e.Details["index"] != 0 || e.Details["field"] != "config.expression" {
		t.Error(e.Details)
	}
	i := in(`{"items":[1,2],"expression":"item","onItemFailure":"collect"}`)
	i.Services.Eval = func(_ string, extra map[string]json.RawMessage) (json.RawMessage, error) {
		if string(extra["item"]) == "1" {
			return nil, &node.Error{Code: "acme.bad", Message: "bad item"}
		}
		return extra["item"], nil
	}
	completes(t, "core.flow.map", i, `{"count":2,"errors":[{"index":0,"code":"acme.bad","message":"bad item"}],"results":[null,2]}`)
}

func TestMapConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"items":[]}`: "config",
		`{"items":[],"expression":"item","workflowId":"c"}`:         "config",
		`{"items":[],"expression":"item","concurrency":0}`:          "concurrency",
		`{"items":[],"expression":"item","concurrency":65}`:         "concurrency",
		`{"items":[],"expression":"item","onItemFailure":"ignore"}`: "onItemFailure",
		`{"items":{},"expression":"item"}`:                          "config.items",
	} {
		refused(t, "core.flow.map", config, field)
		badConfig(t, "core.flow.map", in(config), field)
	}
	refused(t, "core.flow.map", `{"expression":"((("}`, "config.expression")
	accepted(t, "core.flow.map", `{"expression":"item"}`)
	accepted(t, "core.flow.map", `{"workflowId":"c","items":"= []"}`)
	badConfig(t, "core.flow.map", in(`{"workflowId":"c"}`), "items")
}

// host plays the host for a map over child runs: it starts children, ends them
// in the order pick says, and wakes the node each time.
type host struct {
	t        *testing.T
	in       *node.Input
	children []node.ChildResult
	inputs   []string
	state    string
	most     int
	lazy     bool // outcomes are handed out by Load only
	end      func(i int, c *node.ChildResult)
	pick     func(open []int) int

	// With memory the node finds its scratch again, but for every sixth call, and is
	// told which children have ended. Now and then one more has ended than it is told.
	memory bool
	calls  int
	behind []int
}

func (h *host) play() (node.Result, error) {
	h.t.Helper()
	nt := typeOf(h.t, "core.flow.map")
	for range 100_000 {
		r, err := nt.Run(h.t.Context(), h.in)
		if err != nil || r.Kind() != node.Awaiting {
			return r, err
		}
		if h.state != "" && h.state != string(r.State()) {
			h.t.Fatalf("the state changed from wake to wake: %.100s", r.State())
		}
		h.state = string(r.State())
		for _, c := range r.Children() {
			h.inputs = append(h.inputs, inputsOf(c))
			h.children = append(h.children, node.ChildResult{
				RunID: fmt.Sprintf("acme/c%d", len(h.children)), WorkflowID: c.WorkflowID, Key: c.Key, Status: "running",
			})
		}
		open := h.open()
		h.most = max(h.most, len(open))
		fresh := h.behind
		h.behind = nil
		if len(open) == 0 && len(fresh) == 0 {
			h.t.Fatal("the node waits for nothing")
		}
		if h.calls++; len(open) > 0 {
			fresh = append(fresh, h.over(open))
			if open = h.open(); h.memory && h.calls%3 == 0 && len(open) > 0 {
				h.behind = []int{h.over(open)}
			}
		}
		h.in.Wake = h.wake(r.State())
		if h.memory {
			if h.in.Wake.Fresh = fresh; h.in.Scratch == nil || h.calls%6 == 0 {
				h.in.Scratch = new(any)
			}
		}
	}
	h.t.Fatal("the node never ends")
	return node.Result{}, nil
}

// over ends one of the open children.
func (h *host) over(open []int) int {
	i := h.pick(open)
	h.children[i].Ended, h.children[i].Status = true, "completed"
	h.end(i, &h.children[i])
	return i
}

func (h *host) open() (open []int) {
	for i, c := range h.children {
		if !c.Ended {
			open = append(open, i)
		}
	}
	return open
}

func (h *host) wake(state json.RawMessage) *node.Wake {
	seen := slices.Clone(h.children)
	w := &node.Wake{State: state, Children: seen}
	if h.lazy {
		for i := range seen {
			seen[i].Outputs, seen[i].Error = nil, nil
		}
		w.Load = func(i int) (node.ChildResult, error) { return h.children[i], nil }
	}
	return w
}

func echo(i int, c *node.ChildResult) {
	c.Outputs = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))
}

func oldest(open []int) int { return open[0] }
func newest(open []int) int { return open[len(open)-1] }

func TestMapOverChildren(t *testing.T) {
	for n := range 4 {
		lazy, memory := n&1 != 0, n&2 != 0
		for name, pick := range map[string]func([]int) int{"oldest": oldest, "newest": newest} {
			i := in(`{"workflowId":"child","concurrency":3,"inputMapping":{"who":"user","item":"user","none":"none"}}`,
				"items", `[12345678901234567890,"é",null,{"a":1},[],5,6]`)
			i.Variables["user"] = json.RawMessage(`"ada"`)
			h := &host{t: t, in: i, end: echo, pick: pick, lazy: lazy, memory: memory}
			r, err := h.play()
			if err != nil {
				t.Fatal(err)
			}
			if got := outputs(r); got != `{"count":7,"results":[{"n":0},{"n":1},{"n":2},{"n":3},{"n":4},{"n":5},{"n":6}]}` {
				t.Errorf("%s: %s", name, got)
			}
			if h.most != 3 || len(h.children) != 7 {
				t.Errorf("%s: %d at once, %d in all", name, h.most, len(h.children))
			}
			if h.inputs[0] != `{"index":0,"item":12345678901234567890,"who":"ada"}` || h.inputs[2] != `{"index":2,"item":null,"who":"ada"}` {
				t.Errorf("%v", h.inputs)
			}
		}
	}
}

func TestMapKeepsTheListItBeganWith(t *testing.T) {
	i := in(`{"workflowId":"child","concurrency":1,"inputMapping":{"who":"user"}}`, "items", `[1,2]`)
	i.Variables["user"] = json.RawMessage(`"ada"`)
	h := &host{t: t, in: i, pick: oldest}
	h.end = func(n int, c *node.ChildResult) {
		i.Inputs["items"] = json.RawMessage(`["changed"]`)
		i.Variables["user"] = json.RawMessage(`"eve"`)
	}
	r, err := h.play()
	if err != nil || outputs(r) != `{"count":2,"results":[{},{}]}` {
		t.Error(outputs(r), err)
	}
	if got := strings.Join(h.inputs, " "); got != `{"index":0,"item":1,"who":"ada"} {"index":1,"item":2,"who":"ada"}` {
		t.Error(got)
	}
}

func TestMapChildFailures(t *testing.T) {
	failing := func(i int, c *node.ChildResult) {
		echo(i, c)
		if i == 1 {
			c.Status, c.Outputs = "failed", nil
			c.Error = &node.Error{Code: "acme.bad", Message: "bad"}
		}
		if i == 2 {
			c.Status, c.Outputs = "cancelled", nil
		}
	}
	for _, lazy := range []bool{false, true} {
		h := &host{t: t, in: in(`{"workflowId":"c","onItemFailure":"collect","items":[1,2,3,4]}`), end: failing, pick: newest, lazy: lazy}
		r, err := h.play()
		want := `{"count":4,"errors":[{"index":1,"code":"acme.bad","message":"bad","childRunId":"acme/c1"},` +
			`{"index":2,"code":"internal_error","message":"The child run ended as cancelled.","childRunId":"acme/c2"}],` +
			`"results":[{"n":0},null,null,{"n":3}]}`
		if err != nil || outputs(r) != want {
			t.Errorf("%s, %v", outputs(r), err)
		}
		h = &host{t: t, in: in(`{"workflowId":"c","concurrency":2,"items":[1,2,3,4]}`), end: failing, pick: newest, lazy: lazy}
		_, err = h.play()
		e := failedWith(t, "fail", err, "acme.bad", "bad")
		if e.Retryable || e.Details["index"] != 1 || e.Details["childRunId"] != "acme/c1" || len(h.children) != 2 {
			t.Errorf("%+v after %d children", e, len(h.children))
		}
	}
}

func TestMapSecondAttempt(t *testing.T) {
	i := in(`{"workflowId":"c","concurrency":2,"items":[1,2,3]}`)
	i.Attempt = 1
	h := &host{t: t, in: i, end: echo, pick: oldest}
	// Children of the attempt before are still shown.
	h.children = []node.ChildResult{ended("0:0", "completed"), ended("0:1", "failed")}
	r, err := h.play()
	if err != nil || outputs(r) != `{"count":3,"results":[{"n":2},{"n":3},{"n":4}]}` {
		t.Error(outputs(r), err)
	}
}

func TestMapManyChildren(t *testing.T) {
	if testing.Short() {
		t.Skip("walks through a few hundred wake-ups")
	}
	list := "[" + strings.Repeat(`"x",`, 299) + `"x"]`
	h := &host{t: t, in: in(`{"workflowId":"c","concurrency":64}`, "items", list), end: echo, pick: oldest, lazy: true, memory: true}
	r, err := h.play()
	if err != nil || string(r.Outputs()["count"]) != "300" || h.most != 64 {
		t.Error(err, h.most)
	}
}

func TestMapEmptyAndBroken(t *testing.T) {
	completes(t, "core.flow.map", in(`{"workflowId":"c","items":[]}`), `{"count":0,"results":[]}`)
	i := in(`{"workflowId":"c","items":[1]}`)
	i.Wake = &node.Wake{}
	fails(t, "core.flow.map", i, node.CodeInternal, "woken")
	i.Wake = &node.Wake{State: json.RawMessage(`{"items":[1],"mapped":{}}`), Children: []node.ChildResult{ended("0:0", "completed")}}
	i.Wake.Load = func(int) (node.ChildResult, error) { return node.ChildResult{}, errors.New("disk") }
	if _, err := run(t, "core.flow.map", i); err == nil || err.Error() != "disk" {
		t.Error(err)
	}
}

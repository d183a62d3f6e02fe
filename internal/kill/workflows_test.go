package kill

import (
	"encoding/json"
	"strings"
)

type object = map[string]any

func flow(id string, nodes, edges []any, extra ...object) object {
	if edges == nil {
		edges = []any{}
	}
	d := object{
		"id": id, "name": id, "version": "1", "nodes": nodes, "edges": edges, "triggers": []any{},
		"variables": []any{}, "metadata": object{}, "settings": object{},
	}
	for _, x := range extra {
		for k, v := range x {
			d[k] = v
		}
	}
	return d
}

func step(id, typeID string, config object, extra ...object) any {
	if config == nil {
		config = object{}
	}
	n := object{
		"id": id, "typeId": typeID, "name": id, "position": object{"x": 0, "y": 0}, "config": config, "inputs": object{},
	}
	for _, x := range extra {
		for k, v := range x {
			n[k] = v
		}
	}
	return n
}

func noop(id string) any { return step(id, "core.noop", nil) }

func edge(from, to string, condition ...string) any {
	e := object{"id": from + "-" + to, "sourceNodeId": from, "targetNodeId": to}
	if len(condition) > 0 {
		e["condition"] = object{"type": "expression", "expression": condition[0]}
	}
	return e
}

// chain joins nodes one after the other.
func chain(ids ...string) []any {
	var out []any
	for i := 1; i < len(ids); i++ {
		out = append(out, edge(ids[i-1], ids[i]))
	}
	return out
}

// counter is a loop variable and the bound of its loop.
func counter(repeats int) object {
	return object{
		"variables": []any{object{"name": "i", "type": "number", "defaultValue": 0}},
		"settings":  object{"maxLoopbackIterations": repeats},
	}
}

func count(id string) any {
	return step(id, "core.flow.set", object{"variables": object{"i": "variables.i + 1"}})
}

// callsOut says whether a node calls the receiver; the name tells.
func callsOut(node string) bool { return strings.HasPrefix(node, "call") }

// post calls the receiver with the run's tag, and repeats while it is refused.
func post(id, url string) any {
	return step(id, "core.http.request",
		object{"url": url, "method": "POST", "headers": object{"X-Node": id}},
		object{
			"inputs":   object{"body": object{"type": "variable", "variableName": "tag"}},
			"settings": object{"maxRetries": 8, "retryDelayMs": 10, "retryBackoff": 1},
		})
}

// definitions are the workflows of the load. Those that call out are left out
// without a receiver to call.
func definitions(receiver string) []object {
	gate := func(id string) any { return step(id, "core.approvalGate", object{"title": "Go on?"}) }
	wait := func(id string, ms int) any { return step(id, "core.delay", object{"delayMs": ms}) }
	child := func(id, workflow string) any {
		return step(id, "core.subWorkflow", object{"workflowId": workflow, "inputMapping": object{"tag": "tag"}})
	}
	all := []object{
		flow("one", []any{noop("a")}, nil),
		flow("five", []any{noop("a"), noop("b"), noop("c"), noop("d"), noop("e")}, chain("a", "b", "c", "d", "e")),
		flow("gate", []any{noop("a"), gate("ok"), noop("z")}, chain("a", "ok", "z")),
		flow("gates", []any{noop("a"), gate("left"), gate("right"), noop("z")},
			append(chain("a", "left", "z"), chain("a", "right", "z")...)),
		flow("delay", []any{noop("a"), wait("d", 150), noop("z")}, chain("a", "d", "z")),
		flow("long", []any{wait("d", 3_600_000)}, nil),
		flow("child", []any{gate("ok"), wait("d", 20), noop("z")}, chain("ok", "d", "z")),
		flow("parent", []any{noop("a"), child("sub", "child"), noop("z")}, chain("a", "sub", "z")),
		flow("fork", []any{noop("a"), wait("l", 30), noop("m"), wait("r", 60), step("z", "core.flow.merge", object{"mode": "array"})},
			append(chain("a", "l", "z"), append(chain("a", "m", "z"), chain("a", "r", "z")...)...)),
		flow("loop", []any{count("n"), wait("d", 15), noop("z")},
			append(chain("n", "d"), edge("d", "n", "variables.i < 4.0"), edge("d", "z", "variables.i >= 4.0")), counter(9)),
		flow("ticks", []any{count("n"), wait("d", 3), noop("z")},
			append(chain("n", "d"), edge("d", "n", "variables.i < 40.0"), edge("d", "z", "variables.i >= 40.0")), counter(50)),
		flow("refuse", []any{step("f", "core.fail", object{"code": "upstream_unavailable", "retryable": true},
			object{"settings": object{"maxRetries": 3, "retryDelayMs": 20, "retryBackoff": 1}})}, nil),
	}
	if receiver == "" {
		return all
	}
	return append(all,
		flow("effect", []any{noop("a"), post("call", receiver), noop("z")}, chain("a", "call", "z")),
		flow("flaky", []any{post("call", receiver+"?refuse=2"), post("callNext", receiver)}, chain("call", "callNext")),
		flow("effects", []any{noop("a"), post("callL", receiver), post("callR", receiver), gate("ok"), post("callZ", receiver)},
			append(chain("a", "callL", "ok"), append(chain("a", "callR", "ok"), edge("ok", "callZ"))...)),
		flow("calls", []any{count("n"), post("call", receiver), noop("z")},
			append(chain("n", "call"), edge("call", "n", "variables.i < 3.0"), edge("call", "z", "variables.i >= 3.0")), counter(9)),
	)
}

// ending says how the runs of a workflow may end.
func ending(workflow string) []string {
	switch workflow {
	case "long":
		return []string{"cancelled"}
	case "refuse":
		return []string{"failed"}
	case "parent", "child":
		return []string{"completed", "cancelled"}
	}
	return []string{"completed"}
}

func (h *host) register(def object) {
	h.t.Helper()
	r, err := h.call("PUT", "/host/fermata/workflows/"+def["id"].(string), def)
	if err != nil || r.status != 200 && r.status != 201 {
		h.t.Fatalf("register %s: %v %v", def["id"], r, err)
	}
}

// create starts a run. The id is empty if it was not acknowledged.
func (h *host) create(workflow, tag string) (id string, err error) {
	r, err := h.call("POST", "/runs", object{"workflowId": workflow, "inputs": object{"tag": tag}})
	if err != nil {
		return "", err
	}
	if r.status != 201 {
		h.t.Errorf("create %s: %v", workflow, r)
		return "", errDown
	}
	var made struct {
		RunID string `json:"runId"`
	}
	err = json.Unmarshal(r.body, &made)
	return made.RunID, err
}

package bench

import (
	"encoding/json"
	"fmt"
)

type object = map[string]any

func flow(id string, nodes, edges []any, extra object) object {
	if edges == nil {
		edges = []any{}
	}
	d := object{
		"id": id, "name": id, "version": "1", "nodes": nodes, "edges": edges, "triggers": []any{},
		"variables": []any{}, "metadata": object{}, "settings": object{},
	}
	for k, v := range extra {
		d[k] = v
	}
	return d
}

func step(id, typeID string, config object) any {
	return object{
		"id": id, "typeId": typeID, "name": id, "position": object{"x": 0, "y": 0}, "config": config, "inputs": object{},
	}
}

func edge(from, to, condition string) any {
	e := object{"id": from + "-" + to, "sourceNodeId": from, "targetNodeId": to}
	if condition != "" {
		e["condition"] = object{"type": "expression", "expression": condition}
	}
	return e
}

func chain(n int) (nodes, edges []any) {
	for i := range n {
		id := fmt.Sprintf("n%d", i)
		nodes = append(nodes, step(id, "core.noop", object{}))
		if i > 0 {
			edges = append(edges, edge(fmt.Sprintf("n%d", i-1), id, ""))
		}
	}
	return nodes, edges
}

// perRound is how many events one round of the loop in burst and long writes:
// a start, a change for each variable and the counter, and an outcome.
const perRound = 100

// filler is a node that writes perRound events and counts its rounds.
func filler() any {
	set := object{"i": "variables.i + 1"}
	for v := range perRound - 3 {
		set[fmt.Sprintf("v%02d", v)] = "variables.i"
	}
	return step("fill", "core.flow.set", object{"variables": set})
}

func number(name string, value int) object {
	return object{"name": name, "type": "number", "defaultValue": value}
}

// definitions are the workflows of the benchmark.
func definitions() []object {
	gate := func(id string) any { return step(id, "core.approvalGate", object{"title": "Go on?"}) }
	oneN, oneE := chain(1)
	fiveN, fiveE := chain(5)
	loop := []any{edge("fill", "fill", "variables.i < variables.n")}
	return []object{
		flow("one", oneN, oneE, nil),
		flow("five", fiveN, fiveE, nil),
		flow("gate", []any{gate("ok")}, nil, nil),
		// A gate, so that subscribers can be there first, and then n rounds.
		flow("burst", []any{gate("ok"), filler()}, append(loop, edge("ok", "fill", "")), object{
			"variables": []any{number("i", 0), number("n", 1)}, "settings": object{"maxLoopbackIterations": 1000},
		}),
		// n rounds, and then one gate after the other.
		flow("long", []any{filler(), gate("ok"), step("again", "core.flow.set", object{"variables": object{"j": "variables.j + 1"}})},
			append(loop, edge("fill", "ok", "variables.i >= variables.n"), edge("ok", "again", ""), edge("again", "ok", "variables.j < variables.m")),
			object{
				"variables": []any{number("i", 0), number("n", 1), number("j", 0), number("m", 1)},
				"settings":  object{"maxLoopbackIterations": 1000},
			}),
	}
}

// register puts the workflows into a host.
func register(addr string) error {
	c, err := Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, d := range definitions() {
		b, err := json.Marshal(d)
		if err != nil {
			return err
		}
		status, answer, err := c.Do("PUT", "/host/fermata/workflows/"+d["id"].(string), b)
		if err != nil {
			return err
		}
		if status != 200 && status != 201 {
			return fmt.Errorf("register %s: %d %s", d["id"], status, answer)
		}
	}
	return nil
}

// createBody is the request that starts a run; inputs may be empty.
func createBody(workflow, inputs string) []byte {
	if inputs == "" {
		return []byte(`{"workflowId":"` + workflow + `"}`)
	}
	return []byte(`{"workflowId":"` + workflow + `","inputs":` + inputs + `}`)
}

// create starts a run and returns the path of its snapshot.
func (c *Conn) create(body []byte) (path string, err error) {
	status, answer, err := c.Do("POST", "/runs", body)
	if err != nil {
		return "", err
	}
	if status != 201 {
		return "", fmt.Errorf("create: %d %s", status, answer)
	}
	return string(member(answer, "statusUrl")), nil
}

var accept = []byte(`{"resumeValue":{"action":"accept"}}`)

// answer accepts what the gate of a run asks.
func (c *Conn) answer(path string) error {
	status, answer, err := c.Do("POST", path+"/interrupts/ok", accept)
	if err == nil && status != 200 {
		err = fmt.Errorf("answer: %d %s", status, answer)
	}
	return err
}

// status reads a run's status.
func (c *Conn) status(path string) (string, error) {
	code, doc, err := c.Do("GET", path, nil)
	if err == nil && code != 200 {
		err = fmt.Errorf("GET %s: %d %s", path, code, doc)
	}
	return string(member(doc, "status")), err
}

// await reads a run's snapshot until it has ended, as a client would.
func (c *Conn) await(path string) error {
	_, err := awaitBy(func() *Conn { return c }, path)
	return err
}

// awaitBy does so over whatever connection is next, and counts.
func awaitBy(next func() *Conn, path string) (reads int, err error) {
	for reads = 1; ; reads++ {
		s, err := next().status(path)
		if err != nil || s == "completed" {
			return reads, err
		}
		if s == "failed" || s == "cancelled" {
			return reads, fmt.Errorf("run %s has %s", path, s)
		}
	}
}

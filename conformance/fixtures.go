package conformance

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
)

// role is what a check needs a workflow for.
type role string

// The roles, each with the protocol's fixture that can play it, if there is one.
const (
	noop       role = "noop"       // one node, completes
	chain      role = "chain"      // three nodes in a row
	delay      role = "delay"      // runs for inputs.delayMs
	echo       role = "echo"       // hands inputs.payload on as an output
	failing    role = "failing"    // ends failed
	approval   role = "approval"   // accept or reject
	clarify    role = "clarify"    // one question, q1
	external   role = "external"   // waits for an event about fixture-order-1
	family     role = "family"     // its child waits for an approval
	mapped     role = "mapped"     // its child gets a variable, and one that is not set
	actions    role = "actions"    // an approval with all five actions
	custom     role = "custom"     // a custom interrupt with a resumeSchema
	pair       role = "pair"       // two approvals at the same time
	brief      role = "brief"      // an approval that times out soon
	restricted role = "restricted" // an approval for somebody else
	quorum     role = "quorum"     // an approval by two

	grouped     role = "grouped"     // an approval by a group
	rolled      role = "rolled"      // an approval by a role
	majority    role = "majority"    // an approval by three, rejected by a majority
	overridable role = "overridable" // an approval by two that an override may bypass
	around      role = "around"      // an approval that is reached again
	charge      role = "charge"      // calls inputs.url once for the business key inputs.idempotencyKey
	activity    role = "activity"    // calls inputs.url once a run
)

var standard = map[role]string{
	noop: "conformance-noop", chain: "conformance-multi-node", delay: "conformance-delay", echo: "conformance-identity",
	failing: "conformance-failure", approval: "conformance-approval", clarify: "conformance-clarification",
	external: "conformance-interrupt-external-event", family: "conformance-interrupt-parent-child-cancel",
	quorum: "conformance-interrupt-quorum",
}

// workflow is the outcome of looking for one: its id, or why there is none.
type workflow struct{ id, missing string }

// workflow finds the workflow for a role: the protocol's fixture if discovery
// names it, else one of the suite's own on a host that takes it.
func (p *probe) workflow(r role) string {
	p.s.mu.Lock()
	w, known := p.s.workflows[r]
	p.s.mu.Unlock()
	if !known {
		w = p.find(r)
		p.s.mu.Lock()
		p.s.workflows[r] = w
		p.s.mu.Unlock()
	}
	if w.id == "" {
		p.blocked("%s", w.missing)
	}
	return w.id
}

func (p *probe) find(r role) workflow {
	var listed []string
	p.s.facet(&listed, "fixtures")
	if id := standard[r]; id != "" && slices.Contains(listed, id) {
		return workflow{id: id}
	}
	id, why := p.register(r)
	if id != "" {
		return workflow{id: id}
	}
	name := or(standard[r], "of the suite's own for "+string(r))
	return workflow{missing: fmt.Sprintf("a workflow is needed: discovery names no fixture %s, and %s", name, why)}
}

// register puts the suite's own workflow on the host, where the host has a
// route for that. The id holds a digest of the definition: it never meets
// another version of itself, nor anybody else's workflow.
func (p *probe) register(r role) (id, why string) {
	make, ok := definitions[r]
	if !ok {
		return "", "the suite has none of its own"
	}
	child := ""
	if of := map[role]role{family: approval, mapped: noop}[r]; of != "" {
		if child, why = p.register(of); child == "" {
			return "", why
		}
	}
	def := make(child)
	body, err := json.Marshal(def)
	if err != nil {
		return "", err.Error()
	}
	id = fmt.Sprintf("conformance-own-%s-%08x", r, crc32.ChecksumIEEE(body))
	def["id"] = id
	method, path := "PUT", "/host/fermata/workflows/"+id
	if p.speaks() == 1 {
		method, path = "POST", "/workflows" // beside the protocol; hosts of version 1 have it
	}
	a, err := p.request(method, path, def)
	switch {
	case err != nil:
		return "", "the host did not answer to its registration"
	case a.status == http.StatusOK || a.status == http.StatusCreated:
		return id, ""
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		return "", "the host has no way to register one"
	}
	return "", "the host refused to register it: " + a.brief()
}

type object = map[string]any

func flow(name string, nodes []any, edges []any, variables ...any) object {
	if variables == nil {
		variables = []any{}
	}
	return object{
		"name": "Conformance: " + name, "version": "1.0", "nodes": nodes, "edges": edges, "triggers": []any{},
		"variables": variables, "metadata": object{}, "settings": object{},
	}
}

func step(id, typeID string, config object, inputs ...string) object {
	in := object{}
	for _, name := range inputs {
		in[name] = object{"type": "variable", "variableName": name}
	}
	return object{"id": id, "typeId": typeID, "name": id, "position": object{"x": 0, "y": 0}, "config": config, "inputs": in}
}

func edge(from, to string) object {
	return object{"id": from + "-" + to, "sourceNodeId": from, "targetNodeId": to}
}

func gate(name, node string, config object) object {
	return flow(name, []any{step(node, "core.approvalGate", config)}, []any{})
}

var twoActions = []any{"accept", "reject"}

// definitions are the suite's own workflows, for a host that can take them.
var definitions = map[role]func(child string) object{
	noop: func(string) object {
		return flow("noop", []any{step("noop", "core.noop", object{})}, []any{})
	},
	chain: func(string) object {
		n := object{}
		return flow("chain", []any{step("a", "core.noop", n), step("b", "core.noop", n), step("c", "core.noop", n)},
			[]any{edge("a", "b"), edge("b", "c")})
	},
	delay: func(string) object {
		return flow("delay", []any{step("wait", "core.delay", object{}, "delayMs")}, []any{},
			object{"name": "delayMs", "type": "number", "required": true, "defaultValue": 1000})
	},
	echo: func(string) object {
		return flow("echo", []any{step("echo", "core.identity", object{}, "payload")}, []any{},
			object{"name": "payload", "type": "object", "required": true})
	},
	failing: func(string) object {
		return flow("failing", []any{step("fail", "core.fail", object{})}, []any{})
	},
	approval: func(string) object {
		return gate("approval", "gate", object{"title": "Approve", "actions": twoActions})
	},
	clarify: func(string) object {
		q := object{"id": "q1", "question": "Which colour?", "schema": object{"type": "string"}}
		return flow("clarify", []any{step("ask", "core.clarificationGate", object{"questions": []any{q}})}, []any{})
	},
	external: func(string) object {
		return flow("external", []any{step("event", "core.interrupt", object{"kind": "external-event", "data": object{
			"eventType": "conformance.order", "correlation": object{"orderId": "fixture-order-1", "status": "completed"}}})}, []any{})
	},
	family: func(child string) object {
		return flow("family", []any{step("call", "core.subWorkflow", object{"workflowId": child})}, []any{})
	},
	mapped: func(child string) object {
		return flow("mapped", []any{step("call", "core.subWorkflow", object{"workflowId": child, "inputMapping": object{"theirs": "ours", "unset": "nobodys"}})}, []any{},
			object{"name": "ours", "type": "string"}, object{"name": "nobodys", "type": "string"})
	},
	actions: func(string) object {
		return gate("actions", "gate", object{"title": "Decide", "actions": []any{"accept", "reject", "refine", "edit-accept", "ask"}})
	},
	custom: func(string) object {
		return flow("custom", []any{step("ask", "core.interrupt", object{
			"kind": "custom", "data": object{"customKind": "conformance.number"},
			"resumeSchema": object{"type": "object", "required": []any{"n"}, "properties": object{"n": object{"type": "integer"}}}})}, []any{})
	},
	pair: func(string) object {
		one := object{"title": "One", "actions": twoActions}
		return flow("pair", []any{step("one", "core.approvalGate", one), step("two", "core.approvalGate", one)}, []any{})
	},
	brief: func(string) object {
		return gate("brief", "gate", object{"title": "Soon", "actions": twoActions, "timeoutMs": 250})
	},
	restricted: func(string) object {
		return gate("restricted", "gate", object{"title": "Not you", "actions": twoActions, "approversList": []any{"conformance-somebody-else"}})
	},
	grouped: func(string) object {
		return gate("grouped", "gate", object{"title": "The group", "actions": twoActions, "approverGroupRefs": []any{someGroup}})
	},
	rolled: func(string) object {
		return gate("rolled", "gate", object{"title": "The role", "actions": twoActions, "approverRoleRefs": []any{someRole}})
	},
	majority: func(string) object {
		return gate("majority", "gate", object{"title": "Most", "actions": twoActions, "requiredApprovals": 3, "rejectionPolicy": "majority"})
	},
	overridable: func(string) object {
		return gate("overridable", "gate", object{"title": "Or not", "actions": twoActions, "requiredApprovals": 2, "overrideBypassesQuorum": true})
	},
	around: func(string) object {
		to := func(from, to string) object {
			e := edge(from, to)
			e["triggerRule"] = "any_success"
			return e
		}
		f := flow("around", []any{step("start", "core.noop", object{}), step("gate", "core.approvalGate", object{"title": "Again?", "actions": twoActions}),
			step("work", "core.noop", object{})}, []any{to("start", "gate"), to("gate", "work"), to("work", "gate")})
		f["settings"] = object{"maxLoopbackIterations": 3}
		return f
	},
	charge:   callOut("charge", "url", "idempotencyKey"),
	activity: callOut("activity", "url"),
	quorum: func(string) object {
		return gate("quorum", "gate", object{"title": "Together", "actions": twoActions, "requiredApprovals": 2})
	},
}

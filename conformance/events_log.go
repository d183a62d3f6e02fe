package conformance

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/fermata-run/fermata/schema"
)

const typeClosed = "v2-event-type-closed"

// every is each way the shared runs end.
var every = []string{"completed", "approved", "failed", "cancelled"}

var logChecks = []check{
	must("log.envelope", "events.md §The envelope", "every event fits the closed envelope", func(p *probe) {
		for _, how := range every {
			for _, e := range p.log(p.over(how)) {
				p.valid("run-event", e.doc, "event "+e.Type)
				p.want(e.RunID == p.over(how), "an event of the run %s names the run %s", p.over(how), e.RunID)
			}
		}
	}).floor(typeClosed, "openwop.requirement.0171.event-type-closed.envelope"),

	must("log.sequence", "events.md §The envelope", "sequences begin at 0 and rise, without a gap or a repetition", func(p *probe) {
		for _, how := range every {
			for i, e := range p.log(p.over(how)) {
				p.want(e.Sequence == int64(i), "event %d of the %s run has the sequence %d", i, how, e.Sequence)
			}
		}
	}).floor(typeClosed, "openwop.requirement.0171.event-type-closed.envelope"),

	must("log.types", "events.md §Types", "every type is registered, or a vendor's whose org discovery names", func(p *probe) {
		var ext map[string]json.RawMessage
		p.s.facet(&ext, "extensions")
		for _, how := range every {
			for _, e := range p.log(p.over(how)) {
				p.registeredType(e.Type, ext)
			}
		}
	}).floor(typeClosed, "openwop.requirement.0171.event-type-closed.type"),

	must("log.payloads", "events.md §Payloads", "every payload fits the closed shape of its type", func(p *probe) {
		for _, how := range every {
			for _, e := range p.log(p.over(how)) {
				if err := schema.ValidatePayload(e.Type, e.Payload); err != nil && !errors.Is(err, schema.ErrUnknownType) {
					p.fail("event %d %s: %v", e.Sequence, e.Type, err)
				}
			}
		}
	}),

	must("log.ids-unique", "events.md §The envelope", "no two events share an id, and a cause is an earlier event", func(p *probe) {
		for _, how := range every {
			events := p.log(p.over(how))
			place := map[string]int{}
			for i, e := range events {
				_, twice := place[e.EventID]
				p.want(!twice, "the event id %s occurs twice", e.EventID)
				place[e.EventID] = i
			}
			for i, e := range events {
				// A cause may also be a correlation id, which no event has as its own.
				j, known := place[text(member(e.doc, "causationId"))]
				p.want(!known || j < i, "event %d is caused by event %d", i, j)
			}
		}
	}),

	must("log.outputs", "events.md §Payloads", "run.completed carries outputs, as an object", func(p *probe) {
		for _, how := range []string{"completed", "approved"} {
			e, ok := find(p.log(p.over(how)), "run.completed")
			var outputs map[string]json.RawMessage
			p.want(ok && json.Unmarshal(e.field("outputs"), &outputs) == nil && outputs != nil, "outputs is %q", e.field("outputs"))
		}
	}),

	must("log.one-end", "events.md §SSE frames; replay.md §The surface", "a log has one terminal event, and nothing follows but an undoing", func(p *probe) {
		for _, how := range every {
			events := p.log(p.over(how))
			ends := 0
			for _, e := range events {
				if terminalType(e.Type) {
					ends++
				} else if ends > 0 {
					p.want(undoes(e.Type), "%s follows the end of the run", e.Type)
				}
			}
			p.want(ends == 1, "the log of the %s run has %d terminal events: %v", how, ends, types(events))
		}
	}),

	must("log.fixed", "events.md §The envelope", "a log that was read is read again the same", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		before := p.log(id)
		p.resolve(id, node, accept)
		p.await(id, "completed")
		after := p.log(id)
		p.want(len(after) > len(before), "nothing was added to the log by the answer")
		for i := range before {
			p.want(string(before[i].doc) == string(after[i].doc), "event %d has changed", i)
		}
	}),

	must("log.node-order", "events.md §Types", "a node starts before it ends, and ends once for each start", func(p *probe) {
		for _, how := range every {
			open := map[string]bool{}
			for _, e := range p.log(p.over(how)) {
				switch e.Type {
				case "node.started":
					open[e.NodeID] = true
				case "node.completed", "node.failed":
					p.want(open[e.NodeID], "%s of %s without a node.started before it", e.Type, e.NodeID)
					open[e.NodeID] = false
				}
			}
		}
	}),

	must("log.failure", "runs.md §Snapshot; events.md §Payloads", "run.failed and the snapshot tell the same error", func(p *probe) {
		id := p.over("failed")
		e, ok := find(p.log(id), "run.failed")
		p.want(ok, "the log has no run.failed")
		shown := p.snapshot(id).obj()["error"]
		for _, name := range []string{"code", "message"} {
			p.want(same(member(e.field("error"), name), member(shown, name)), "the event has the %s %s, the snapshot %s", name, member(e.field("error"), name), member(shown, name))
		}
	}),

	should("log.fidelity", "events.md §Payloads", "inputs come back digit for digit: large numbers, Unicode, empty values", func(p *probe) {
		const payload = `{"big":9007199254740993,"long":123456789012345678901234567890,"text":"Ω\u0000😀  line","b":1,"a":[],"o":{},"n":null,"f":false}`
		id := p.start(echo, object{"inputs": object{"payload": json.RawMessage(payload)}})
		p.await(id, "completed")
		events := p.log(id)
		for typ, name := range map[string]string{"run.started": "inputs", "run.completed": "outputs"} {
			e, ok := find(events, typ)
			got := member(e.field(name), "payload")
			if !ok || got == nil {
				p.inapplicable("%s does not show %s", typ, name)
			}
			p.want(same(got, []byte(payload)), "%s has the payload %s", typ, got)
		}
	}),
}

func (p *probe) registeredType(typ string, extensions map[string]json.RawMessage) {
	err := schema.ValidatePayload(typ, []byte(`{}`))
	if !errors.Is(err, schema.ErrUnknownType) {
		if !vendorType(typ) {
			return
		}
		for name := range extensions {
			if org, _, _ := strings.Cut(name, "."); strings.HasPrefix(typ, org+".") {
				return
			}
		}
		p.fail("the type %s is a vendor's, and discovery names no such org", typ)
	}
	p.fail("the type %s is neither registered nor a vendor's", typ)
}

// vendorType tells a vendor's type from a registered one: only a vendor's takes
// any payload.
func vendorType(typ string) bool { return schema.ValidatePayload(typ, []byte(`"any"`)) == nil }

// Package examples_test runs every workflow of this folder, on the good way and
// on the others.
package examples_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/schema"
)

type object = map[string]any

// scenario is one way through one workflow.
type scenario struct {
	name   string
	file   string
	needs  []string // other files that it runs
	inputs object
	change map[string]map[string]change // by file and node
	plan   map[string][]reply           // of the services
	play   func(h *host, run string)    // what happens while it runs

	status  string // how it ends; completed if empty
	code    string // the error's
	outputs object // of a completed run
	check   func(t *testing.T, h *host, run string, s *services)
}

var (
	accept = object{"action": "accept"}
	reject = object{"action": "reject"}
)

func refine(text string) object {
	return object{"action": "refine", "refineFeedback": object{"scope": "whole", "text": text}}
}

func scenarios() []scenario {
	return slices.Concat(hello(), contentReview(), orderFulfilment(), shipOrder(), incidentResponse(), refineDraft(), nightlyReport())
}

func TestExamples(t *testing.T) {
	for _, c := range scenarios() {
		t.Run(strings.TrimSuffix(c.file, ".json")+"/"+strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			c.test(t)
		})
	}
}

func (c scenario) test(t *testing.T) {
	h, s := newHost(t), newServices(t, c.plan)
	for _, file := range append(slices.Clone(c.needs), c.file) {
		h.apply(file, c.change[file])
	}
	inputs := object{}
	for name, v := range c.inputs {
		if v == "the services" {
			v = s.URL
		}
		inputs[name] = v
	}
	run := h.run(strings.TrimSuffix(c.file, ".json"), inputs)
	if c.play != nil {
		c.play(h, run)
	}
	end := h.ended(run)
	want := c.status
	if want == "" {
		want = "completed"
	}
	if end.Status != want {
		t.Fatalf("it ended as %s, want %s; error %+v\n%v", end.Status, want, end.Error, h.types(run))
	}
	h.events(run)
	for _, n := range end.NodeStates {
		for _, child := range n.Children {
			h.ended(child.RunID)
			h.events(child.RunID)
		}
	}
	if c.code != "" && (end.Error == nil || end.Error.Code != c.code) {
		t.Errorf("error %+v, want code %s", end.Error, c.code)
	}
	if c.outputs != nil {
		if got := h.outputs(run); !reflect.DeepEqual(got, c.outputs) {
			t.Errorf("outputs\n%v\nwant\n%v", got, c.outputs)
		}
	}
	if c.check != nil {
		c.check(t, h, run, s)
	}
}

func TestEveryExampleIsValidAndCovered(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range scenarios() {
		covered[c.file] = true
	}
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	h := newHost(t)
	for _, file := range files {
		b := definition(t, file)
		if !covered[file] {
			t.Errorf("nothing runs %s", file)
		}
		if err := schema.Validate("workflow-definition", b); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		h.call("POST", "/host/fermata/workflows:validate", b, 200)
		var def struct {
			ID, Description string
			Nodes           []struct{ Name string }
		}
		decode(t, b, &def)
		if def.ID+".json" != file || def.Description == "" {
			t.Errorf("%s: id %q, description %q", file, def.ID, def.Description)
		}
	}
}

func nightlyReport() []scenario {
	return []scenario{{
		name: "by hand", file: "nightly-report.json", inputs: object{"team": "harbour"}, outputs: object{"report": "Night of harbour"},
		check: func(t *testing.T, h *host, _ string, _ *services) {
			list := h.call("GET", "/host/fermata/schedules", nil, 200)
			if !strings.Contains(string(list), `"triggerId":"nightly"`) || strings.Contains(string(list), "lastTick") {
				t.Errorf("schedules are %s", list)
			}
		},
	}}
}

func hello() []scenario {
	inputs := object{"name": "Ada"}
	return []scenario{
		{
			name: "approved", file: "hello.json", inputs: inputs,
			play: func(h *host, run string) {
				s := h.until(run, "the question", func(s snapshot) bool { return s.Status == "waiting-approval" })
				if got := s.NodeStates["approve"].Interrupt.Data["title"]; got != "Send 'Hello, Ada!'?" {
					h.t.Errorf("asked %q", got)
				}
				h.answer(run, "approve", accept)
			},
			check: func(t *testing.T, h *host, run string, _ *services) {
				if out := h.outputs(run); out["message"] != "Hello, Ada!" || out["approvedBy"] == "" {
					t.Errorf("outputs %v", out)
				}
			},
		},
		{
			name: "rejected", file: "hello.json", inputs: inputs, status: "failed", code: "approval_rejected",
			play: func(h *host, run string) { h.answer(run, "approve", reject) },
		},
	}
}

func contentReview() []scenario {
	inputs := object{"title": "Tides", "text": "The moon moves the sea."}
	reviews := func(editor, legal object) func(*host, string) {
		return func(h *host, run string) {
			h.answer(run, "editor-review", editor)
			h.restart() // with one review given and one open
			h.answer(run, "legal-review", legal)
		}
	}
	final := func(verdict object) func(*host, string) {
		return func(h *host, run string) {
			reviews(accept, accept)(h, run)
			h.until(run, "the last question", func(s snapshot) bool { return s.NodeStates["final-approval"].Interrupt != nil })
			h.restart()
			h.answer(run, "final-approval", verdict)
		}
	}
	return []scenario{
		{
			name: "published", file: "content-review.json", inputs: inputs, play: final(accept),
			outputs: object{"publish": object{"title": "Tides", "text": "The moon moves the sea.", "words": 5.0}},
		},
		{
			name: "published with a change", file: "content-review.json", inputs: inputs,
			play:    final(object{"action": "edit-accept", "editedArtifactData": "The moon moves the seas."}),
			outputs: object{"publish": object{"title": "Tides", "text": "The moon moves the seas.", "words": 5.0}},
		},
		{
			name: "shelved by the chief editor", file: "content-review.json", inputs: inputs, play: final(reject),
			outputs: object{"shelve": object{"title": "Tides", "why": "The approval was rejected."}},
		},
		{
			name: "changes wanted", file: "content-review.json", inputs: inputs, play: reviews(accept, refine("who says so?")),
			outputs: object{"send-back": object{"title": "Tides", "tooLong": false, "remarks": []any{"legal: who says so?"}}},
		},
		{
			name: "too long", file: "content-review.json", play: reviews(accept, accept),
			inputs:  object{"title": "Tides", "text": "The moon moves the sea.", "maxWords": 4},
			outputs: object{"send-back": object{"title": "Tides", "tooLong": true, "remarks": []any{}}},
		},
		{
			name: "vetoed by a reviewer", file: "content-review.json", inputs: inputs, status: "failed", code: "approval_rejected",
			play: func(h *host, run string) { h.answer(run, "legal-review", reject) },
			check: func(t *testing.T, h *host, run string, _ *services) {
				if s := h.snapshot(run); s.NodeStates["editor-review"].Interrupt != nil {
					t.Error("the editor is still asked")
				}
			},
		},
	}
}

// quick makes repeats follow at once.
var quick = change{settings: object{"retryDelayMs": 1, "retryMaxDelayMs": 2}}

func order(items ...any) object {
	if items == nil {
		items = []any{}
	}
	return object{
		"order":     object{"id": "o-1", "total": 42.5, "items": items, "address": "12 Analytical Row"},
		"cardToken": "tok-secret", "paymentsUrl": "the services", "carrierUrl": "the services",
	}
}

func orderFulfilment() []scenario {
	const main, child = "order-fulfilment.json", "ship-order.json"
	changes := map[string]map[string]change{
		main:  {"charge-card": quick, "refund": quick},
		child: {"book-carrier": quick},
	}
	one := order(object{"sku": "A-1", "count": 2}, object{"sku": "B-2", "count": 0})
	shipped := object{"orderId": "o-1", "chargeId": "ch-1", "trackingNumber": "TN-1"}
	refunded := object{"orderId": "o-1", "refundId": "re-1", "why": "upstream_unavailable"}
	return []scenario{
		{
			name: "shipped", file: main, needs: []string{child}, inputs: one, change: changes,
			outputs: object{"confirm": shipped},
			check: func(t *testing.T, h *host, run string, s *services) {
				charge := s.to(t, "/charges")
				if len(charge) != 1 || charge[0].body["card"] != "tok-secret" || charge[0].body["amount"] != 42.5 {
					t.Errorf("charges %v", charge)
				}
				parcel := s.to(t, "/parcels")
				if len(parcel) != 1 || len(parcel[0].body["contents"].([]any)) != 1 {
					t.Errorf("parcels %v", parcel)
				}
				for _, e := range h.events(run) {
					if strings.Contains(string(e.Payload), "tok-secret") {
						t.Errorf("%s shows the card's token: %s", e.Type, e.Payload)
					}
				}
			},
		},
		{
			name: "charged at the third try", file: main, needs: []string{child}, inputs: one, change: changes,
			plan:    map[string][]reply{"/charges": {unavailable, unavailable, succeed}},
			outputs: object{"confirm": shipped},
			check: func(t *testing.T, h *host, run string, s *services) {
				if n := len(s.to(t, "/charges")); n != 3 {
					t.Errorf("%d calls", n)
				}
				if n := count(h.types(run), "node.retried"); n != 2 {
					t.Errorf("%d repeats in the log", n)
				}
			},
		},
		{
			name: "payment service down", file: main, needs: []string{child}, inputs: one, change: changes,
			plan:   map[string][]reply{"/charges": {unavailable}},
			status: "failed", code: "upstream_unavailable",
			check: func(t *testing.T, _ *host, _ string, s *services) {
				if n := len(s.to(t, "/charges")); n != 5 {
					t.Errorf("%d calls, want one and four repeats", n)
				}
				if len(s.to(t, "/parcels"))+len(s.to(t, "/refunds")) > 0 {
					t.Error("it went on without the money")
				}
			},
		},
		{
			name: "card refused", file: main, needs: []string{child}, inputs: one, change: changes,
			plan:   map[string][]reply{"/charges": {refuse}},
			status: "failed", code: "upstream_unavailable",
			check: func(t *testing.T, _ *host, _ string, s *services) {
				if n := len(s.to(t, "/charges")); n != 1 {
					t.Errorf("a refusal was repeated: %d calls", n)
				}
			},
		},
		{
			name: "money back when the carrier is down", file: main, needs: []string{child}, inputs: one, change: changes,
			plan:    map[string][]reply{"/parcels": {unavailable}, "/refunds": {unavailable, succeed}},
			outputs: object{"apologise": refunded},
			check: func(t *testing.T, _ *host, _ string, s *services) {
				if n := len(s.to(t, "/parcels")); n != 3 {
					t.Errorf("%d calls of the carrier, want one and two repeats", n)
				}
				if r := s.to(t, "/refunds"); len(r) != 2 || r[1].body["chargeId"] != "ch-1" {
					t.Errorf("refunds %v", r)
				}
			},
		},
		{
			name: "money back when the carrier hangs", file: main, needs: []string{child}, inputs: one,
			change: map[string]map[string]change{
				main:  {"charge-card": quick, "refund": quick},
				child: {"book-carrier": {settings: object{"retryDelayMs": 1, "timeoutMs": 30}}},
			},
			plan:    map[string][]reply{"/parcels": {hang}},
			outputs: object{"apologise": object{"orderId": "o-1", "refundId": "re-1", "why": "run_timeout"}},
		},
		{
			name: "money back when shipping takes too long", file: main, needs: []string{child}, inputs: one,
			change:  map[string]map[string]change{main: {"ship": {settings: object{"timeoutMs": 100}}}},
			plan:    map[string][]reply{"/parcels": {hang}},
			outputs: object{"apologise": object{"orderId": "o-1", "refundId": "re-1", "why": "run_timeout"}},
			check: func(t *testing.T, h *host, run string, _ *services) {
				children := h.snapshot(run).NodeStates["ship"].Children
				if len(children) != 1 {
					t.Fatalf("children %v", children)
				}
				if s := h.ended(children[0].RunID); s.Status != "cancelled" {
					t.Errorf("the child ended as %s", s.Status)
				}
			},
		},
		{
			name: "nothing ordered", file: main, needs: []string{child}, inputs: order(), change: changes,
			status: "failed", code: "validation_error",
			check: func(t *testing.T, _ *host, _ string, s *services) {
				if len(s.to(t, "/charges")) > 0 {
					t.Error("the card was charged")
				}
			},
		},
	}
}

func count(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

func shipOrder() []scenario {
	inputs := order(object{"sku": "A-1", "count": 2})
	delete(inputs, "cardToken")
	delete(inputs, "paymentsUrl")
	changes := map[string]map[string]change{"ship-order.json": {"book-carrier": quick}}
	return []scenario{
		{
			name: "shipped at the second try", file: "ship-order.json", inputs: inputs, change: changes,
			plan:    map[string][]reply{"/parcels": {unavailable, succeed}},
			outputs: object{"trackingNumber": "TN-1"},
		},
		{
			name: "carrier down", file: "ship-order.json", inputs: inputs, change: changes,
			plan:   map[string][]reply{"/parcels": {unavailable}},
			status: "failed", code: "upstream_unavailable",
		},
	}
}

func incidentResponse() []scenario {
	const file = "incident-response.json"
	inputs := object{"incidentId": "inc-7", "service": "checkout"}
	acknowledge := func(by string) object { return object{"incidentId": "inc-7", "by": by} }
	recovered := object{"service": "checkout", "at": "2026-03-01T04:00:00Z"}
	answers := object{"answers": object{"cause": "a full disk", "followUp": true}}
	soon := change{config: object{"timeoutMs": 20}}
	closed := func(responder string, escalated bool) object {
		return object{"close-incident": object{
			"headline": "checkout is down (severity 2)", "responder": responder, "escalated": escalated,
			"runbook": "runbooks/checkout.md", "cause": "a full disk", "followUp": true,
			"timeline": []any{"checkout is down (severity 2)", responder + " is in charge"},
		}}
	}
	return []scenario{
		{
			name: "closed", file: file, inputs: inputs, outputs: closed("grace", false),
			play: func(h *host, run string) {
				h.until(run, "the page", func(s snapshot) bool { return s.Status == "waiting-external" })
				h.restart()
				h.signal(run, "page-on-call", object{"incidentId": "inc-8", "by": "eve"}, 400) // of another incident
				h.answer(run, "page-on-call", acknowledge("grace"))
				h.until(run, "the wait", func(s snapshot) bool { return s.NodeStates["await-recovery"].Interrupt != nil })
				h.restart()
				h.answer(run, "await-recovery", recovered)
				h.answer(run, "ask-cause", answers)
			},
			check: func(t *testing.T, h *host, run string, _ *services) {
				if st := h.snapshot(run).NodeStates["page-manager"].Status; st != "skipped" {
					t.Errorf("page-manager is %q", st)
				}
			},
		},
		{
			name: "nobody on call answers", file: file, inputs: inputs, outputs: closed("joan", true),
			change: map[string]map[string]change{file: {"page-on-call": soon}},
			play: func(h *host, run string) {
				h.answer(run, "page-manager", acknowledge("joan"))
				h.answer(run, "await-recovery", recovered)
				h.answer(run, "ask-cause", answers)
			},
		},
		{
			name: "nobody answers at all", file: file, inputs: inputs, status: "failed", code: "interrupt_expired",
			change: map[string]map[string]change{file: {"page-on-call": soon, "page-manager": soon}},
			check: func(t *testing.T, h *host, run string, _ *services) {
				for id, n := range h.snapshot(run).NodeStates {
					if n.Interrupt != nil {
						t.Errorf("%s still waits, with nobody in charge", id)
					}
				}
			},
		},
		{
			name: "recovered before anybody answered", file: file, inputs: inputs, outputs: closed("grace", false),
			play: func(h *host, run string) {
				h.signal(run, "await-recovery", recovered, 200) // kept until the node waits
				h.restart()
				h.answer(run, "page-on-call", acknowledge("grace"))
				h.answer(run, "ask-cause", answers)
			},
		},
		{
			name: "it does not come back", file: file, inputs: inputs,
			change: map[string]map[string]change{file: {"await-recovery": soon}},
			play:   func(h *host, run string) { h.answer(run, "page-on-call", acknowledge("grace")) },
			outputs: object{"declare-disaster": object{
				"headline": "checkout is down (severity 2)", "responder": "grace", "why": "interrupt_expired",
			}},
		},
	}
}

func refineDraft() []scenario {
	const file = "refine-draft.json"
	inputs := object{"topic": "owls"}
	again := func(n int) func(*host, string) {
		return func(h *host, run string) {
			for i := 1; i <= n; i++ {
				h.until(run, "the next draft", func(s snapshot) bool {
					return s.NodeStates["review"].Visit == i && s.NodeStates["review"].Interrupt != nil
				})
				h.signal(run, "review", refine("note "+string(rune('0'+i))), 200)
			}
		}
	}
	return []scenario{
		{
			name: "good at once", file: file, inputs: inputs,
			play:    func(h *host, run string) { h.answer(run, "review", accept) },
			outputs: object{"publish": object{"text": "On owls, draft 1.", "rounds": 1.0}},
		},
		{
			name: "good at the third try", file: file, inputs: inputs,
			play: func(h *host, run string) {
				again(2)(h, run)
				h.restart()
				h.until(run, "the third draft", func(s snapshot) bool { return s.NodeStates["review"].Visit == 3 })
				h.answer(run, "review", accept)
			},
			outputs: object{"publish": object{"text": "On owls, draft 3, minding: note 1; note 2.", "rounds": 3.0}},
		},
		{
			name: "rounds used up", file: file, inputs: object{"topic": "owls", "maxRounds": 2}, play: again(2),
			outputs: object{"hand-over": object{
				"text": "On owls, draft 2, minding: note 1.", "notes": []any{"note 1"},
				"versions": []any{"On owls, draft 1.", "On owls, draft 2, minding: note 1."},
			}},
		},
		{
			name: "rejected", file: file, inputs: inputs, status: "failed", code: "approval_rejected",
			play: func(h *host, run string) { h.answer(run, "review", reject) },
		},
		{
			name: "more rounds than the workflow allows", file: file, inputs: object{"topic": "owls", "maxRounds": 100},
			play: again(6), status: "failed", code: "loop_limit_exceeded",
		},
	}
}

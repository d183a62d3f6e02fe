package conformance

import "time"

// callOut makes a workflow of one call, retried, of the address in its inputs.
func callOut(name string, inputs ...string) func(string) object {
	return func(string) object {
		n := step("call", "core.http.request", object{"method": "POST", "body": object{"note": effectSecret}}, inputs...)
		n["settings"] = object{"maxRetries": 3, "retryDelayMs": 10, "retryBackoff": 1}
		variables := []any{}
		for _, v := range inputs {
			variables = append(variables, object{"name": v, "type": "string", "required": true})
		}
		return flow(name, []any{n}, []any{}, variables...)
	}
}

// effectSecret is part of what is sent, and nothing that a ledger may show.
const effectSecret = "conformance-payload"

var effectChecks = []check{
	must("effects.retry", "idempotency.md §Layer 2", "a retried call is one effect: one identity and one provider key, in every attempt", func(p *probe) {
		r := p.receive(func(n int) int {
			if n == 1 {
				return 503
			}
			return 200
		})
		id := p.calls(r, activity, object{"url": r.url}, 2)
		list, got := p.effects(id), r.all()
		p.want(len(list) == 2 && len(got) == 2, "the call came %d times, the ledger has %d attempts; want 2 of each", len(got), len(list))
		for i, e := range list {
			p.want(e.EffectID == list[0].EffectID, "attempt %d is the effect %s, the first %s", i+1, e.EffectID, list[0].EffectID)
			p.want(e.ProviderKey != nil && *e.ProviderKey != "" && *e.ProviderKey == got[i].header.Get(keyHeader),
				"attempt %d was made with the key %q", i+1, got[i].header.Get(keyHeader))
		}
		p.want(*list[0].ProviderKey == *list[1].ProviderKey, "the key differs between attempts")
		p.want(list[0].Attempt != list[1].Attempt, "both attempts are number %d", list[0].Attempt)
		p.want(list[1].State == "completed" && list[0].State != "completed" && list[0].State != "claimed", "the attempts are %s and %s", list[0].State, list[1].State)
	}).gated("idempotency"),

	must("effects.business", "idempotency.md §Layer 2", "runs that want one business operation perform it once, even at once; another is another", func(p *probe) {
		r := p.receive(nil)
		same := object{"url": r.url, "idempotencyKey": "order-" + nonce()}
		wf := p.workflow(charge)
		ids := map[string]bool{}
		var runs []string
		for _, a := range p.atOnce(6, func() (answer, error) {
			return p.send("POST", "/runs", object{"workflowId": wf, "inputs": same})
		}) {
			p.owned(a)
			p.ok(a, 201, "")
			runs = append(runs, a.str("runId"))
		}
		for _, run := range runs {
			p.called(r, run)
			list := p.effects(run)
			p.want(len(list) > 0, "the ledger of a run that charged is empty")
			for _, e := range list {
				p.want(e.Keying == "business-identity", "an effect with a business key has the keying %s", e.Keying)
				ids[e.EffectID] = true
			}
		}
		p.want(len(r.all()) == 1 && len(ids) == 1, "one operation came %d times, as %d effects", len(r.all()), len(ids))
		other := p.calls(r, charge, object{"url": r.url, "idempotencyKey": "order-" + nonce()}, 2)
		got := r.all()
		p.want(len(got) == 2 && !ids[p.effects(other)[0].EffectID], "another operation was taken for the same")
		p.want(got[0].header.Get(keyHeader) != got[1].header.Get(keyHeader), "two operations have one key")
	}).gated("idempotency"),

	must("effects.distinct", "idempotency.md §Layer 2", "two runs without a business key have two effects, with two keys", func(p *probe) {
		r := p.receive(nil)
		first := p.calls(r, activity, object{"url": r.url}, 1)
		second := p.calls(r, activity, object{"url": r.url}, 2)
		got := r.all()
		p.want(len(got) == 2, "the call came %d times", len(got))
		p.want(got[0].header.Get(keyHeader) != got[1].header.Get(keyHeader), "both came with the key %q", got[0].header.Get(keyHeader))
		a, b := p.effects(first), p.effects(second)
		p.want(len(a) == 1 && len(b) == 1 && a[0].EffectID != b[0].EffectID && a[0].Keying == "activity-recipe", "the effects are %v and %v", a, b)
	}).gated("idempotency"),

	must("effects.content-free", "idempotency.md §Witness", "the ledger shows nothing of what was sent, nor where to", func(p *probe) {
		r := p.receive(nil)
		key := "order-" + nonce()
		id := p.calls(r, charge, object{"url": r.url, "idempotencyKey": key}, 1)
		p.want(len(p.effects(id)) == 1, "the ledger has not the one effect")
		body := p.get(at(id) + "/effects").body
		for what, s := range map[string]string{"body": effectSecret, "address": r.url, "business key": key} {
			p.want(!containsText(body, s), "the ledger shows the %s of the call", what)
		}
	}).gated("idempotency"),
}

// calls starts a run of a role that calls a receiver, and wants it completed with
// so many calls received.
func (p *probe) calls(r *receiver, as role, inputs object, n int) string {
	id := p.startOf(p.workflow(as), object{"inputs": inputs})
	p.called(r, id)
	for wait := 0; len(r.all()) < n && wait < 40 && p.pause(50*time.Millisecond); wait++ {
	}
	return id
}

// called waits for the end of a run that calls a receiver. A host that does not
// call the suite at all cannot be measured.
func (p *probe) called(r *receiver, id string) {
	a := p.ended(id)
	if a.str("status") == "failed" && len(r.all()) == 0 {
		p.blocked("the host did not call the suite's receiver: %s", a.obj()["error"])
	}
	p.want(a.str("status") == "completed", "the run that calls the receiver is %s: %s", a.str("status"), a.obj()["error"])
}

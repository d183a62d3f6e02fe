package conformance

import (
	"crypto/rand"
	"encoding/json"
)

const (
	keyGrammar = "v2-idempotency-key-grammar"
	keyRef     = "openwop.requirement.0170.idempotency-key-grammar."
	keyHeader  = "Idempotency-Key"
	replayed   = "OpenWOP-Idempotent-Replay"
)

// key is an idempotency key of enough entropy, within the grammar.
func key() string { return "conformance-" + rand.Text() }

var idempotencyChecks = []check{
	must("idempotency.key-accepted", "idempotency.md §Layer 1", "a key within the grammar is accepted, at both ends of its length", func(p *probe) {
		long := key()
		for len(long) < 128 {
			long += rand.Text()
		}
		for _, k := range []string{key()[:22], long[:128], "._~-" + rand.Text()} {
			p.ok(p.createWith([]string{keyHeader, k}, p.workflow(noop)), 201, "create-run-response")
		}
	}).gated("idempotency").floor(keyGrammar, keyRef+"valid-accepted"),

	must("idempotency.key-refused", "idempotency.md §Layer 1", "a key outside the grammar is idempotency_key_invalid, and there is no run", func(p *probe) {
		wf := p.workflow(noop)
		long := ""
		for len(long) < 129 {
			long += rand.Text()
		}
		for _, k := range []string{"short", key()[:21], long[:129], key() + "/", key() + " x", "ü" + key()} {
			p.refused(p.createWith([]string{keyHeader, k}, wf), 400, "idempotency_key_invalid")
		}
	}).gated("idempotency").floor(keyGrammar, keyRef+"invalid-refused"),

	must("idempotency.replay", "idempotency.md §Layer 1; runs.md §Request headers", "a repeated create makes no second run and is marked as replayed", func(p *probe) {
		k, wf := []string{keyHeader, key()}, p.workflow(noop)
		first := p.ok(p.createWith(k, wf), 201, "")
		p.want(first.header.Get(replayed) == "", "the first answer is marked as replayed")
		again := p.ok(p.createWith(k, wf), 201, "")
		p.want(string(first.body) == string(again.body), "the repeated answer differs: %s and %s", first.body, again.body)
		p.want(again.header.Get(replayed) == "true", "the repeated answer has the marker %q", again.header.Get(replayed))
	}).gated("idempotency"),

	must("idempotency.mismatch", "idempotency.md §Layer 1", "the same key with another request is idempotency_key_mismatch, and shows nothing of the first", func(p *probe) {
		k, wf := []string{keyHeader, key()}, p.workflow(noop)
		first := p.ok(p.createWith(k, wf), 201, "")
		a := p.refused(p.createWith(k, wf, object{"tags": []string{"other"}}), 409, "idempotency_key_mismatch")
		p.want(a.obj()["runId"] == nil && first.str("runId") != "", "the refusal shows the first answer")
	}).gated("idempotency"),

	must("idempotency.concurrent", "idempotency.md §Layer 1", "ten creates at once with one key make one run", func(p *probe) {
		k, body := key(), object{"workflowId": p.workflow(noop)}
		runs := map[string]bool{}
		for _, a := range p.atOnce(10, func() (answer, error) { return p.send("POST", "/runs", body, keyHeader, k) }) {
			p.owned(a)
			switch a.status {
			case 201:
				runs[a.str("runId")] = true
			default:
				p.refused(a, 409, "idempotency_in_flight")
			}
		}
		p.want(len(runs) == 1, "one key made %d runs", len(runs))
	}).gated("idempotency"),

	must("idempotency.final-refusal", "idempotency.md §Layer 1", "a final refusal is replayed too", func(p *probe) {
		k, path := key(), at(p.over("completed"))+"/cancel"
		p.refused(p.post(path, object{}, keyHeader, k), 409, "run_terminal")
		a := p.refused(p.post(path, object{}, keyHeader, k), 409, "run_terminal")
		p.want(a.header.Get(replayed) == "true", "the repeated refusal has the marker %q", a.header.Get(replayed))
	}).gated("idempotency"),

	must("idempotency.not-kept", "idempotency.md §Layer 1", "a validation_error is not kept: the same key may be used with what is right", func(p *probe) {
		k, wf := []string{keyHeader, key()}, p.workflow(noop)
		p.refused(p.createWith(k, wf, object{"conformanceUnknownMember": 1}), 400, "validation_error")
		p.ok(p.createWith(k, wf), 201, "")
	}).gated("idempotency"),

	must("idempotency.endpoint", "idempotency.md §Layer 1", "a key belongs to one operation", func(p *probe) {
		k := key()
		id := p.ok(p.createWith([]string{keyHeader, k}, p.workflow(approval)), 201, "").str("runId")
		p.await(id, "waiting-approval")
		p.ok(p.post(at(id)+"/cancel", object{}, keyHeader, k), 200, "cancel-response")
	}).gated("idempotency"),

	must("idempotency.not-on-get", "idempotency.md §Layer 1", "a GET does not look at the key", func(p *probe) {
		path, k := at(p.over("completed")), key()
		for _, v := range []string{"short", k, k} {
			a := p.get(path, keyHeader, v)
			p.want(a.status == 200 && a.header.Get(replayed) == "", "GET with a key: %s, marker %q", a.brief(), a.header.Get(replayed))
		}
	}).gated("idempotency"),

	must("idempotency.resolve", "interrupt.md §Resolve surfaces", "a repeated answer to an interrupt is replayed", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		k := key()
		first := p.ok(p.resolve(id, node, accept, keyHeader, k), 200, "")
		again := p.ok(p.resolve(id, node, accept, keyHeader, k), 200, "")
		p.want(string(first.body) == string(again.body) && again.header.Get(replayed) == "true", "the repeated answer differs or is not marked")
	}).gated("idempotency"),

	must("effects.ledger", "idempotency.md §Witness", "a run's effects are readable, in the closed shape", func(p *probe) {
		id := p.over("completed")
		p.effects(id)
		p.refused(p.get("/runs/"+segment(foreignRun)+"/effects"), 403, "id_tenant_mismatch")
		p.refused(p.get(at(p.unknownRun())+"/effects"), 404, "not_found")
	}).gated("idempotency"),
}

// effect is one record of the ledger.
type effect struct {
	EffectID     string  `json:"effectId"`
	NodeID       string  `json:"nodeId"`
	Attempt      int     `json:"attempt"`
	Keying       string  `json:"keying"`
	State        string  `json:"state"`
	At           string  `json:"at"`
	InvocationID string  `json:"invocationId"`
	ProviderKey  *string `json:"providerKey"`
}

// effects reads a run's ledger, and wants its shape.
func (p *probe) effects(id string) []effect {
	a := p.ok(p.get(at(id)+"/effects"), 200, "")
	m := a.obj()
	p.want(len(m) == 2 && text(m["runId"]) == id && m["effects"] != nil, "the ledger is %.200s", a.body)
	var raw []map[string]json.RawMessage
	var out []effect
	p.want(json.Unmarshal(m["effects"], &raw) == nil && json.Unmarshal(m["effects"], &out) == nil && raw != nil, "effects is %.200s", m["effects"])
	allowed := map[string]bool{"effectId": true, "nodeId": true, "attempt": true, "keying": true, "state": true, "at": true, "invocationId": true, "providerKey": true}
	for i, e := range out {
		for name := range raw[i] {
			p.want(allowed[name], "an effect has the member %s", name)
		}
		p.want(boundID.MatchString(e.EffectID), "an effect has the id %q", e.EffectID)
		p.want(e.Keying == "business-identity" || e.Keying == "activity-recipe", "an effect has the keying %q", e.Keying)
		known := map[string]bool{"claimed": true, "completed": true, "released": true, "escaped": true}
		p.want(known[e.State], "an effect has the state %q", e.State)
	}
	return out
}

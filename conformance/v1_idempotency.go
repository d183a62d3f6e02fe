package conformance

import "strings"

const v1Idempotency = "v1 idempotency.md §Layer 1"

var v1IdempotencyChecks = []check{
	must("v1.idempotency.replay", v1Idempotency, "a repeated create makes no second run and is marked as replayed", func(p *probe) {
		k, wf := []string{keyHeader, key()}, p.workflow(noop)
		first := p.ok(p.createWith(k, wf), 201, "")
		p.want(first.header.Get(replayed) == "", "the first answer is marked as replayed")
		again := p.ok(p.createWith(k, wf), 201, "")
		p.want(string(first.body) == string(again.body) && again.header.Get(replayed) == "true", "repeated: %s, marker %q; first %s", again.body, again.header.Get(replayed), first.body)
	}).gated("idempotency"),

	must("v1.idempotency.mismatch", v1Idempotency, "the same key with another body is 409 idempotency_key_mismatch, and tells nothing of the first", func(p *probe) {
		k, wf := []string{keyHeader, key()}, p.workflow(noop)
		first := p.ok(p.createWith(k, wf), 201, "").str("runId")
		a := p.refuses(p.createWith(k, wf, object{"tags": []string{"other"}}), []int{409}, "idempotency_key_mismatch")
		p.want(!containsText(a.body, first), "the refusal names the first run")
	}).gated("idempotency"),

	must("v1.idempotency.not-kept", v1Idempotency, "a validation_error is not kept under a key", func(p *probe) {
		k, wf := []string{keyHeader, key()}, p.workflow(noop)
		p.refuses(p.createWith(k, wf, object{"conformanceUnknown": 1}), []int{400}, "validation_error")
		p.ok(p.createWith(k, wf), 201, "")
	}).gated("idempotency"),

	must("v1.idempotency.any-key", v1Idempotency, "a key has 1 to 255 characters, and no other form", func(p *probe) {
		wf := p.workflow(noop)
		for _, k := range []string{"k", "order 17: again", nonce() + strings.Repeat("k", 255-len(nonce()))} {
			a := p.createWith([]string{keyHeader, k}, wf)
			p.want(a.status == 201 || a.code() == "idempotency_key_mismatch", "a key of %d characters: %s", len(k), a.brief())
		}
		p.refuses(p.createWith([]string{keyHeader, strings.Repeat("k", 256)}, wf), []int{400}, "validation_error")
	}).gated("idempotency"),

	must("v1.idempotency.each-run", v1Idempotency, "under one key each of two runs is cancelled by its own request", func(p *probe) {
		k := key()
		for range 2 {
			id, _ := p.waiting(approval, "waiting-approval")
			a := p.ok(p.post(at(id)+"/cancel", object{}, keyHeader, k), 200, "")
			p.want(a.str("runId") == id, "the cancel of %s answered for %s", id, a.str("runId"))
			p.becomes(id, "cancelled")
		}
	}).gated("idempotency"),

	must("v1.idempotency.each-major", v1Idempotency, "the same key under the other version is another operation", func(p *probe) {
		now := p.younger()
		k, body := key(), object{"workflowId": p.workflow(noop)}
		a := p.ok(p.owned(p.post("/runs", body, keyHeader, k)), 201, "")
		b := now.post("/runs", body, keyHeader, k)
		p.want(b.status == 201 && b.header.Get(replayed) == "" && !strings.HasSuffix(b.str("runId"), a.str("runId")), "under version 2: %s %s, marker %q", b.brief(), b.str("runId"), b.header.Get(replayed))
	}).gated("idempotency"),

	must("v1.idempotency.resolve", v1Idempotency, "a repeated answer to an interrupt is replayed", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		k := key()
		first := p.ok(p.resolve(id, node, accept, keyHeader, k), 200, "")
		again := p.ok(p.resolve(id, node, accept, keyHeader, k), 200, "")
		p.want(string(first.body) == string(again.body) && again.header.Get(replayed) == "true", "the repeated answer differs or is not marked")
	}).gated("idempotency"),
}

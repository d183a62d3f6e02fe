package conformance

import (
	"encoding/json"
	"time"
)

// lifeChecks are about what becomes of a subscription, and of those beside it.
var lifeChecks = []check{
	must("webhooks.secret-told-once", "webhooks.md §Surfaces", "a secret the host made is in the 201 and nowhere else; one that was given is not even there", func(p *probe) {
		r := p.receive(nil)
		made := p.ok(p.enroll(r, object{"events": []string{"run.completed"}}), 201, "webhook-registered")
		id, secret := made.str("webhookId"), made.str("secret")
		r.after(func(p *probe) { _, _ = p.request("DELETE", "/webhooks/"+segment(id), nil) })
		p.want(len(secret) >= 16, "the host made no secret, or a short one")
		run := p.start(noop)
		d := p.delivered(r, run, "run.completed")
		p.v1Signed(d.header, d.body, secret)
		p.want(!containsText(d.body, secret), "the delivery tells the secret")
		const mine = "conformance-secret-0123456789abcdef"
		given := p.ok(p.enroll(r, object{"events": []string{"run.completed"}, "secret": mine}), 201, "webhook-registered")
		p.forget(given)
		p.want(!containsText(given.body, mine) && given.str("secret") == "", "the answer repeats the secret that was given")
	}).gated("webhooks"),

	must("webhooks.tags", "webhooks.md §Surfaces", "tags narrow deliveries to runs with one of them", func(p *probe) {
		r := p.receive(nil)
		tag := "conformance-" + nonce()
		a := p.ok(p.enroll(r, object{"events": []string{"run.started"}, "tags": []string{tag, "conformance-other"}}), 201, "")
		r.after(func(p *probe) { _, _ = p.request("DELETE", "/webhooks/"+segment(a.str("webhookId")), nil) })
		without := p.start(noop)
		with := p.ok(p.create(p.workflow(noop), object{"tags": []string{"x", tag}}), 201, "").str("runId")
		p.delivered(r, with, "run.started")
		for _, d := range r.all() {
			p.want(text(member(d.body, "runId")) != without, "a run without the tag was delivered")
		}
	}).gated("webhooks"),

	must("webhooks.unregister-stops", "webhooks.md §Unregister", "after its 204 no further attempt is made, and its dead letters are unknown", func(p *probe) {
		r := p.receive(func(int) int { return 500 })
		hook := p.hook(r, "", "run.completed")
		id := p.start(noop)
		p.delivered(r, id, "run.completed")
		p.ok(p.do("DELETE", "/webhooks/"+segment(hook), nil), 204, "")
		before := len(r.all())
		_ = p.pause(5 * time.Second) // what had begun may come to its end, and a retry would come
		after := len(r.all())
		p.want(after-before <= 1, "%d attempts came after the 204", after-before)
		if p.s.facet(new(any), "webhooks", "deadLetter") {
			p.refused(p.get("/webhooks/"+segment(hook)+"/dead-letters"), 404, "not_found")
		}
	}).gated("webhooks").long(),

	must("webhooks.isolation", "webhooks.md §Delivery isolation", "eight receivers that do not answer delay no other subscription", func(p *probe) {
		held := make(chan struct{})
		var silent []*receiver
		for range 8 {
			r := p.receive(func(int) int { <-held; return 204 })
			r.after(func(*probe) { // before the receiver closes, which waits for its calls
				select {
				case <-held:
				default:
					close(held)
				}
			})
			p.hook(r, "", "run.completed")
			silent = append(silent, r)
		}
		id := p.start(noop)
		p.await(id, "completed")
		for _, r := range silent {
			p.arrivesHeld(r)
		}
		healthy := p.receive(nil)
		p.hook(healthy, "", "run.completed")
		later := p.start(noop)
		p.delivered(healthy, later, "run.completed")
	}).gated("webhooks").long(),

	must("webhooks.dead-letter-refusals", "webhooks.md §Dead letters", "a foreign subscription is id_tenant_mismatch, an unknown one not_found, a made-up cursor a validation_error", func(p *probe) {
		if !p.s.facet(new(any), "webhooks", "deadLetter") {
			p.inapplicable("webhooks.deadLetter is not advertised")
		}
		p.refused(p.get("/webhooks/"+segment(foreignRun)+"/dead-letters"), 403, "id_tenant_mismatch")
		p.refused(p.get("/webhooks/"+segment(p.unknownRun())+"/dead-letters"), 404, "not_found")
		hook := p.hook(p.receive(nil), "", "run.completed")
		p.ok(p.get("/webhooks/"+segment(hook)+"/dead-letters"), 200, "webhook-dead-letter-page")
		p.refused(p.get("/webhooks/"+segment(hook)+"/dead-letters?cursor=conformance"), 400, "validation_error")
	}).gated("webhooks"),

	must("interrupt.callback-guarded", "interrupt.md §Callback delivery", "a callbackUrl that the guard of webhooks refuses is a validation_error that names it", func(p *probe) {
		var delivers bool
		if p.s.facet(&delivers, "interrupt", "callbackDelivery"); !delivers {
			p.inapplicable("interrupt.callbackDelivery is not advertised")
		}
		for _, u := range []string{
			"http://conformance.example/", "https://localhost/x", "https://169.254.169.254/latest/meta-data/", "https://[::ffff:a9fe:a9fe]/", "https://10.0.0.1/",
		} {
			a := p.refused(p.create(p.workflow(noop), object{"callbackUrl": u}), 400, "validation_error")
			p.want(text(a.detail("field")) == "callbackUrl", "%s: details.field is %s", u, a.detail("field"))
		}
	}).gated("interrupt"),
}

// arrivesHeld waits until a receiver holds a call.
func (p *probe) arrivesHeld(r *receiver) {
	for r.open() == 0 {
		if !p.pause(20 * time.Millisecond) {
			p.fail("a receiver that would not answer was never called")
		}
	}
}

// enroll subscribes a receiver with the members given; what the host refuses to
// call blocks the check.
func (p *probe) enroll(r *receiver, body object) answer {
	body["url"] = r.url
	a := p.post("/webhooks", body)
	if a.status == 400 && a.code() == "webhook_url_rejected" && p.s.cfg.ReceiverURL == "" {
		p.blocked("the host does not call loopback (as it should not); give the suite a public https address with --receiver-url")
	}
	return a
}

func stringsOf(b []byte) []string {
	var out []string
	_ = json.Unmarshal(b, &out)
	return out
}

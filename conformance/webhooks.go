package conformance

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	durable    = "v2-webhook-durable-delivery"
	durableRef = "openwop.requirement.0173.webhook-durable-delivery"
)

var webhookChecks = []check{
	must("webhooks.facet", "webhooks.md §Surfaces", "the webhooks facet lists the scheme v1", func(p *probe) {
		var algs []string
		p.s.facet(&algs, "webhooks", "signatureAlgorithms")
		p.want(slices.Contains(algs, "v1"), "webhooks.signatureAlgorithms is %v", algs)
		p.want(!p.s.facet(new(any), "webhooks", "durable"), "webhooks has a member durable")
	}).gated("webhooks"),

	must("webhooks.url-refused", "webhooks.md §Egress", "an address that is not https, or not public, is webhook_url_rejected", func(p *probe) {
		for _, u := range []string{
			"http://conformance.example/hook", "ftp://conformance.example/", "https://localhost/", "https://10.0.0.1/", "https://192.168.1.1/",
			"https://172.16.0.1/", "https://169.254.169.254/latest/", "https://[fe80::1]/", "https://[fd00::1]/", "https://[::ffff:10.0.0.1]/",
		} {
			a := p.post("/webhooks", object{"url": u, "events": []string{"run.completed"}})
			p.forget(a)
			p.want(a.status == 400 && a.code() == "webhook_url_rejected", "%s: %s", u, a.brief())
		}
	}).gated("webhooks"),

	must("webhooks.closed", "webhooks.md §Surfaces", "no events, an unknown type or an unknown member is a validation_error", func(p *probe) {
		const u = "https://conformance.example/hook"
		for _, body := range []object{
			{"url": u}, {"url": u, "events": []string{}}, {"url": u, "events": []string{"no such type"}},
			{"url": u, "events": []string{"run.completed"}, "tenantId": "x"}, {"events": []string{"run.completed"}},
		} {
			a := p.post("/webhooks", body)
			p.forget(a)
			p.want(a.status == 400, "the body %s: %s", show(body), a.brief())
		}
	}).gated("webhooks"),

	must("webhooks.unknown", "webhooks.md §Surfaces", "deleting an unknown subscription answers 404, one of another tenant 403", func(p *probe) {
		a := p.do("DELETE", "/webhooks/"+segment(p.unknownRun()), nil)
		p.refused(a, 404)
		b := p.do("DELETE", "/webhooks/"+segment(foreignRun), nil)
		p.refused(b, 403)
	}).gated("webhooks"),
}

// forget unregisters what was registered by mistake.
func (p *probe) forget(a answer) {
	if a.status == 201 {
		p.do("DELETE", "/webhooks/"+segment(a.str("webhookId")), nil)
	}
}

var deliveryChecks = []check{
	must("webhooks.signed", "webhooks.md §Headers, §Verification", "a delivery carries the five headers and a signature over its bytes", func(p *probe) {
		r := p.receive(nil)
		const secret = "conformance-secret-0123456789abcdef"
		hook := p.hook(r, secret, "run.completed")
		id := p.start(noop)
		p.await(id, "completed")
		d := p.delivered(r, id, "run.completed")
		h := d.header
		p.want(h.Get("OpenWOP-Webhook-Id") == hook, "OpenWOP-Webhook-Id is %q, the subscription is %s", h.Get("OpenWOP-Webhook-Id"), hook)
		p.want(h.Get("OpenWOP-Event-Type") == "run.completed", "OpenWOP-Event-Type is %q", h.Get("OpenWOP-Event-Type"))
		p.want(h.Get("OpenWOP-Signature-Algorithm") == "v1", "OpenWOP-Signature-Algorithm is %q", h.Get("OpenWOP-Signature-Algorithm"))
		stamp := h.Get("OpenWOP-Timestamp")
		secs, err := strconv.ParseInt(stamp, 10, 64)
		p.want(err == nil && time.Since(time.Unix(secs, 0)).Abs() < 5*time.Minute, "OpenWOP-Timestamp is %q", stamp)
		p.v1Signed(h, d.body, secret)
	}).gated("webhooks"),

	must("webhooks.body", "webhooks.md §Delivery", "a delivery holds the event verbatim, and a workspace exactly if the owner has one", func(p *probe) {
		r := p.receive(nil)
		p.hook(r, "", "run.completed")
		id := p.start(noop)
		p.await(id, "completed")
		d := p.delivered(r, id, "run.completed")
		events := p.log(id)
		p.want(string(compact(member(d.body, "event"))) == string(compact(events[len(events)-1].doc)), "the event delivered differs from the log's")
		workspace := member(p.snapshot(id).body, "owner", "workspace")
		p.want(same(workspace, member(d.body, "workspaceId")) || workspace == nil && member(d.body, "workspaceId") == nil, "workspaceId is %s, the owner's is %s", member(d.body, "workspaceId"), workspace)
	}).gated("webhooks"),

	must("webhooks.complete", "webhooks.md §Durability", "every event that was subscribed to arrives", func(p *probe) {
		r := p.receive(nil)
		wanted := []string{"run.started", "node.started", "node.completed", "run.completed"}
		p.hook(r, "", wanted...)
		id := p.start(chain)
		p.await(id, "completed")
		for _, e := range p.log(id) {
			if slices.Contains(wanted, e.Type) {
				p.arrives(r, id, e.Sequence, 1)
			}
		}
	}).gated("webhooks").floor(durable, "openwop.requirement.0173.webhook-delivery-complete"),

	must("webhooks.retried", "webhooks.md §Durability", "a delivery that failed is repeated until it is taken; a 3xx is a failure", func(p *probe) {
		for _, refusal := range []int{500, 302} {
			r := p.receive(func(n int) int {
				if n == 1 {
					return refusal
				}
				return 204
			})
			p.hook(r, "", "run.completed")
			id := p.start(noop)
			p.await(id, "completed")
			events := p.log(id)
			p.arrives(r, id, events[len(events)-1].Sequence, 2)
		}
	}).gated("webhooks").long().floor(durable, durableRef),

	must("webhooks.unsubscribed", "webhooks.md §Surfaces", "after its deletion a subscription is unknown", func(p *probe) {
		r := p.receive(nil)
		hook := p.hook(r, "", "run.completed")
		p.ok(p.do("DELETE", "/webhooks/"+segment(hook), nil), 204, "")
		p.refused(p.do("DELETE", "/webhooks/"+segment(hook), nil), 404)
	}).gated("webhooks"),

	must("webhooks.replay-silent", "webhooks.md §Replay", "what a replay repeats is not delivered", func(p *probe) {
		p.offers("replay")
		r := p.receive(nil)
		p.hook(r, "", "run.started")
		src := p.start(noop)
		p.await(src, "completed")
		p.delivered(r, src, "run.started")
		last := len(p.log(src)) - 1
		fork := p.ok(p.fork(src, object{"mode": "replay", "fromSeq": last}), 201, "").str("runId")
		p.ended(fork)
		later := p.start(noop) // its delivery shows that the queue has been worked off
		p.delivered(r, later, "run.started")
		for _, d := range r.all() {
			p.want(text(member(d.body, "runId")) != fork, "an event that the replay repeats was delivered")
		}
	}).gated("webhooks", "replay"),

	must("webhooks.dead-letter", "webhooks.md §Durability", "a delivery nobody takes ends in the dead letters, without its body", func(p *probe) {
		var policy struct{ MaxAttempts int }
		if !p.s.facet(new(any), "webhooks", "deadLetter") {
			p.inapplicable("webhooks.deadLetter is not advertised")
		}
		p.s.facet(&policy, "webhooks", "retryPolicy")
		if policy.MaxAttempts == 0 || policy.MaxAttempts > 3 {
			p.blocked("%d attempts take longer than the suite waits", policy.MaxAttempts)
		}
		r := p.receive(func(int) int { return 500 })
		hook := p.hook(r, "conformance-secret-0123456789abcdef", "run.completed")
		id := p.start(noop)
		p.await(id, "completed")
		for range 100 {
			a := p.ok(p.get("/webhooks/"+segment(hook)+"/dead-letters"), 200, "")
			if containsText(a.body, id) {
				p.valid("webhook-dead-letter-page", a.body, "the page of dead letters")
				p.want(!containsText(a.body, "conformance-secret"), "the dead letter holds the secret")
				p.want(!containsText(a.body, `"payload"`), "the dead letter holds the body")
				return
			}
			if !p.pause(300e6) {
				break
			}
		}
		p.fail("the delivery is not among the dead letters")
	}).gated("webhooks").long().floor(durable, durableRef),
}

// hook subscribes a receiver; what the host refuses to call blocks the check.
func (p *probe) hook(r *receiver, secret string, events ...string) string {
	body := object{"events": events}
	if secret != "" {
		body["secret"] = secret
	}
	a := p.ok(p.enroll(r, body), 201, "")
	id := a.str("webhookId")
	p.want(id != "", "the answer has no webhookId")
	r.after(func(p *probe) { _, _ = p.request("DELETE", "/webhooks/"+segment(id), nil) })
	return id
}

func mac(secret, stamp string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(h, "%s.", stamp)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// delivered waits for the delivery of an event type of a run.
func (p *probe) delivered(r *receiver, run, typ string) delivery {
	return p.delivery(r, 1, func(d delivery) bool {
		return text(member(d.body, "runId")) == run && text(member(d.body, "event", "type")) == typ
	}, run+" "+typ)
}

// arrives waits for the nth attempt of one event.
func (p *probe) arrives(r *receiver, run string, seq int64, n int) {
	p.delivery(r, n, func(d delivery) bool {
		var got int64 = -1
		_ = json.Unmarshal(member(d.body, "event", "sequence"), &got)
		return text(member(d.body, "runId")) == run && got == seq
	}, fmt.Sprintf("event %d of %s", seq, run))
}

func (p *probe) delivery(r *receiver, n int, fits func(delivery) bool, what string) delivery {
	for {
		found := 0
		for _, d := range r.all() {
			if fits(d) {
				if found++; found == n {
					return d
				}
			}
		}
		if !p.pause(50 * time.Millisecond) {
			p.fail("%s: %d of %d deliveries arrived", what, found, n)
		}
	}
}

package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

const v1Webhooks = "v1 webhooks.md"

var v1WebhookChecks = []check{
	must("v1.webhooks.facet", v1Webhooks, "discovery lists the scheme v1", func(p *probe) {
		algs := stringsOf(member(p.s.doc["webhooks"], "signatureAlgorithms"))
		p.want(slices.Contains(algs, "v1"), "webhooks.signatureAlgorithms is %v", algs)
	}).gated("webhooks"),

	must("v1.webhooks.registered", v1Webhooks, "a registration is 201 with a bare id, the secret and its fingerprint; tenantId and tags are taken", func(p *probe) {
		const secret = "conformance-secret-0123456789abcdef"
		r := p.receive(nil)
		for _, given := range []string{"", secret} {
			body := object{"events": []string{"run.completed", "run.dead_lettered"}, "tags": []string{"conformance"}}
			if given != "" {
				body["secret"] = given
			}
			a := p.ok(p.enroll(r, body), 201, "")
			p.bare(a.str("webhookId"), "webhookId")
			sum := sha256.Sum256([]byte(a.str("secret")))
			p.want(len(a.str("secret")) >= 16 && (given == "" || a.str("secret") == given), "the secret is not the one that signs")
			p.want(a.str("secretFingerprint") == hex.EncodeToString(sum[:4]), "secretFingerprint is %q", a.str("secretFingerprint"))
			p.forget(a)
		}
	}).gated("webhooks"),

	must("v1.webhooks.refused", v1Webhooks, "no events, or a type there is none of, is a validation_error; an address that is not public https is webhook_url_rejected", func(p *probe) {
		const u = "https://conformance.example/hook"
		for _, body := range []object{{"url": u}, {"url": u, "events": []string{}}, {"url": u, "events": []string{"conformance no such type"}}, {"events": []string{"run.completed"}}} {
			a := p.post("/webhooks", body)
			p.forget(a)
			p.refuses(a, []int{400}, "validation_error")
		}
		for _, u := range []string{"http://conformance.example/hook", "https://10.0.0.1/", "https://169.254.169.254/latest/"} {
			a := p.post("/webhooks", object{"url": u, "events": []string{"run.completed"}})
			p.forget(a)
			p.refuses(a, []int{400}, "webhook_url_rejected")
		}
	}).gated("webhooks"),

	must("v1.webhooks.deleted", v1Webhooks, "a deletion is 204, and then there is nothing", func(p *probe) {
		hook := p.hook(p.receive(nil), "", "run.completed")
		p.ok(p.do("DELETE", "/webhooks/"+segment(hook), nil), 204, "")
		p.refuses(p.do("DELETE", "/webhooks/"+segment(hook), nil), []int{404}, "not_found")
	}).gated("webhooks"),

	must("v1.webhooks.signed", v1Webhooks, "a delivery has five headers, under their older names and the same again under the younger; the time and the bytes are signed", func(p *probe) {
		const secret = "conformance-secret-0123456789abcdef"
		r := p.receive(nil)
		hook := p.hook(r, secret, "run.completed")
		id := p.start(noop)
		d := p.delivered(r, id, "run.completed")
		stamp := d.header.Get("X-openwop-Timestamp")
		secs, err := strconv.ParseInt(stamp, 10, 64)
		p.want(err == nil && time.Since(time.Unix(secs, 0)).Abs() < 5*time.Minute, "X-openwop-Timestamp is %q", stamp)
		for name, want := range map[string]string{
			"Webhook-Id": hook, "Event-Type": "run.completed", "Timestamp": stamp, "Signature": "sha256=" + mac(secret, stamp, d.body), "Signature-Algorithm": "v1",
		} {
			for _, prefix := range []string{"X-openwop-", "OpenWOP-"} {
				p.want(d.header.Get(prefix+name) == want, "%s%s is %q, want %q", prefix, name, d.header.Get(prefix+name), want)
			}
		}
		p.want(strings.HasPrefix(d.header.Get("User-Agent"), "openwop-webhook-dispatcher/"), "User-Agent is %q", d.header.Get("User-Agent"))
	}).gated("webhooks"),

	must("v1.webhooks.body", v1Webhooks, "a delivery holds the run's bare id, the workspace, the type and the event as a poll shows it", func(p *probe) {
		r := p.receive(nil)
		p.hook(r, "", "run.completed")
		id := p.start(noop)
		d := p.delivered(r, id, "run.completed")
		p.want(text(member(d.body, "type")) == "run.completed" && text(member(d.body, "workspaceId")) != "", "the delivery is %.300s", d.body)
		p.becomes(id, "completed")
		log := p.log(id)
		p.want(same(member(d.body, "event"), log[len(log)-1].doc), "the event delivered is %.300s", member(d.body, "event"))
	}).gated("webhooks"),

	must("v1.webhooks.of-either", "v2 versioning.md §5", "a run that was started by way of version 2 is delivered in the form of version 1 to whoever subscribed there", func(p *probe) {
		now := p.younger()
		r := p.receive(nil)
		p.hook(r, "", "run.completed")
		made := now.post("/runs", object{"workflowId": p.workflow(noop)})
		p.want(made.status == 201, "%s answered %s", made.line(), made.brief())
		_, id, _ := strings.Cut(made.str("runId"), "/")
		d := p.delivered(r, id, "run.completed")
		p.want(text(member(d.body, "event", "runId")) == id && d.header.Get("X-openwop-Event-Type") == "run.completed", "the delivery is %.300s", d.body)
	}).gated("webhooks"),
}

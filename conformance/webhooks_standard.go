package conformance

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

const standardScheme = "standard-webhooks-1"

var (
	bothSchemes  = []string{"v1", standardScheme}
	deliveryName = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)
)

// standardChecks are about Standard Webhooks, for hosts that offer it.
var standardChecks = []check{
	must("webhooks.opt-in", "webhooks.md §Standard Webhooks", "a scheme without v1, one that is unknown, or a secret of another form is a validation_error", func(p *probe) {
		secret := hookSecret()
		offered := p.offersStandard()
		for _, b := range []object{
			{"signatureAlgorithms": []string{standardScheme}, "secret": secret}, {"signatureAlgorithms": []string{"v1", "conformance-9"}, "secret": secret},
			{"signatureAlgorithms": []string{"v1", "v1"}}, {"signatureAlgorithms": bothSchemes}, {"signatureAlgorithms": bothSchemes, "secret": "conformance"},
			{"signatureAlgorithms": bothSchemes, "secret": "whsec_MDEyMzQ1Njc4OQ=="},
		} {
			b["url"], b["events"] = "https://conformance.example/hook", []string{"run.completed"}
			a := p.post("/webhooks", b)
			p.forget(a)
			p.refused(a, 400, "validation_error")
		}
		if !offered {
			a := p.post("/webhooks", object{"url": "https://conformance.example/hook", "events": []string{"run.completed"}, "signatureAlgorithms": bothSchemes, "secret": secret})
			p.forget(a)
			p.refused(a, 400, "validation_error")
		}
	}).gated("webhooks"),

	must("webhooks.verified", "webhooks.md §Standard Webhooks", "an endpoint that does not repeat the challenge is webhook_endpoint_unverified, asked once; one that does is taken", func(p *probe) {
		p.wantStandard()
		secret := hookSecret()
		for _, odd := range []string{"silent", "other", "redirect", "refuse"} {
			r := p.receive(nil)
			r.verify = odd
			a := p.enroll(r, object{"secret": secret, "signatureAlgorithms": bothSchemes, "events": []string{"run.completed"}})
			p.forget(a)
			p.refused(a, 400, "webhook_endpoint_unverified")
			p.want(len(r.all()) == 1, "the endpoint was called %d times", len(r.all()))
		}
		r := p.receive(nil)
		a := p.ok(p.enroll(r, object{"secret": secret, "signatureAlgorithms": bothSchemes, "events": []string{"run.completed"}}), 201, "webhook-registered")
		p.forget(a)
		p.want(slices.Equal(stringsOf(member(a.body, "signatureAlgorithms")), bothSchemes), "signatureAlgorithms is %s", member(a.body, "signatureAlgorithms"))
		p.want(!containsText(a.body, secret), "the answer tells the secret")
		ask := r.asked() // what other checks do may have been delivered already
		p.want(len(ask) == 1, "the endpoint was asked %d times", len(ask))
		p.valid("webhook-verification", ask[0].body, "the verification request")
		p.want(ask[0].header.Get("OpenWOP-Event-Type") == "", "the verification request names an event type")
		p.standardSigned(ask[0].header, ask[0].body, secret)
	}).gated("webhooks"),

	must("webhooks.not-verified", "webhooks.md §Standard Webhooks", "an endpoint that did not ask for Standard Webhooks is not verified, and gets none of its headers", func(p *probe) {
		p.wantStandard()
		r := p.receive(nil)
		p.hook(r, "", "run.completed")
		p.want(len(r.asked()) == 0, "the endpoint was asked")
		id := p.start(noop)
		d := p.delivered(r, id, "run.completed")
		p.want(d.header.Get("webhook-signature") == "", "the delivery carries webhook-signature")
	}).gated("webhooks"),

	must("webhooks.standard", "webhooks.md §Standard Webhooks", "a delivery is signed by both schemes, under one id in all its attempts and another for every other delivery", func(p *probe) {
		p.wantStandard()
		secret := hookSecret()
		r := p.receive(func(n int) int {
			if n == 1 {
				return 500
			}
			return 204
		})
		p.hookStandard(r, secret, "run.started", "run.completed")
		id := p.start(noop)
		p.await(id, "completed")
		names := map[string]string{}
		for _, typ := range []string{"run.started", "run.completed"} {
			again := p.delivery(r, 2, ofRun(id, typ), "a second attempt at "+typ)
			for _, d := range r.all() {
				if !ofRun(id, typ)(d) {
					continue
				}
				name := d.header.Get("webhook-id")
				p.want(name == again.header.Get("webhook-id"), "%s was sent as %s and as %s", typ, name, again.header.Get("webhook-id"))
				p.want(d.header.Get("webhook-timestamp") == d.header.Get("OpenWOP-Timestamp"), "the two timestamps differ")
				p.standardSigned(d.header, d.body, secret)
				p.v1Signed(d.header, d.body, secret)
			}
			p.want(names[again.header.Get("webhook-id")] == "", "two deliveries have the id %s", again.header.Get("webhook-id"))
			names[again.header.Get("webhook-id")] = typ
		}
	}).gated("webhooks").long(),

	must("webhooks.rotation", "webhooks.md §Standard Webhooks", "after a rotation both secrets sign, v1 with the old one; a webhook of v1 alone has none", func(p *probe) {
		p.wantStandard()
		var overlap struct{ OverlapSeconds int64 }
		if !p.s.facet(&overlap, "webhooks", "secretRotation") {
			p.inapplicable("webhooks.secretRotation is not advertised")
		}
		old, fresh := hookSecret(), hookSecret()
		plain := p.receive(nil)
		p.refused(p.post("/webhooks/"+segment(p.hook(plain, "", "run.completed"))+"/rotate-secret", object{"secret": fresh}), 400, "validation_error")
		p.refused(p.post("/webhooks/"+segment(foreignRun)+"/rotate-secret", object{"secret": fresh}), 403, "id_tenant_mismatch")
		p.refused(p.post("/webhooks/"+segment(p.unknownRun())+"/rotate-secret", object{"secret": fresh}), 404)
		r := p.receive(nil)
		hook := p.hookStandard(r, old, "run.completed")
		p.refused(p.post("/webhooks/"+segment(hook)+"/rotate-secret", object{"secret": "conformance"}), 400, "validation_error")
		a := p.ok(p.post("/webhooks/"+segment(hook)+"/rotate-secret", object{"secret": fresh}), 200, "webhook-rotated")
		at, errA := time.Parse(time.RFC3339, a.str("rotatedAt"))
		until, errB := time.Parse(time.RFC3339, a.str("previousSecretExpiresAt"))
		p.want(errA == nil && errB == nil && until.Sub(at) == time.Duration(overlap.OverlapSeconds)*time.Second, "from %s to %s is not %d s", a.str("rotatedAt"), a.str("previousSecretExpiresAt"), overlap.OverlapSeconds)
		id := p.start(noop)
		d := p.delivered(r, id, "run.completed")
		p.standardSigned(d.header, d.body, fresh)
		p.standardSigned(d.header, d.body, old)
		p.v1Signed(d.header, d.body, old)
	}).gated("webhooks"),
}

func (p *probe) offersStandard() bool {
	var algs []string
	p.s.facet(&algs, "webhooks", "signatureAlgorithms")
	return slices.Contains(algs, standardScheme)
}

func (p *probe) wantStandard() {
	if !p.offersStandard() {
		p.inapplicable("webhooks.signatureAlgorithms lacks %s", standardScheme)
	}
}

// hookSecret makes a secret in the form of Standard Webhooks.
func hookSecret() string {
	var key [32]byte
	rand.Read(key[:])
	return "whsec_" + base64.StdEncoding.EncodeToString(key[:])
}

// hookStandard subscribes a receiver to Standard Webhooks.
func (p *probe) hookStandard(r *receiver, secret string, events ...string) string {
	a := p.ok(p.enroll(r, object{"secret": secret, "signatureAlgorithms": bothSchemes, "events": events}), 201, "")
	id := a.str("webhookId")
	r.after(func(p *probe) { _, _ = p.request("DELETE", "/webhooks/"+segment(id), nil) })
	return id
}

// standardSigned wants a signature of Standard Webhooks with a secret.
func (p *probe) standardSigned(h http.Header, body []byte, secret string) {
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	p.want(deliveryName.MatchString(id), "webhook-id is %q", id)
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	m := hmac.New(sha256.New, key)
	m.Write([]byte(id + "." + stamp + "."))
	m.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
	p.want(slices.Contains(strings.Fields(h.Get("webhook-signature")), want), "no entry of webhook-signature fits the bytes and the secret")
}

// v1Signed wants a signature of the scheme v1 with a secret.
func (p *probe) v1Signed(h http.Header, body []byte, secret string) {
	want := "sha256=" + mac(secret, h.Get("OpenWOP-Timestamp"), body)
	p.want(h.Get("OpenWOP-Signature-Algorithm") == "v1", "OpenWOP-Signature-Algorithm is %q", h.Get("OpenWOP-Signature-Algorithm"))
	p.want(hmac.Equal([]byte(h.Get("OpenWOP-Signature")), []byte(want)), "OpenWOP-Signature does not fit the bytes and the secret")
}

func ofRun(run, typ string) func(delivery) bool {
	return func(d delivery) bool {
		return text(member(d.body, "runId")) == run && text(member(d.body, "event", "type")) == typ
	}
}

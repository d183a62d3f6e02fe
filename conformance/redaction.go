package conformance

import (
	"net/http"
	"strings"
)

// canary is a value that is nowhere but where the check has put it.
func canary() string { return "conformance-canary-" + nonce() }

// silent wants answers that do not show what they were asked with.
func (p *probe) silent(secret string, answers ...answer) {
	for _, a := range answers {
		p.want(!containsText(a.body, secret), "%s %s answered %d with what is secret in its body", a.method, pathOf(a, secret), a.status)
		for name, values := range a.header {
			p.want(!strings.Contains(strings.Join(values, "\n"), secret), "%s %s shows what is secret in the header %s", a.method, pathOf(a, secret), name)
		}
	}
}

// pathOf is where an answer came from, without what is secret in it.
func pathOf(a answer, secret string) string { return strings.ReplaceAll(a.path, secret, "…") }

// nowhere looks for a secret in all that tells of a run.
func (p *probe) nowhere(secret, id string) {
	for _, path := range []string{at(id), at(id) + "/events/poll?timeout=1", "/runs?limit=100"} {
		p.silent(secret, p.ok(p.get(path), 200, ""))
	}
	for _, f := range p.frames(id, "?streamMode=debug") {
		p.want(!containsText(f.data, secret), "the stream's frame %s (%s) shows what is secret", f.id, f.name)
	}
	p.silent(secret, p.get(at(id)+"/effects"))
	p.unaudited(secret)
}

// unaudited looks for a secret in the audit log, where it can be read.
func (p *probe) unaudited(secret string) {
	if !p.s.advertises("auditLogIntegrity") {
		return
	}
	for _, path := range []string{"/host/fermata/audit?limit=200", "/host/fermata/audit/export"} {
		p.silent(secret, p.get(path))
	}
}

var redactionChecks = []check{
	must("redaction.credential", "errors.md §The envelope; identity.md §2", "a credential that is none is not repeated", func(p *probe) {
		secret := canary()
		// Few of them: a host may bound how many it looks at from one address.
		for _, a := range []answer{
			p.get("/runs/"+segment(foreignRun), "Authorization", "Bearer "+secret),
			p.post("/runs", object{"workflowId": "x"}, "Authorization", "Basic "+secret),
			p.get("/runs", "Authorization", secret),
		} {
			p.want(a.status == 401, "%s answered %s to a credential that is none", a.line(), a.brief())
			p.silent(secret, a)
		}
		p.unaudited(secret)
	}),

	must("redaction.interrupt-token", "interrupt.md §Tokens; errors.md §The envelope", "an interrupt token that is none is not repeated", func(p *probe) {
		secret := canary()
		for _, a := range []answer{
			p.get("/interrupts/"+secret, "Authorization", ""),
			p.post("/interrupts/hs256.conformance."+secret+".x", object{"resumeValue": accept}, "Authorization", ""),
		} {
			p.want(a.status >= 400 && a.status < 500, "a token that is none was answered %s", a.brief())
			p.silent(secret, a)
		}
		p.unaudited(secret)
	}),

	must("redaction.idempotency-key", "idempotency.md §Layer 1", "the key of a request is in no answer, and nothing of its run shows it", func(p *probe) {
		secret, wf := canary(), p.workflow(noop)
		first := p.createWith([]string{keyHeader, secret}, wf)
		p.ok(first, 201, "")
		again := p.createWith([]string{keyHeader, secret}, wf)
		other := p.createWith([]string{keyHeader, secret}, wf, object{"tags": []string{"conformance"}})
		p.refused(other, 409)
		bad := p.createWith([]string{keyHeader, secret + " !"}, wf)
		p.refused(bad, 400)
		p.silent(secret, first, again, other, bad)
		id := first.str("runId")
		p.ended(id)
		p.nowhere(secret, id)
	}).gated("idempotency"),

	must("redaction.webhook-secret", "webhooks.md §Surfaces", "the secret of a subscription that the subscriber has chosen is not repeated", func(p *probe) {
		secret := canary()
		events := []string{"run.completed"}
		for _, body := range []object{
			{"url": "http://conformance.example/", "events": events, "secret": secret},
			{"url": "https://conformance.example/", "events": []string{}, "secret": secret},
		} {
			a := p.post("/webhooks", body)
			p.forget(a)
			p.silent(secret, p.refused(a, 400))
		}
		r := p.receive(nil)
		a := p.ok(p.enroll(r, object{"events": events, "secret": secret}), 201, "")
		hook := "/webhooks/" + segment(a.str("webhookId"))
		r.after(func(p *probe) { _, _ = p.request("DELETE", hook, nil) })
		p.silent(secret, a)
		id := p.start(noop)
		p.await(id, "completed")
		d := p.delivered(r, id, "run.completed")
		p.silent(secret, answer{"POST", "a delivery", http.StatusOK, d.header, d.body})
		p.silent(secret, p.get(hook+"/dead-letters"))
		p.nowhere(secret, id)
	}).gated("webhooks"),

	must("redaction.sensitive", "runs.md §Snapshot; events.md §Payloads", "the input of a sensitive variable is used, and shown nowhere", func(p *probe) {
		secret := canary()
		def := flow("sensitive", []any{step("echo", "core.identity", object{}, "card")}, []any{},
			object{"name": "card", "type": "string", "required": true, "sensitive": true})
		p.lent("sensitive", def, func(wf string) {
			bad := p.create(wf, object{"inputs": object{"card": object{"number": secret}}})
			p.silent(secret, p.refused(bad, 400))
			made := p.create(wf, object{"inputs": object{"card": secret}})
			p.silent(secret, p.ok(made, 201, ""))
			id := made.str("runId")
			end := p.ended(id)
			p.want(end.str("status") == "completed", "the run that takes a sensitive value is %s", end.str("status"))
			p.nowhere(secret, id)
		})
	}),

	must("redaction.suite-key", "errors.md §The envelope", "no refusal repeats the credential it was asked with", func(p *probe) {
		keys := []string{p.s.cfg.APIKey, p.s.cfg.OtherAPIKey}
		for _, a := range p.refusals() {
			for _, k := range keys {
				p.want(k == "" || !containsText(a.body, k), "%s answered %d with a credential in it", a.line(), a.status)
			}
		}
	}).last(),
}

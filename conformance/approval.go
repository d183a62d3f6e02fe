package conformance

import (
	"strings"
)

var approvalChecks = []check{
	must("approval.action-offered", "interrupt.md §Approval", "an action that is not offered is a validation_error, and the gate stays shut", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		for _, v := range []any{object{"action": "ask"}, object{"action": "approve"}, object{"action": ""}, object{}, "accept", nil} {
			a := p.resolve(id, node, v)
			p.want(a.status == 400 && a.code() == "validation_error", "the answer %s: %s", show(v), a.brief())
		}
		p.stillWaits(id)
	}),

	must("approval.required-fields", "interrupt.md §Approval", "refine needs refineFeedback with a scope, edit-accept needs editedArtifactData", func(p *probe) {
		id, node := p.waiting(actions, "waiting-approval")
		for _, v := range []object{
			{"action": "refine"}, {"action": "refine", "refineFeedback": object{}},
			{"action": "refine", "refineFeedback": object{"scope": "all"}}, {"action": "edit-accept"},
		} {
			a := p.resolve(id, node, v)
			p.want(a.status == 400 && a.code() == "validation_error", "the answer %s: %s", show(v), a.brief())
		}
		p.stillWaits(id)
		p.ok(p.resolve(id, node, object{"action": "edit-accept", "editedArtifactData": object{"x": 1}}), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}),

	must("approval.ask-stays", "interrupt.md §Approval", "ask does not open the gate", func(p *probe) {
		id, node := p.waiting(actions, "waiting-approval")
		a := p.resolve(id, node, object{"action": "ask", "feedback": "Why?"})
		p.want(a.status == 200 || a.status == 400, "ask: %s", a.brief())
		if a.status == 400 {
			p.blocked("the host wants something in an ask that the text does not name: %s", a.brief())
		}
		p.pause(200e6)
		p.want(p.snapshot(id).str("status") == "waiting-approval", "after ask the run is %s", p.snapshot(id).str("status"))
		p.ok(p.resolve(id, node, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}),

	must("approval.reject", "interrupt.md §Approval", "a rejection ends the wait, and is in the log", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.resolve(id, node, object{"action": "reject"}), 200, "interrupt-resolve-response")
		p.becomes(id, "failed", "completed")
		_, ok := find(p.log(id), "interrupt.resolved")
		p.want(ok, "the log has no interrupt.resolved")
	}),

	must("approval.approvers", "interrupt.md §Approver enforcement", "somebody who is not on the approversList is refused, and the gate stays shut", func(p *probe) {
		id, node := p.waiting(restricted, "waiting-approval")
		a := p.resolve(id, node, accept)
		p.want(a.status == 403, "an answer by somebody not listed: %s", a.brief())
		p.refused(a, 403)
		p.stillWaits(id)
	}).gated("interrupt"),

	must("approval.quorum", "interrupt.md §Approval", "one principal cannot make a quorum of two", func(p *probe) {
		id, node := p.waiting(quorum, "waiting-approval")
		for range 3 {
			a := p.resolve(id, node, accept)
			p.want(a.status < 500, "a vote: %s", a.brief())
		}
		p.stillWaits(id)
	}).gated("interrupt"),

	must("approval.facet", "interrupt.md §Approver enforcement", "the interrupt facet names tokenAlgs, and only known kinds of refs", func(p *probe) {
		var algs, kinds []string
		p.want(p.s.facet(&algs, "interrupt", "tokenAlgs") && len(algs) > 0, "interrupt.tokenAlgs is absent")
		p.s.facet(&kinds, "interrupt", "refKinds")
		for _, k := range kinds {
			p.want(k == "principal" || k == "group" || k == "role", "interrupt.refKinds lists %q", k)
		}
	}).gated("interrupt"),
}

const (
	tokenScheme = "v2-interrupt-token-scheme"
	unprefixed  = "Y29uZm9ybWFuY2U.0123456789abcdef0123456789abcdef"
	unheld      = "ow2.hs256.conformance-no-such-key.Y29uZm9ybWFuY2U.0123456789abcdef0123456789abcdef"
)

var tokenChecks = []check{
	must("token.unprefixed", "identity.md §4", "a token outside the grammar does not resolve", func(p *probe) {
		a := p.get("/interrupts/"+unprefixed, "Authorization", "")
		if a.status == 404 {
			p.refused(a, 404, "not_found", "interrupt_not_found")
			return
		}
		p.refused(a, 401, "interrupt_token_invalid")
	}).floor(tokenScheme, "openwop.requirement.0170.interrupt-token-scheme.unprefixed-refused"),

	must("token.unheld-key", "identity.md §4; interrupt.md §Tokens", "a token under a key the host does not hold is interrupt_token_invalid", func(p *probe) {
		p.tokens()
		p.refused(p.get("/interrupts/"+unheld, "Authorization", ""), 401, "interrupt_token_invalid")
		p.refused(p.post("/interrupts/"+unheld, object{"resumeValue": accept}, "Authorization", ""), 401, "interrupt_token_invalid")
	}).floor(tokenScheme, "openwop.requirement.0170.interrupt-token-scheme.unheld-kid-refused"),

	must("token.unknown-alg", "identity.md §4", "a token of an algorithm that is not advertised is interrupt_token_invalid", func(p *probe) {
		p.tokens()
		for _, alg := range []string{"none", "hs1", "HS256"} {
			t := strings.Replace(unheld, "hs256", alg, 1)
			p.refused(p.get("/interrupts/"+t, "Authorization", ""), 401, "interrupt_token_invalid")
		}
	}).floor(tokenScheme, "openwop.requirement.0170.interrupt-token-scheme.unheld-kid-refused"),
}

// tokens makes a check inapplicable where the surface of signed tokens, a
// SHOULD, is not mounted.
func (p *probe) tokens() {
	a, b := p.get("/interrupts/"+unprefixed, "Authorization", ""), p.get("/interrupts/"+unheld, "Authorization", "")
	if a.status == 404 && b.status == 404 {
		p.inapplicable("the host does not serve signed tokens")
	}
}

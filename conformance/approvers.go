package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The names of what the suite's own principals belong to.
const (
	someGroup = "conformance-group"
	someRole  = "conformance-role"
)

var approverChecks = []check{
	must("approvers.group", "interrupt.md §Approver enforcement", "a gate that names a group is answered by its members alone", func(p *probe) {
		p.refKind("group")
		in, out := p.principal([]string{someGroup}, nil), p.principal(nil, []string{someGroup})
		id, node := p.waiting(grouped, "waiting-approval")
		p.names(id, "approverGroupRefs", someGroup)
		p.shut(p.resolveAs(out, id, node, accept), id)
		p.shut(p.resolve(id, node, accept), id)
		p.ok(p.resolveAs(in, id, node, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}).gated("interrupt"),

	must("approvers.role", "interrupt.md §Approver enforcement", "a gate that names a role is answered by its holders alone", func(p *probe) {
		p.refKind("role")
		in, out := p.principal(nil, []string{someRole}), p.principal([]string{someRole}, nil)
		id, node := p.waiting(rolled, "waiting-approval")
		p.names(id, "approverRoleRefs", someRole)
		p.shut(p.resolveAs(out, id, node, accept), id)
		p.shut(p.resolve(id, node, accept), id)
		p.ok(p.resolveAs(in, id, node, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}).gated("interrupt"),

	must("approvers.by-token", "interrupt.md §Approver enforcement", "a token opens no gate that its holder could not open", func(p *probe) {
		p.refKind("group")
		p.tokens()
		in, out := p.principal([]string{someGroup}, nil), p.principal(nil, nil)
		id, node := p.waiting(grouped, "waiting-approval")
		p.shut(p.issueAs(out, id, node, object{}), id)
		t := p.token(in, id, node, object{})
		p.ok(p.byToken(t, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}).gated("interrupt"),

	must("approvers.quorum-of-people", "interrupt.md §Approval", "a quorum is made of principals, each with one vote, and is then enough", func(p *probe) {
		one, two := p.principal(nil, nil), p.principal(nil, nil)
		id, node := p.waiting(quorum, "waiting-approval")
		for range 2 {
			p.ok(p.resolveAs(one, id, node, accept), 200, "interrupt-resolve-response")
			p.stillWaits(id)
		}
		p.ok(p.resolveAs(two, id, node, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
		p.want(count(p.log(id), "interrupt.resolved") == 1, "the log has %d interrupt.resolved", count(p.log(id), "interrupt.resolved"))
	}).gated("interrupt"),

	must("approvers.single-veto", "interrupt.md §Rejection", "under single-veto, which is the default, one rejection ends a gate that waits for two", func(p *probe) {
		one, two := p.principal(nil, nil), p.principal(nil, nil)
		id, node := p.waiting(quorum, "waiting-approval")
		p.ok(p.resolveAs(one, id, node, accept), 200, "interrupt-resolve-response")
		p.ok(p.resolveAs(two, id, node, object{"action": "reject"}), 200, "interrupt-resolve-response")
		p.becomes(id, "failed")
		p.decided(id, "reject", "rejected")
	}).gated("interrupt"),

	must("approvers.majority", "interrupt.md §Rejection", "under majority, rejections end a gate once they are more than half of the quorum, and not before", func(p *probe) {
		one, two := p.principal(nil, nil), p.principal(nil, nil)
		id, node := p.waiting(majority, "waiting-approval")
		for range 2 {
			p.ok(p.resolveAs(one, id, node, object{"action": "reject"}), 200, "interrupt-resolve-response")
			p.stillWaits(id)
		}
		p.ok(p.resolveAs(two, id, node, object{"action": "reject"}), 200, "interrupt-resolve-response")
		p.becomes(id, "failed")
		p.decided(id, "reject", "rejected")
	}).gated("interrupt"),

	must("approvers.override", "interrupt.md §Approval", "overrideBypassesQuorum gives nobody a quorum who is no configured override principal", func(p *probe) {
		one := p.principal(nil, nil)
		id, node := p.waiting(overridable, "waiting-approval")
		p.ok(p.resolveAs(one, id, node, accept), 200, "interrupt-resolve-response")
		p.stillWaits(id)
	}).gated("interrupt"),

	must("approval.timeout-rejects", "interrupt.md §Rejection", "a gate whose time is over is rejected by timeout, its node fails with approval_rejected, and nobody can answer with timeout", func(p *probe) {
		id := p.start(brief)
		p.becomes(id, "failed")
		p.decided(id, "timeout", "rejected")
		gate, node := p.waiting(approval, "waiting-approval")
		p.refused(p.resolve(gate, node, object{"action": "timeout"}), 400, "validation_error")
		p.stillWaits(gate)
	}),

	must("approval.rejection-fails", "interrupt.md §Rejection", "a rejected gate fails its node with approval_rejected, for good, and the run that has no way around it", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.resolve(id, node, object{"action": "reject"}), 200, "interrupt-resolve-response")
		p.becomes(id, "failed")
		p.decided(id, "reject", "rejected")
		e, ok := find(p.log(id), "run.failed")
		p.want(ok && text(e.field("failedNodeId")) == node, "run.failed names the node %s, the gate is %s", e.field("failedNodeId"), node)
	}),

	must("interrupt.key-of-visit", "interrupt.md §Re-entry and resume values", "a node that is reached again asks again, under another key, and is not given the answer of the time before", func(p *probe) {
		id, node := p.waiting(around, "waiting-approval")
		p.ok(p.resolve(id, node, object{"action": "accept", "feedback": "first"}), 200, "interrupt-resolve-response")
		var keys []string
		for range 200 {
			if keys = p.keys(id); len(keys) > 1 || !p.pause(25e6) {
				break
			}
		}
		p.want(len(keys) == 2 && keys[0] != keys[1], "two visits asked under %q", keys)
		p.becomes(id, "waiting-approval")
		p.ok(p.resolve(id, node, object{"action": "accept", "feedback": "second"}), 200, "interrupt-resolve-response")
		p.want(count(p.log(id), "interrupt.resolved") == 2, "the log has %d interrupt.resolved", count(p.log(id), "interrupt.resolved"))
	}),
}

// refKind makes a check inapplicable where discovery does not list a kind.
func (p *probe) refKind(kind string) {
	var kinds []string
	if p.s.facet(&kinds, "interrupt", "refKinds"); !slices.Contains(kinds, kind) {
		p.inapplicable("interrupt.refKinds does not list %s", kind)
	}
}

// principal is a credential of somebody else in the same tenant, where the host
// has a route to make one.
func (p *probe) principal(groups, roles []string) string {
	a, err := p.request("POST", "/host/fermata/keys", object{
		"name": "conformance", "scopes": []string{"approvals:respond"},
		"groups": append([]string{}, groups...), "roles": append([]string{}, roles...),
	})
	switch {
	case err != nil:
		p.fail("the host did not answer to a request for a credential: %v", err)
	case a.status != 201 || a.str("key") == "":
		p.blocked("a second principal is needed, and the host has no way to make one: %s", a.brief())
	}
	return "Bearer " + a.str("key")
}

func (p *probe) resolveAs(who, id, node string, value any) answer {
	return p.post(at(id)+"/interrupts/"+node, object{"resumeValue": value}, "Authorization", who)
}

// shut wants a 403, and a gate that still waits.
func (p *probe) shut(a answer, id string) {
	p.refused(a, 403)
	p.stillWaits(id)
}

// names wants a member of the request to be what the workflow says, unchanged.
func (p *probe) names(id, member, want string) {
	e, ok := find(p.log(id), "interrupt.requested")
	var d map[string]json.RawMessage
	_ = json.Unmarshal(e.field("data"), &d)
	p.want(ok && string(compact(d[member])) == fmt.Sprintf("[%q]", want), "%s is %s in the request", member, d[member])
}

// decided wants a run's gate to be resolved by an action, and its node to have
// failed of it for good.
func (p *probe) decided(id, action, decision string) {
	events := p.log(id)
	e, ok := find(events, "interrupt.resolved")
	p.want(ok, "the log has no interrupt.resolved: %v", types(events))
	p.want(text(e.field("action")) == action && text(e.field("decision")) == decision,
		"the gate was resolved with action %s and decision %s", e.field("action"), e.field("decision"))
	p.want(action != "timeout" || text(e.field("reason")) == "timeout", "the reason is %s", e.field("reason"))
	f, ok := find(events, "node.failed")
	var why struct {
		Code      string `json:"code"`
		Retryable *bool  `json:"retryable"`
	}
	_ = json.Unmarshal(f.field("error"), &why)
	p.want(ok && why.Code == "approval_rejected", "the node failed with %q", why.Code)
	p.want(why.Retryable != nil && !*why.Retryable, "node.failed does not say that it is not to be retried: %s", f.field("error"))
	p.want(count(events, "node.retried") == 0, "the node was retried")
}

// keys lists under which keys a run has asked, in order.
func (p *probe) keys(id string) []string {
	var out []string
	for _, e := range p.log(id) {
		if e.Type == "interrupt.requested" {
			out = append(out, text(e.field("key")))
		}
	}
	return out
}

var heldTokenChecks = []check{
	must("token.resolve", "interrupt.md §Resolve surfaces", "a token shows what is asked and answers it, without any other credential", func(p *probe) {
		p.tokens()
		id, node := p.waiting(approval, "waiting-approval")
		t := p.token("", id, node, object{})
		p.ok(p.get("/interrupts/"+t, "Authorization", ""), 200, "suspend-request")
		p.refused(p.byToken(t, object{"action": "refine"}), 400, "validation_error")
		p.ok(p.byToken(t, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}).gated("interrupt"),

	must("token.mac", "interrupt.md §Tokens", "a token that was changed anywhere is interrupt_token_invalid", func(p *probe) {
		p.tokens()
		id, node := p.waiting(approval, "waiting-approval")
		t := p.token("", id, node, object{})
		part := strings.Split(t, ".")
		p.want(len(part) >= 5, "the token has %d segments", len(part))
		for _, i := range []int{len(part) - 2, len(part) - 1} {
			changed := slices.Clone(part)
			b := []byte(changed[i])
			b[len(b)/2] ^= 'a' ^ 'b'
			if changed[i] = string(b); !tokenText(changed[i]) {
				b[len(b)/2] = 'A'
				changed[i] = string(b)
			}
			p.refused(p.byToken(strings.Join(changed, "."), accept), 401, "interrupt_token_invalid")
		}
		p.stillWaits(id)
	}).gated("interrupt"),

	must("token.inspect-only", "interrupt.md §Tokens", "a token to inspect with does not resolve", func(p *probe) {
		p.tokens()
		id, node := p.waiting(approval, "waiting-approval")
		t := p.token("", id, node, object{"intent": "inspect"})
		p.ok(p.get("/interrupts/"+t, "Authorization", ""), 200, "suspend-request")
		p.refused(p.byToken(t, accept), 403)
		p.stillWaits(id)
	}).gated("interrupt"),

	must("token.invalidated", "interrupt.md §Tokens", "a token ends with its interrupt, however that ends", func(p *probe) {
		p.tokens()
		for _, end := range []func(id, node string){
			func(id, node string) { p.ok(p.resolve(id, node, accept), 200, "") },
			func(id, _ string) { p.ok(p.post(at(id)+"/cancel", object{}), 200, "") },
		} {
			id, node := p.waiting(approval, "waiting-approval")
			t := p.token("", id, node, object{})
			end(id, node)
			p.refused(p.byToken(t, accept), 409, "interrupt_already_resolved")
			p.refused(p.get("/interrupts/"+t, "Authorization", ""), 409, "interrupt_already_resolved")
		}
	}).gated("interrupt"),

	must("token.expiry", "interrupt.md §Tokens", "a token past its end is interrupt_expired, and its interrupt still waits", func(p *probe) {
		p.tokens()
		id, node := p.waiting(approval, "waiting-approval")
		t := p.token("", id, node, object{"expiresInSeconds": 1})
		p.pause(1200e6)
		p.refused(p.get("/interrupts/"+t, "Authorization", ""), 410, "interrupt_expired")
		p.refused(p.byToken(t, accept), 410, "interrupt_expired")
		p.stillWaits(id)
	}).gated("interrupt"),

	must("token.rotation", "interrupt.md §Tokens", "a new signing key leaves the tokens of the old one good", func(p *probe) {
		p.tokens()
		id, node := p.waiting(approval, "waiting-approval")
		before := p.token("", id, node, object{})
		if a := p.post("/host/fermata/token-keys", nil); a.status != 201 {
			p.blocked("the host has no way to be told to rotate: %s", a.brief())
		}
		after := p.token("", id, node, object{})
		p.want(kid(before) != kid(after), "tokens of before and after a rotation name the key %s", kid(before))
		for _, t := range []string{before, after} {
			p.ok(p.get("/interrupts/"+t, "Authorization", ""), 200, "suspend-request")
		}
		p.ok(p.byToken(before, accept), 200, "interrupt-resolve-response")
		p.becomes(id, "completed")
	}).gated("interrupt"),
}

func (p *probe) issueAs(who, id, node string, ask object) answer {
	path := "/host/fermata" + at(id) + "/interrupts/" + node + "/tokens"
	if who == "" {
		return p.post(path, ask)
	}
	return p.post(path, ask, "Authorization", who)
}

// token gets a token. How a host gives one out is its own affair.
func (p *probe) token(who, id, node string, ask object) string {
	a := p.issueAs(who, id, node, ask)
	if a.status != 201 || a.str("token") == "" {
		p.blocked("a token is needed, and the suite knows no way to get one of this host: %s", a.brief())
	}
	return a.str("token")
}

func (p *probe) byToken(t string, value any) answer {
	return p.post("/interrupts/"+t, object{"resumeValue": value}, "Authorization", "")
}

// kid is what names a token's key; it may hold dots.
func kid(t string) string {
	part := strings.Split(t, ".")
	if len(part) < 5 {
		return ""
	}
	return strings.Join(part[2:len(part)-2], ".")
}

func tokenText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

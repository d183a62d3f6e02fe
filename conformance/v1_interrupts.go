package conformance

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

const v1Interrupt = "v1 interrupt.md"

var v1InterruptChecks = []check{
	must("v1.interrupt.accept", v1Interrupt, "the action alone is an answer: 200 with run, node and status; who and when is filled in", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		a := p.ok(p.resolve(id, node, accept), 200, "")
		p.want(a.str("runId") == id && a.str("nodeId") == node && a.str("status") != "", "the answer is %s", a.body)
		p.becomes(id, "completed")
		e, _ := find(p.log(id), "approval.received")
		p.want(len(e.field("decidedBy")) > 0, "approval.received has no decidedBy: %s", e.Payload)
		p.moment(e.field("decidedAt"), "decidedAt")
	}),

	must("v1.interrupt.answers", v1Interrupt, "a clarification is answered by an object, and by a list", func(p *probe) {
		for _, value := range []any{
			object{"answers": object{"q1": "blue"}}, object{"answers": []any{object{"id": "q1", "answer": "blue"}}}, []any{object{"id": "q1", "answer": "blue"}},
		} {
			id, node := p.waiting(clarify, "waiting-input")
			p.ok(p.resolve(id, node, value), 200, "")
			p.becomes(id, "completed")
		}
	}),

	must("v1.interrupt.refused", v1Interrupt, "an answer that is none is 400, and the run waits on", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		for _, value := range []any{"yes", object{}, object{"action": "dance"}, object{"action": "refine"}} {
			p.refuses(p.resolve(id, node, value), []int{400}, "validation_error")
		}
		p.refuses(p.post(at(id)+"/interrupts/"+node, object{}), []int{400}, "validation_error")
		p.want(p.snapshot(id).str("status") == "waiting-approval", "the run is %s", p.snapshot(id).str("status"))
	}),

	must("v1.interrupt.unknown", v1Interrupt, "a node that is not there, or asks nothing, is 404 interrupt_not_found", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		p.refuses(p.resolve(id, "conformance-nowhere", accept), []int{404}, "interrupt_not_found")
	}),

	must("v1.interrupt.again", v1Interrupt, "what has been answered is 409 interrupt_already_resolved", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.resolve(id, node, accept), 200, "")
		p.becomes(id, "completed")
		p.refuses(p.resolve(id, node, accept), []int{409}, "interrupt_already_resolved")
	}),

	must("v1.interrupt.cancelled", v1Interrupt, "what was cancelled with its run is 422 interrupt_cancelled", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		p.ok(p.post(at(id)+"/cancel", object{}), 200, "")
		p.becomes(id, "cancelled")
		p.refuses(p.resolve(id, node, accept), []int{422}, "interrupt_cancelled")
	}),

	must("v1.interrupt.correlation", v1Interrupt, "another event than the one waited for is 422 or 400; the right one may hold more", func(p *probe) {
		id, node := p.waiting(external, "waiting-external")
		want := parts(member(p.snapshot(id).obj()["interrupt"], "data", "correlation"))
		p.want(len(want) > 0, "interrupt.data has no correlation")
		right, wrong := object{"conformanceMore": 1}, object{}
		for k, v := range want {
			right[k], wrong[k] = v, "conformance-another"
		}
		p.refuses(p.resolve(id, node, wrong), []int{422, 400})
		p.refuses(p.resolve(id, node, object{}), []int{422, 400})
		p.want(p.snapshot(id).str("status") == "waiting-external", "the run is %s", p.snapshot(id).str("status"))
		p.ok(p.resolve(id, node, right), 200, "")
		p.becomes(id, "completed")
	}),

	must("v1.interrupt.actions", v1Interrupt, "ask keeps the gate open, and edit means edit-accept", func(p *probe) {
		id, node := p.waiting(actions, "waiting-approval")
		p.ok(p.resolve(id, node, object{"action": "ask", "question": "why?"}), 200, "")
		p.want(p.snapshot(id).str("status") == "waiting-approval", "after a question the run is %s", p.snapshot(id).str("status"))
		p.ok(p.resolve(id, node, object{"action": "edit", "editedArtifactData": object{"n": 1}}), 200, "")
		p.becomes(id, "completed")
		var acts []string
		for _, e := range p.log(id) {
			if e.Type == "approval.received" {
				acts = append(acts, text(e.field("action")))
			}
		}
		p.want(slices.Contains(acts, "edit-accept") && !slices.Contains(acts, "edit"), "received were %v", acts)
	}),

	must("v1.interrupt.quorum", v1Interrupt, "a vote that is not enough is 200 and the run waits on; one voter has one vote", func(p *probe) {
		id, node := p.waiting(quorum, "waiting-approval")
		for range 3 {
			p.ok(p.resolve(id, node, object{"action": "accept", "voter": "conformance-one"}), 200, "")
			p.want(p.snapshot(id).str("status") == "waiting-approval", "after one voter's vote the run is %s", p.snapshot(id).str("status"))
		}
	}),
}

// offered is the token in a run's snapshot.
func (p *probe) offered(id string) string {
	t := text(member(p.snapshot(id).obj()["interrupt"], "interruptToken"))
	p.want(t != "", "the snapshot of a run that waits has no interruptToken")
	return t
}

// openly asks with nothing but the token in the path.
func (p *probe) openly(method, token string, body any) answer {
	return p.do(method, "/interrupts/"+token, body, "Authorization", "")
}

var v1TokenChecks = []check{
	must("v1.token.form", v1Interrupt+" §Tokens", "a token is two parts in base64url, says what it is for, and lives half an hour at most", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		head, sum, ok := strings.Cut(p.offered(id), ".")
		doc, errA := base64.RawURLEncoding.DecodeString(head)
		mac, errB := base64.RawURLEncoding.DecodeString(sum)
		p.want(ok && errA == nil && errB == nil && len(mac) == 32, "the token is not base64url(payload).base64url(HMAC-SHA256)")
		p.want(text(member(doc, "runId")) == id && text(member(doc, "nodeId")) == node && text(member(doc, "interruptId")) != "", "the token is for %s", doc)
		p.want(slices.Contains([]string{"resolve", "inspect"}, text(member(doc, "intent"))), "the token's intent is %s", member(doc, "intent"))
		end := whole(member(doc, "expiresAt"))
		at := time.Unix(end, 0)
		switch {
		case end < 0:
			at = p.moment(member(doc, "expiresAt"), "expiresAt")
		case end > 1e11:
			at = time.UnixMilli(end)
		}
		left := time.Until(at)
		p.want(left > 0 && left <= 31*time.Minute, "the token ends in %s", left)
	}),

	must("v1.token.look", v1Interrupt+" §Tokens", "a token shows what is asked, without a credential, until when, and that it is open", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		a := p.ok(p.openly("GET", p.offered(id), nil), 200, "")
		m := a.obj()
		p.want(a.str("kind") == "approval" && len(parts(m["data"])) > 0, "the answer is %.300s", a.body)
		p.want(string(m["resolved"]) == "false", "resolved is %s", m["resolved"])
		p.moment(m["expiresAt"], "expiresAt")
	}),

	must("v1.token.answer", v1Interrupt+" §Tokens", "a token answers without a credential, once", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		token := p.offered(id)
		p.refuses(p.openly("POST", token, object{"resumeValue": object{"action": "dance"}}), []int{400}, "validation_error")
		a := p.ok(p.openly("POST", token, object{"resumeValue": accept}), 200, "")
		p.want(a.str("runId") == id && a.str("nodeId") == node && a.str("status") != "", "the answer is %s", a.body)
		p.becomes(id, "completed")
		p.refuses(p.openly("POST", token, object{"resumeValue": accept}), []int{409}, "interrupt_already_resolved")
	}),

	must("v1.token.answered-elsewhere", v1Interrupt+" §Tokens", "what was answered by way of the run is answered for its token too", func(p *probe) {
		id, node := p.waiting(approval, "waiting-approval")
		token := p.offered(id)
		p.ok(p.resolve(id, node, accept), 200, "")
		p.becomes(id, "completed")
		p.refuses(p.openly("POST", token, object{"resumeValue": accept}), []int{409}, "interrupt_already_resolved")
	}),

	must("v1.token.cancelled", v1Interrupt+" §Tokens", "the token of a run that was cancelled is gone", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		token := p.offered(id)
		p.ok(p.post(at(id)+"/cancel", object{}), 200, "")
		p.becomes(id, "cancelled")
		p.refuses(p.openly("POST", token, object{"resumeValue": accept}), []int{410, 409, 404}, "interrupt_gone", "interrupt_already_resolved", "interrupt_not_found", "interrupt_expired")
	}),

	must("v1.token.forged", v1Interrupt+" §Tokens", "a token that the host has not made opens nothing", func(p *probe) {
		id, _ := p.waiting(approval, "waiting-approval")
		token := p.offered(id)
		head, sum, _ := strings.Cut(token, ".")
		doc, _ := base64.RawURLEncoding.DecodeString(head)
		var m map[string]any
		_ = json.Unmarshal(doc, &m)
		m["expiresAt"] = "2099-01-01T00:00:00Z"
		other := base64.RawURLEncoding.EncodeToString([]byte(show(m)))
		for _, bad := range []string{other + "." + sum, head + "." + strings.Repeat("A", len(sum)), head + ".", "conformance", head} {
			for _, a := range []answer{p.openly("GET", bad, nil), p.openly("POST", bad, object{"resumeValue": accept})} {
				p.refuses(a, []int{400, 401, 403, 404})
			}
		}
		p.want(p.snapshot(id).str("status") == "waiting-approval", "the run is %s", p.snapshot(id).str("status"))
	}),

	must("v1.token.either-major", "v2 versioning.md §5", "a token of one major is good on the paths of the other", func(p *probe) {
		now := p.younger()
		id, _ := p.waiting(approval, "waiting-approval")
		a := now.do("POST", "/interrupts/"+p.offered(id), object{"resumeValue": object{"action": "accept", "decidedAt": time.Now().UTC().Format(time.RFC3339)}}, "Authorization", "")
		p.want(a.status == 200, "under version 2 a token of version 1: %s", a.brief())
		p.becomes(id, "completed")
	}),
}

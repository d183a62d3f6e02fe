package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	seamsProfile = "openwop-conformance-seams-v2"
	seedSeam     = "/conformance/seams/sample/event-log/seed"
	fireSeam     = "/conformance/seams/sample/effect-seams/fire"
	retrySeam    = "/conformance/seams/sample/test/idempotency/effect-retry"
	receiveSeam  = "/conformance/seams/sample/webhooks/receive"
	legacyIssuer = "urn:openwop:legacy"
)

var seamChecks = []check{
	must("seams.effect-retry", "idempotency.md §Layer 2", "every attempt of one effect presents the same key, on the wire and in the ledger", func(p *probe) {
		p.mounted()
		r := p.receive(func(n int) int {
			if n == 1 {
				return cutOff
			}
			return 200
		})
		a := p.seam(retrySeam, object{"providerUrl": r.url}, 201)
		id, effectID := a.str("runId"), a.str("effectId")
		var keys []string
		for _, e := range p.effects(id) {
			if e.EffectID == effectID {
				p.want(e.ProviderKey != nil && *e.ProviderKey != "", "attempt %d records no key", e.Attempt)
				keys = append(keys, *e.ProviderKey)
			}
		}
		if len(keys) < 2 {
			p.blocked("the ledger has %d attempts of the effect, two are needed", len(keys))
		}
		for wait := 0; len(r.all()) < 2 && wait < 100 && p.pause(50*time.Millisecond); wait++ {
		}
		p.pause(200 * time.Millisecond) // for a call too many
		wire := r.all()
		p.want(len(wire) == len(keys), "the provider was called %d times, the ledger lists %d attempts", len(wire), len(keys))
		for _, d := range wire {
			keys = append(keys, d.header.Get(keyHeader))
		}
		for _, k := range keys {
			p.want(k == keys[0], "the attempts have the keys %v", keys)
		}
	}).gated("conformance", "idempotency").floor("v2-effect-identity-business-key", "openwop.requirement.0173.effect-identity-business-key.retry"),

	must("seams.no-refire", "replay.md §Suppression", "a replay fires no guarded seam again", func(p *probe) {
		p.mounted()
		src, guarded := "", false
		for _, r := range p.seams() {
			if !r.Guarded {
				continue
			}
			// A host need not be able to fire each: what no node passes by itself, it cannot.
			guarded = true
			if a := p.post(fireSeam, object{"seam": r.Seam}); a.status == 201 {
				src = p.owned(a).str("runId")
				break
			}
		}
		switch {
		case !guarded:
			p.inapplicable("no seam of the manifest is guarded")
		case src == "":
			p.blocked("the host can fire none of the seams it lists")
		}
		p.ended(src)
		fired := map[string]bool{}
		for _, e := range p.effects(src) {
			fired[fmt.Sprint(e.NodeID, e.Attempt, e.At)] = true
		}
		if len(fired) == 0 {
			p.blocked("the ledger of the run that fired the seam is empty: nothing to compare with")
		}
		fork := p.fork(src, object{"mode": "replay"})
		if fork.status != 201 {
			p.blocked("the run that fired the seam cannot be forked: %s", fork.brief())
		}
		p.ended(fork.str("runId"))
		for _, e := range p.effects(fork.str("runId")) {
			p.want(fired[fmt.Sprint(e.NodeID, e.Attempt, e.At)], "the replay made an attempt of its own at %s", e.NodeID)
		}
	}).gated("conformance", "replay").floor("v2-effect-seam-no-refire", "openwop.requirement.0173.effect-seam-no-refire"),

	must("seams.v1-webhook", "webhooks.md §Dual emission through the overlap", "a delivery with the v1 headers alone is verified: the right signature taken, a wrong one refused", func(p *probe) {
		p.mounted()
		const secret, body = "conformance-secret-0123456789abcdef", `{"runId":"conformance","event":{"type":"run.completed","sequence":3,"payload":{}}}`
		stamp := fmt.Sprint(time.Now().Unix())
		good := mac(secret, stamp, []byte(body))
		bad := strings.Map(func(r rune) rune { return map[bool]rune{true: '1', false: '0'}[r == '0'] }, good)
		for sig, want := range map[string]string{good: "true", bad: "false"} {
			a := p.seam(receiveSeam, object{"secret": secret, "body": body, "headers": object{
				"X-openwop-Webhook-Id": "conformance", "X-openwop-Event-Type": "run.completed", "X-openwop-Timestamp": stamp,
				"X-openwop-Signature": "sha256=" + sig, "X-openwop-Signature-Algorithm": "v1"}}, 200)
			p.want(string(a.obj()["accepted"]) == want, "a right signature is %v, accepted is %s", sig == good, a.obj()["accepted"])
		}
	}).gated("conformance", "webhooks").floor("v2-v1-signed-webhook-accepted", "openwop.requirement.0176.v1-signed-webhook-accepted"),

	must("seams.fork-v1", "replay.md §Forking a v1 run; identity.md §1.2", "a run of the era of v1 is forked: the translated prefix, and the legacy subject", func(p *probe) {
		p.mounted()
		p.offers("replay")
		src := p.seam(seedSeam, object{"eventLogSchemaVersion": 2, "status": "completed", "events": v1Log}, 201).str("runId")
		log := p.log(src)
		p.want(len(log) == len(v1Log), "the seeded run has %d events, %d were given", len(log), len(v1Log))
		p.want(log[1].Type == "run.resume-started", "run.resuming of v1 reads as %s", log[1].Type)
		fork := p.fork(src, object{"mode": "replay", "fromSeq": len(v1Log) - 1})
		p.want(fork.status == 201, "the run of v1 is not forked: %s", fork.brief())
		forked := p.log(fork.str("runId"))
		p.want(len(forked) >= len(v1Log)-1, "the fork has %d events", len(forked))
		for i := range len(v1Log) - 1 {
			equal := forked[i].Type == log[i].Type && same(forked[i].Payload, log[i].Payload)
			p.want(equal, "event %d: %s %s in the source, %s %s in the fork", i, log[i].Type, log[i].Payload, forked[i].Type, forked[i].Payload)
		}
		for _, e := range []event{log[0], forked[0]} {
			issuer := text(member(e.Payload, "owner", "subject", "issuer"))
			p.want(issuer == legacyIssuer, "the subject's issuer is %q", issuer)
		}
	}).gated("conformance", "replay").floor("v2-fork-a-v1-run", "openwop.requirement.0176.fork-a-v1-run.prefix"),
}

// v1Log is a small log in the words of v1.
var v1Log = []object{
	{"type": "run.started", "sequence": 0, "payload": object{"workflowId": "conformance-noop"}},
	{"type": "run.resuming", "sequence": 1, "payload": object{}},
	{"type": "node.started", "sequence": 2, "payload": object{"nodeId": "noop", "typeId": "core.noop"}},
	{"type": "node.completed", "sequence": 3, "payload": object{"nodeId": "noop", "outputs": object{}}},
	{"type": "run.completed", "sequence": 4, "payload": object{"outputs": object{}}},
}

// mounted makes a check inapplicable unless discovery names the profile.
func (p *probe) mounted() {
	var profile string
	if p.s.facet(&profile, "conformance", "seamsProfile"); profile != seamsProfile {
		p.inapplicable("discovery does not name the profile %s", seamsProfile)
	}
}

// seam drives a seam; one that is not there blocks the check, for the host says
// that it is.
func (p *probe) seam(path string, body any, status int) answer {
	a := p.post(path, body)
	if a.status != status || !json.Valid(a.body) {
		p.blocked("the seam %s answered %s", path, a.brief())
	}
	return p.owned(a)
}

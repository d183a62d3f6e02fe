package conformance

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/fermata-run/fermata/schema"
)

var boundID = regexp.MustCompile(`^(anon:)?[A-Za-z0-9._~-]{1,128}/[A-Za-z0-9._~-]{16,128}$`)

var identityChecks = []check{
	must("identity.run-id", "identity.md §5", "a minted run id is tenant-bound and holds no tilde", func(p *probe) {
		id := p.over("completed")
		p.want(boundID.MatchString(id), "the run id %q does not fit the grammar", id)
		p.want(!strings.Contains(id, "~"), "the minted run id %q holds a tilde", id)
	}),

	must("identity.foreign-tenant", "runs.md §Identity; identity.md §5", "a run id of another tenant is refused on every operation", func(p *probe) {
		for _, a := range p.onRun(foreignRun) {
			p.refused(a, 403, "id_tenant_mismatch")
		}
	}),

	must("identity.no-oracle", "runs.md §Identity", "the refusal does not tell whether the foreign run exists", func(p *probe) {
		id := foreignRun
		if p.s.cfg.OtherAPIKey != "" {
			id = p.otherRun()
		}
		a, b := p.onRun(id), p.onRun(foreignRun[:len(foreignRun)-3]+"two")
		for i := range a {
			p.want(a[i].status == b[i].status && a[i].code() == b[i].code(), "%s: %s and %s", a[i].line(), a[i].brief(), b[i].brief())
		}
	}),

	must("identity.second-tenant", "runs.md §Identity, §List; identity.md §5", "an existing run of another tenant is out of reach and in no list", func(p *probe) {
		id := p.otherRun()
		for _, a := range p.onRun(id) {
			p.refused(a, 403, "id_tenant_mismatch")
		}
		a := p.get("/runs")
		p.want(!strings.Contains(string(a.body), `"`+id+`"`), "the list shows a run of another tenant")
	}),

	must("identity.both-spellings", "identity.md §5", "a tenant-bound id is accepted projected and percent-encoded", func(p *probe) {
		id := p.over("completed")
		for _, s := range []string{segment(id), url.PathEscape(id), strings.ReplaceAll(url.PathEscape(id), "%2F", "%2f")} {
			for _, path := range []string{"", "/events/poll"} {
				a := p.get("/runs/" + s + path)
				p.want(a.status == 200, "%s answered %s", a.line(), a.brief())
				p.want(a.str("runId") == id, "%s answered the run id %q", a.line(), a.str("runId"))
			}
		}
	}),

	must("identity.links", "identity.md §5", "links carry the id projected, once", func(p *probe) {
		a := p.create(p.workflow(noop))
		p.ok(a, 201, "")
		for _, name := range []string{"eventsUrl", "statusUrl"} {
			link := a.str(name)
			p.want(link == "" && name == "statusUrl" || strings.Contains(link, "/runs/"+segment(a.str("runId"))), "%s is %q", name, link)
		}
	}),

	must("identity.bare-id", "identity.md §5", "once no 1.x version is served, an id without its tenant is a validation_error", func(p *probe) {
		for _, m := range majors(p.s.host.ProtocolVersions) {
			if m == "1" {
				p.inapplicable("the host still serves major 1")
			}
		}
		_, opaque, _ := strings.Cut(p.over("completed"), "/")
		for _, a := range p.onRun(opaque) {
			p.refused(a, 400, "validation_error")
		}
	}),

	must("identity.owner", "identity.md §1.1; runs.md §Snapshot", "the owner is a tenant and a subject, closed, and the tenant is the id's", func(p *probe) {
		id := p.over("completed")
		owner := p.snapshot(id).obj()["owner"]
		p.valid("owner", owner, "owner")
		tenant, _, _ := strings.Cut(id, "/")
		p.want(text(member(owner, "tenant")) == tenant, "the run %s is owned by the tenant %s", id, member(owner, "tenant"))
		p.want(text(member(owner, "subject", "tenant")) == tenant, "the subject is of the tenant %s", member(owner, "subject", "tenant"))
		anonymous := text(member(owner, "subject", "kind")) == "anonymous"
		p.want(anonymous == (text(member(owner, "subject", "lane")) == "anonymous"), "kind and lane disagree on anonymous: %s", owner)
	}),

	must("identity.owner-echo", "identity.md §1.1; runs.md §The start event", "run.started echoes the owner of the snapshot", func(p *probe) {
		id := p.over("completed")
		started, ok := find(p.log(id), "run.started")
		p.want(ok, "the log has no run.started")
		owner := p.snapshot(id).obj()["owner"]
		p.want(same(started.field("owner"), owner), "run.started has the owner %s, the snapshot %s", started.field("owner"), owner)
	}),

	must("identity.lanes", "identity.md §2", "each advertised lane names its issuers, a revocation rule of its own and its assurance", func(p *probe) {
		var lanes []struct {
			Lane, Revocation, MinimumAssurance string
			Issuers                            []string
			RevocationWindowSeconds            int
		}
		if !p.s.facet(&lanes, "auth", "lanes") {
			p.inapplicable("discovery advertises no lanes")
		}
		rules := map[string]string{"api-key": "next-request", "session": "next-request", "oauth2": "exp-and-recheck exp-only",
			"oidc": "exp-and-recheck exp-only", "mtls": "crl ocsp short-lived", "saml": "not-on-or-after", "scim": "bound-connection",
			"ldap": "rebind", "workload": "delegation-expiry"}
		for _, l := range lanes {
			p.want(len(l.Issuers) > 0, "the lane %s names no issuer", l.Lane)
			rule, known := rules[l.Lane]
			p.want(!known || strings.Contains(" "+rule+" ", " "+l.Revocation+" "), "the lane %s has the revocation rule %q", l.Lane, l.Revocation)
			windowed := strings.Contains(" exp-and-recheck exp-only short-lived rebind ", " "+l.Revocation+" ")
			p.want(!windowed || l.RevocationWindowSeconds > 0, "the lane %s needs a revocation window", l.Lane)
		}
	}).gated("auth"),

	must("identity.event-ids", "identity.md §5", "the ids in events fit their grammars", func(p *probe) {
		for _, e := range p.log(p.over("approved")) {
			quoted, _ := json.Marshal(e.EventID)
			if err := schema.ValidateDef("ids", "eventId", quoted); err != nil {
				p.fail("event %d: the id %q: %v", e.Sequence, e.EventID, err)
			}
			p.want(boundID.MatchString(e.RunID), "event %d: the run id %q", e.Sequence, e.RunID)
			if e.Type == "node.suspended" || e.Type == "interrupt.resolved" {
				iid := text(e.field("interruptId"))
				p.want(boundID.MatchString(iid), "event %d: the interrupt id %q", e.Sequence, iid)
			}
		}
	}),
}

// otherRun creates a run of the second tenant.
func (p *probe) otherRun() string {
	key := p.s.cfg.OtherAPIKey
	if key == "" {
		p.blocked("a key of a second tenant is needed, and none was given")
	}
	wf := standard[noop]
	a := p.post("/runs", object{"workflowId": wf}, "Authorization", "Bearer "+key)
	if a.status == 404 {
		def := definitions[noop]("")
		def["id"] = wf
		p.do("PUT", "/host/fermata/workflows/"+wf, def, "Authorization", "Bearer "+key)
		a = p.post("/runs", object{"workflowId": wf}, "Authorization", "Bearer "+key)
	}
	id := a.str("runId")
	if a.status != 201 {
		p.blocked("the second tenant could not create a run: %s", a.brief())
	}
	mine, _, _ := strings.Cut(p.over("completed"), "/")
	if theirs, _, _ := strings.Cut(id, "/"); theirs == mine {
		p.blocked("both keys belong to the tenant %s", mine)
	}
	return id
}

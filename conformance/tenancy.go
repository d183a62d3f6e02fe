package conformance

import (
	"encoding/json"
	"slices"
	"strings"
)

// tenancyChecks hold that a second tenant learns nothing of the first, by whatever
// way it asks. Most need its key (Config.OtherAPIKey).
var tenancyChecks = []check{
	must("tenancy.bytes", "identity.md §5", "the refusal of a foreign run is the same, to the byte and in its headers, whether the run exists or not", func(p *probe) {
		id := p.otherRun()
		tenant, _, _ := strings.Cut(id, "/")
		a, b := p.onRun(id), p.onRun(tenant+"/conformance0unknown0run")
		for i := range a {
			p.want(a[i].status == b[i].status && string(a[i].body) == string(b[i].body), "%s: %s and %s", a[i].line(), a[i].brief(), b[i].brief())
			for name := range a[i].header {
				p.want(name == "Date" || slices.Equal(a[i].header[name], b[i].header[name]), "%s: the header %s is %q and %q", a[i].line(), name,
					a[i].header[name], b[i].header[name])
			}
			p.want(len(a[i].header) == len(b[i].header), "%s: %d headers and %d", a[i].line(), len(a[i].header), len(b[i].header))
		}
	}),

	must("tenancy.bulk", "runs.md §Bulk cancel; identity.md §5", "a foreign run in a bulk cancel fails by itself with id_tenant_mismatch", func(p *probe) {
		id := p.otherRun()
		tenant, _, _ := strings.Cut(id, "/")
		a := p.ok(p.post("/runs:bulk-cancel", object{"runIds": []string{id, tenant + "/conformance0unknown0run"}}), 200, "bulk-cancel-response")
		var results []json.RawMessage
		_ = json.Unmarshal(member(a.body, "results"), &results)
		p.want(len(results) == 2, "two ids have %d results", len(results))
		for _, r := range results {
			code := text(member(r, "error", "error"))
			p.want(code == "id_tenant_mismatch", "the entry of %s has the code %q", member(r, "runId"), code)
		}
	}),

	must("tenancy.create", "runs.md §Create; identity.md §5", "a run cannot be created in another tenant by naming it", func(p *probe) {
		tenant, _, _ := strings.Cut(p.otherRun(), "/")
		p.refused(p.create(p.workflow(noop), object{"tenantId": tenant}), 403, "id_tenant_mismatch")
	}),

	must("tenancy.cursor", "runs.md §List", "a cursor of one tenant's list shows another tenant nothing of it", func(p *probe) {
		p.otherRun()
		mine, _, _ := strings.Cut(p.over("completed"), "/")
		p.over("cancelled")
		cursor := p.get("/runs?limit=1").str("nextCursor")
		p.want(cursor != "", "a list of two runs and more has no second page")
		a := p.get("/runs?cursor="+cursor, "Authorization", "Bearer "+p.s.cfg.OtherAPIKey)
		p.want(a.status == 200 || a.status == 400, "%s answered %s", a.line(), a.brief())
		p.want(!strings.Contains(string(a.body), `"`+mine+`/`), "the second tenant's list shows a run of the first")
	}),

	must("tenancy.request-keys", "idempotency.md §Layer 1", "two tenants may use one Idempotency-Key; neither gets the other's answer", func(p *probe) {
		p.otherRun()
		key, wf := nonce(), p.workflow(noop)
		a := p.ok(p.owned(p.post("/runs", object{"workflowId": wf}, "Idempotency-Key", key)), 201, "create-run-response")
		b := p.post("/runs", object{"workflowId": wf}, "Idempotency-Key", key, "Authorization", "Bearer "+p.s.cfg.OtherAPIKey)
		p.want(b.status == 201 || b.status == 404, "%s answered %s", b.line(), b.brief())
		mine, _, _ := strings.Cut(a.str("runId"), "/")
		p.want(!strings.Contains(string(b.body), mine+"/"), "the second tenant was answered %s", b.body)
	}),

	must("tenancy.id-tricks", "identity.md §5", "no other way of writing a run id reaches the run", func(p *probe) {
		tenant, opaque, _ := strings.Cut(p.over("completed"), "/")
		for _, s := range []string{
			"..~2F" + opaque, "%2e%2e%2F" + opaque, tenant + "%252F" + opaque, tenant + "~252F" + opaque, tenant + "~7E2F" + opaque,
			tenant + "~2f" + opaque, tenant + "~5C" + opaque, tenant + "~2F~2F" + opaque, tenant + "~2F" + opaque + "%00", tenant + "~2F" + opaque + "%2F..",
			"~2F" + opaque, tenant + "~2F" + strings.Repeat("a", 129), strings.Repeat("t", 129) + "~2F" + opaque, strings.ToUpper(tenant) + "~2F" + opaque,
			"anon:" + tenant + "~2F" + opaque,
		} {
			a := p.get("/runs/" + s)
			p.want(a.status == 400 || a.status == 403 || a.status == 404, "%s answered %s", a.line(), a.brief())
			p.want(a.code() != "", "%s is refused without a code", a.line())
		}
	}),

	must("identity.roles", "identity.md §2.1", "authorization fails closed, and each role of the catalogue has a name and its scopes", func(p *probe) {
		var closed bool
		if !p.s.facet(&closed, "authorization", "failClosed") {
			p.inapplicable("discovery advertises no authorization")
		}
		p.want(closed, "failClosed is not true")
		var roles []struct {
			Role   string
			Scopes []string
		}
		p.s.facet(&roles, "authorization", "roles")
		seen := map[string]bool{}
		for _, r := range roles {
			p.want(r.Role != "" && r.Scopes != nil && !seen[r.Role], "the role %q has the scopes %v", r.Role, r.Scopes)
			seen[r.Role] = true
		}
	}).gated("authorization"),
}

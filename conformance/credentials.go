package conformance

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// materialMark begins every secret of this section, so that one can be looked for
// wherever it turns up.
const materialMark = "conformance-material-"

const credentialsPath = "/host/fermata/credentials"

type credentialKept struct{ ref, material string }

// keepsCredential has a credential kept for the hosts given, until the check is over.
func (p *probe) keepsCredential(r *receiver, audiences ...string) credentialKept {
	k := credentialKept{material: materialMark + nonce()}
	a := p.post(credentialsPath, object{"secret": k.material, "audiences": audiences, "name": "conformance"})
	if a.status == 404 || a.status == 405 {
		p.blocked("the host has no way to be given a credential that the suite knows")
	}
	p.want(a.status == 201 && a.str("ref") != "", "%s answered %s", a.line(), a.brief())
	k.ref = a.str("ref")
	r.after(func(p *probe) { p.do("DELETE", credentialsPath+"/"+k.ref, nil) })
	p.withheld(a.body, "the answer that takes a credential")
	return k
}

// withheld wants no material in what the host has said.
func (p *probe) withheld(b []byte, what string) {
	p.want(!containsText(b, materialMark), "%s holds the material", what)
}

// presents runs a workflow whose one node calls the receiver with a credential.
func (p *probe) presents(r *receiver, ref string) string {
	id := "conformance-own-credential-" + nonce()
	n := step("call", "core.http.request", object{"method": "POST", "body": object{}, "url": r.url, "credential": object{"ref": ref}})
	def := flow(id, []any{n}, []any{})
	def["id"] = id
	a := p.do("PUT", "/host/fermata/workflows/"+id, def)
	if a.status != 200 && a.status != 201 {
		p.blocked("the host does not take a workflow that names a credential: %s", a.brief())
	}
	r.after(func(p *probe) { p.do("DELETE", "/host/fermata/workflows/"+id, nil) })
	return p.startOf(id)
}

// egress are the egress decisions of a run.
func (p *probe) egress(id string) (out []string) {
	for _, e := range p.log(id) {
		if e.Type == "egress.decided" {
			var d struct{ Decision, Reason, Destination, CredentialID string }
			_ = json.Unmarshal(e.Payload, &d)
			out = append(out, d.Decision+" "+d.Reason)
			p.want(!strings.ContainsAny(d.Destination, "/?@"), "a decision names more than a host: %s", e.Payload)
		}
	}
	return out
}

func hostIn(r *receiver) string {
	u, err := url.Parse(r.url)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

var credentialChecks = []check{
	must("credentials.advertised", "oauth.md §Credentials", "the scopes are those of references, and the rotation is a known one", func(p *probe) {
		var rec struct {
			Scopes   []string
			Rotation string
		}
		p.s.facet(&rec, "credentials")
		p.want(len(rec.Scopes) > 0, "no scope is advertised")
		for i, s := range rec.Scopes {
			p.want(slices.Contains([]string{"user", "workspace", "tenant"}, s) && !slices.Contains(rec.Scopes[:i], s), "the scopes are %v", rec.Scopes)
		}
		p.want(slices.Contains([]string{"", "none", "two-key-overlap"}, rec.Rotation), "the rotation is %q", rec.Rotation)
	}).gated("credentials"),

	must("credentials.write-only", "oauth.md §Credentials", "material that was given is never shown", func(p *probe) {
		r := p.receive(nil)
		k := p.keepsCredential(r, "api.example.com")
		for _, path := range []string{credentialsPath, credentialsPath + "/" + k.ref} {
			a := p.ok(p.get(path), 200, "")
			p.want(containsText(a.body, k.ref), "%s does not list what was kept", path)
			p.withheld(a.body, path)
		}
	}).gated("credentials"),

	must("credentials.redacted", "oauth.md §Credentials", "a node presents the material, and nothing of the run shows it", func(p *probe) {
		r := p.receive(nil)
		k := p.keepsCredential(r, hostIn(r))
		id := p.presents(r, k.ref)
		p.called(r, id)
		got := r.all()
		p.want(len(got) == 1 && got[0].header.Get("Authorization") == "Bearer "+k.material, "the receiver was not shown the credential")
		for _, path := range []string{at(id), at(id) + "/events/poll?timeout=1", at(id) + "/effects", "/runs?limit=10"} {
			p.withheld(p.ok(p.get(path), 200, "").body, path)
		}
		p.want(fmt.Sprint(p.egress(id)) == "[allowed ok]", "the log says of the call %v, want one decision that allows it", p.egress(id))
	}).gated("credentials"),

	must("credentials.audience", "oauth.md §Credentials", "a credential does not go where it is not meant for, and the log says so", func(p *probe) {
		r := p.receive(nil)
		k := p.keepsCredential(r, "api.example.com")
		id := p.presents(r, k.ref)
		a := p.ended(id)
		p.want(a.str("status") == "failed" && containsText(a.body, "egress_denied"), "the run is %s: %s", a.str("status"), a.obj()["error"])
		p.want(len(r.all()) == 0, "the receiver was called %d times", len(r.all()))
		if fmt.Sprint(p.egress(id)) == "[denied ssrf-blocked]" {
			p.blocked("the host does not call the suite's receiver, whatever the credential says")
		}
		p.want(fmt.Sprint(p.egress(id)) == "[denied out-of-audience]", "the log says %v", p.egress(id))
	}).gated("credentials"),

	must("credentials.absent", "oauth.md §Credentials", "a reference that resolves to nothing fails the node", func(p *probe) {
		r := p.receive(nil)
		a := p.ended(p.presents(r, "cred_"+nonce()))
		p.want(a.str("status") == "failed" && containsText(a.body, `"credential_not_found"`), "the run is %s: %s", a.str("status"), a.obj()["error"])
		p.want(len(r.all()) == 0, "the receiver was called")
	}).gated("credentials"),
}

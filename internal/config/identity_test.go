package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sound = `
allow: [127.0.0.0/8]
oidc:
  audience: https://h.example/api
  revocation: exp-and-recheck
  revocation-window: 5m
  minimum-assurance: sender-constrained
  clock-skew: 10s
  issuers:
    - issuer: https://idp.example
      tenant-claim: org
      tenants: {org-1: acme}
      groups-claim: groups
      introspection: {url: "https://idp.example/introspect", client-id: fermata, client-secret-file: secret}
mtls:
  revocation: crl
  crl: [lists/one.pem]
  clients:
    - {san: "dns:worker.example", tenant: acme, scopes: ["runs:read"]}
`

func identityOf(t *testing.T, text string, env map[string]string) (Config, string, error) {
	t.Helper()
	s := setup{scope: ServeOnly, env: map[string]string{
		"FERMATA_IDENTITY": "HOME/etc/identity.yaml", "FERMATA_TLS_CERT": "HOME/cert", "FERMATA_TLS_KEY": "HOME/key", "FERMATA_TLS_CLIENT_CA": "HOME/ca",
	}, files: map[string]string{"etc/identity.yaml": text, "etc/secret": "s3cret\n", "ca": "an authority"}}
	for k, v := range env {
		s.env[k] = v
	}
	c, _, home, err := s.load(t)
	return c, home, err
}

func TestTheFileOfIdentity(t *testing.T) {
	c, home, err := identityOf(t, sound, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := c.Lanes
	if l.OAuth2 != nil || l.OIDC.Window != 5*time.Minute || l.OIDC.Skew != 10*time.Second || l.OIDC.MinimumAssurance != "sender-constrained" {
		t.Errorf("%+v", l.OIDC)
	}
	i := l.OIDC.Issuers[0]
	if i.Tenants["org-1"] != "acme" || i.Introspection.Secret != "s3cret" || i.Introspection.ClientID != "fermata" {
		t.Errorf("%+v %+v", i, i.Introspection)
	}
	if l.MTLS.CRL[0] != filepath.Join(home, "etc", "lists", "one.pem") || string(l.MTLS.CA) != "an authority" || l.MTLS.Clients[0].SAN != "dns:worker.example" {
		t.Errorf("%+v", l.MTLS)
	}
	if r := Relaxations(c); len(r) != 0 {
		t.Errorf("an issuer of one's own, over TLS, is a relaxation: %+v", r)
	}
	var secrets strings.Builder
	for _, line := range Describe(c, Sources{}) {
		secrets.WriteString(line.Value)
	}
	if strings.Contains(secrets.String(), "s3cret") {
		t.Error("a secret is shown")
	}
	if c, _, err := identityOf(t, "", nil); err != nil || c.Lanes.OIDC != nil || c.Lanes.MTLS != nil {
		t.Errorf("an empty file: %+v, %v", c.Lanes, err)
	}
}

// A slip in this file could let somebody in: none is passed over.
func TestSlipsInTheFileOfIdentity(t *testing.T) {
	for name, x := range map[string]struct {
		text string
		env  map[string]string
		want string
	}{
		"an unknown member":   {strings.Replace(sound, "tenant-claim", "tenant_claim", 1), nil, "oidc.issuers.0.tenant_claim: there is no such member"},
		"an unknown lane":     {"saml: {}", nil, "saml: there is no such member"},
		"another kind":        {strings.Replace(sound, "5m", "[5]", 1), nil, "oidc.revocation-window: is not a value of its kind"},
		"no unit":             {strings.Replace(sound, "5m", "300", 1), nil, "oidc.revocation-window: is not a value of its kind"},
		"a member twice":      {sound + "allow: [10.0.0.0/8]\n", nil, "already"},
		"no YAML":             {"oidc: [", nil, "identity: "},
		"two documents":       {sound + "---\n{}\n", nil, "more than one document"},
		"no secret":           {strings.Replace(sound, ": secret", ": nowhere", 1), nil, "oidc: client-secret-file"},
		"mtls without TLS":    {sound, map[string]string{"FERMATA_TLS_CLIENT_CA": ""}, "mtls: client certificates need"},
		"open in production":  {strings.Replace(sound, "issuer: https://idp.example", "issuer: http://127.0.0.1:9", 1), map[string]string{"FERMATA_MODE": "production"}, "production"},
		"a range with an end": {"allow: [127.0.0.1-9]", nil, "allow.0: is not a value of its kind"},
	} {
		_, _, err := identityOf(t, x.text, x.env)
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: want %q, got %v", name, x.want, err)
		}
	}
	_, _, err := identityOf(t, sound, map[string]string{"FERMATA_IDENTITY": filepath.Join(os.TempDir(), "fermata-no-such-file")})
	if err == nil || !strings.Contains(err.Error(), "from the environment FERMATA_IDENTITY") {
		t.Errorf("no file: %v", err)
	}
}

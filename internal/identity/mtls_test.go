package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/identity/idptest"
	"github.com/fermata-run/fermata/internal/problem"
)

// ca is an authority of a test.
type ca struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newCA(t testing.TB, name string, now time.Time) *ca {
	t.Helper()
	c := &ca{key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	c.cert = must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, tmpl, tmpl, &c.key.PublicKey, c.key))))
	return c
}

func (c *ca) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
}

// issue makes a certificate of a client.
func (c *ca) issue(now time.Time, change func(*x509.Certificate)) *tls.Certificate {
	c.serial++
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(100 + c.serial), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(59 * time.Minute),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
		DNSNames: []string{"worker.example"},
	}
	if change != nil {
		change(tmpl)
	}
	der := must(x509.CreateCertificate(rand.Reader, tmpl, c.cert, &key.PublicKey, c.key))
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: must(x509.ParseCertificate(der))}
}

// list writes a revocation list.
func (c *ca) list(t testing.TB, file string, number int64, from, to time.Time, revoked ...*tls.Certificate) {
	t.Helper()
	tmpl := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: from, NextUpdate: to}
	for _, r := range revoked {
		tmpl.RevokedCertificateEntries = append(tmpl.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: r.Leaf.SerialNumber, RevocationTime: from})
	}
	der := must(x509.CreateRevocationList(rand.Reader, tmpl, c.cert, c.key))
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	// Whatever the resolution of the file system's clock is, the change shows.
	if err := os.Chtimes(file, time.Time{}, from.Add(time.Duration(number)*time.Second)); err != nil {
		t.Fatal(err)
	}
}

var workers = []identity.Client{
	{SAN: "dns:worker.example", Subject: "worker", Tenant: "acme", Scopes: []string{"runs:read"}, Groups: []string{"ops"}},
	{SAN: "dns:*.agents.example", Tenant: "acme", Kind: "agent"},
	{SAN: "uri:spiffe://example/ns/prod/*", Tenant: "prod"},
	{SAN: "email:ann@example.org", Tenant: "acme", Subject: "ann", Kind: "user"},
}

func certLab(t testing.TB, cfg identity.Certificates) *lab {
	t.Helper()
	l := &lab{t: t, clock: time.Now().Truncate(time.Second)}
	cfg.Clients = workers
	var err error
	l.pipe, err = identity.Build(identity.Config{MTLS: &cfg}, identity.NewAPIKeys(&memory{}).Lane(), outside(), l.now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) certified(certs ...*tls.Certificate) (identity.Caller, error) {
	r := request()
	r.TLS = connection(certs...)
	return l.pipe.Authenticate(r)
}

func TestClientCertificates(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	root := newCA(t, "Test CA, of a test", now)
	l := certLab(t, identity.Certificates{CA: root.pem(), Revocation: identity.ShortLived, Window: time.Hour})
	names := func(dns []string, uris ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.DNSNames = dns
			for _, u := range uris {
				c.URIs = append(c.URIs, must(url.Parse(u)))
			}
		}
	}
	c, err := l.certified(root.issue(now, nil))
	if err != nil || c.Subject.SubjectID != "worker" || c.Subject.Lane != "mtls" || c.Subject.Kind != "workload" || c.Tenant() != "acme" ||
		c.Subject.Issuer != `x509:CN=Test%20CA\,%20of%20a%20test` || c.Assurance != identity.KeyBound || !c.Holds("runs:read") || c.Groups[0] != "ops" {
		t.Errorf("%+v, %v", c, err)
	}
	for name, want := range map[string]struct {
		change  func(*x509.Certificate)
		subject string
	}{
		"a star": {names([]string{"B.agents.example"}), "b.agents.example"},
		"a uri":  {names(nil, "spiffe://example/ns/prod/api"), "spiffe:~2F~2Fexample~2Fns~2Fprod~2Fapi"},
	} {
		c, err := l.certified(root.issue(now, want.change))
		if err != nil || c.Subject.SubjectID != want.subject {
			t.Errorf("%s: %+v, %v", name, c.Subject, err)
		}
	}
	foreign := newCA(t, "Test CA, of a test", now)
	for name, x := range map[string]struct {
		cert *tls.Certificate
		code problem.Code
	}{
		"of an authority of the same name": {foreign.issue(now, nil), problem.IdentityUnverified},
		"over":                             {root.issue(now.Add(-2*time.Hour), nil), problem.IdentityUnverified},
		"not yet":                          {root.issue(now.Add(2*time.Hour), nil), problem.IdentityUnverified},
		"living too long":                  {root.issue(now, func(c *x509.Certificate) { c.NotAfter = now.Add(60 * time.Minute) }), problem.IdentityUnverified},
		"of a server":                      {root.issue(now, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), problem.IdentityUnverified},
		"of nobody who is known":           {root.issue(now, names([]string{"other.example"})), problem.IdentityUnresolvable},
		"a label too many":                 {root.issue(now, names([]string{"a.b.agents.example"})), problem.IdentityUnresolvable},
		"a star itself":                    {root.issue(now, names([]string{"*.agents.example"})), problem.IdentityUnresolvable},
		"a segment too many":               {root.issue(now, names(nil, "spiffe://example/ns/prod/api/x")), problem.IdentityUnresolvable},
		"two clients at once":              {root.issue(now, names([]string{"worker.example", "b.agents.example"})), problem.IdentityUnresolvable},
		"two of a star":                    {root.issue(now, names([]string{"a.agents.example", "b.agents.example"})), problem.IdentityUnresolvable},
		"a common name alone":              {root.issue(now, func(c *x509.Certificate) { c.DNSNames = nil; c.Subject.CommonName = "worker.example" }), problem.IdentityUnresolvable},
	} {
		_, err := l.certified(x.cert)
		refused(t, name, err, x.code)
	}
	// A certificate in a header is none.
	r := request()
	r.Header.Set("X-Forwarded-Client-Cert", string(root.pem()))
	_, err = l.pipe.Authenticate(r)
	refused(t, "in a header", err, problem.Unauthenticated)
	// Beside another credential it does not count: what that says is what holds.
	r = request("Bearer " + identity.Generate())
	r.TLS = connection(root.issue(now, nil))
	_, err = l.pipe.Authenticate(r)
	refused(t, "beside a bad key", err, problem.Unauthenticated)
}

func TestRevocationLists(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	root, other := newCA(t, "one", now), newCA(t, "two", now)
	file := filepath.Join(t.TempDir(), "list.pem")
	good, bad := root.issue(now, nil), root.issue(now, nil)
	root.list(t, file, 1, now.Add(-time.Minute), now.Add(30*time.Minute))
	l := certLab(t, identity.Certificates{CA: append(root.pem(), other.pem()...), Revocation: identity.CRL, CRL: []string{file}})
	for _, c := range []*tls.Certificate{good, bad} {
		if _, err := l.certified(c); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.certified(other.issue(now, nil))
	refused(t, "an authority without a list", err, problem.ServiceUnavailable)

	root.list(t, file, 2, now.Add(-time.Second), now.Add(30*time.Minute), bad)
	l.advance(2 * time.Second)
	_, err = l.certified(bad)
	refused(t, "revoked", err, problem.CredentialRevoked)
	if _, err := l.certified(good); err != nil {
		t.Errorf("another one: %v", err)
	}
	// A file that cannot be read changes nothing, until the lists are out of date.
	if err := os.WriteFile(file, []byte("not a list"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.advance(2 * time.Second)
	_, err = l.certified(bad)
	refused(t, "revoked, behind a broken file", err, problem.CredentialRevoked)
	if _, err := l.certified(good); err != nil {
		t.Errorf("behind a broken file: %v", err)
	}
	l.advance(30 * time.Minute)
	_, err = l.certified(good)
	refused(t, "out of date", err, problem.ServiceUnavailable)
	// Somebody else's list is none.
	other.list(t, file, 3, now, now.Add(2*time.Hour))
	l.advance(2 * time.Second)
	_, err = l.certified(good)
	refused(t, "another authority's list", err, problem.ServiceUnavailable)
}

// A token that is bound to a certificate is good on its connections only (RFC
// 8705 §3).
func TestTokensBoundToCertificates(t *testing.T) {
	l := newLab(t, func(c *identity.Tokens) { c.MinimumAssurance = identity.KeyBound })
	root := newCA(t, "one", l.now())
	mine, other := root.issue(l.now(), nil), root.issue(l.now(), nil)
	sum := sha256.Sum256(mine.Certificate[0])
	token := l.idp.Token(l.standard().With(idptest.Claims{"cnf": map[string]any{"x5t#S256": base64.RawURLEncoding.EncodeToString(sum[:])}}))
	present := func(token string, certs ...*tls.Certificate) (identity.Caller, error) {
		r := request("Bearer " + token)
		r.TLS = connection(certs...)
		return l.pipe.Authenticate(r)
	}
	if c, err := present(token, mine); err != nil || c.Assurance != identity.KeyBound || c.Subject.SubjectID != "ann" {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := present(token, other)
	refused(t, "another certificate", err, problem.SenderConstraintMissing)
	_, err = present(token)
	refused(t, "no certificate", err, problem.SenderConstraintMissing)
	_, err = present(l.idp.Token(l.standard()), mine)
	refused(t, "a token that is not bound", err, problem.SenderConstraintMissing)
	h := idptest.NewHolder()
	dpop := l.idp.Token(l.standard().With(idptest.Claims{"cnf": map[string]any{"jkt": h.Thumbprint()}}))
	r := request("DPoP " + dpop)
	r.Header.Set("DPoP", h.Proof("GET", target, dpop, l.now(), nil, nil))
	_, err = l.pipe.Authenticate(r)
	refused(t, "a proof below the floor", err, problem.SenderConstraintMissing)
}

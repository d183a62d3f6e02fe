package identity

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
)

// Certificates configures the lane of client certificates.
type Certificates struct {
	// CA holds the authorities (PEM) whose certificates are taken.
	CA []byte `json:"-"`

	// Revocation is crl or short-lived. With crl, CRL are files of revocation lists,
	// one for every authority that issues; they are read again when they change, and
	// one that is past its next update lets nobody in. With short-lived, no
	// certificate may be good for longer than Window.
	Revocation string        `json:"revocation"`
	CRL        []string      `json:"crl"`
	Window     time.Duration `json:"revocation-window"`

	// Clients says whom certificates mean. One that no entry names is nobody's.
	Clients []Client `json:"clients"`
}

// Client is a holder of certificates.
type Client struct {
	// SAN is a subject alternative name: dns:agent.example, dns:*.agents.example,
	// uri:spiffe://example/ns/prod/sa/worker, uri:spiffe://example/ns/prod/sa/* or
	// email:a@example. A star stands for one label, or one segment at the end.
	SAN string `json:"san"`

	Subject string   `json:"subject"` // the name itself if empty, which a star requires
	Tenant  string   `json:"tenant"`
	Kind    string   `json:"kind"` // workload if empty
	Scopes  []string `json:"scopes"`
	Groups  []string `json:"groups"`
	Roles   []string `json:"roles"`
}

// recheckCertificates bounds how long a verified certificate is not verified
// again.
const recheckCertificates = time.Minute

// certLane takes client certificates of the connection itself.
type certLane struct {
	cfg     Certificates
	roots   *x509.CertPool
	issuers []string
	lists   *revocationLists // nil for short-lived
	cache   *cache
	now     func() time.Time
}

func newCertLane(cfg Certificates, now func() time.Time) (*certLane, error) {
	l := &certLane{cfg: cfg, roots: x509.NewCertPool(), cache: newCache(now), now: now}
	cas, err := parseCertificates(cfg.CA)
	if err != nil {
		return nil, err
	}
	for _, ca := range cas {
		if !ca.IsCA {
			return nil, fmt.Errorf("the certificate of %s is no authority's", ca.Subject)
		}
		l.roots.AddCert(ca)
		if name := authority(ca); !slices.Contains(l.issuers, name) {
			l.issuers = append(l.issuers, name)
		}
	}
	switch cfg.Revocation {
	case CRL:
		if len(cfg.CRL) == 0 {
			return nil, errors.New("crl: name the files of the revocation lists")
		}
		l.lists = &revocationLists{files: cfg.CRL, now: now}
		if err := l.lists.read(); err != nil {
			return nil, fmt.Errorf("crl: %w", err)
		}
	case ShortLived:
		if cfg.Window < time.Second || cfg.Window%time.Second != 0 {
			return nil, errors.New("revocation-window: short-lived needs one of whole seconds")
		}
	default:
		return nil, fmt.Errorf("revocation: %q is neither crl nor short-lived", cfg.Revocation)
	}
	return l, cfg.checkClients()
}

func (c *Certificates) checkClients() error {
	if len(c.Clients) == 0 {
		return errors.New("clients: name those whose certificates are taken")
	}
	seen := map[string]bool{}
	for _, k := range c.Clients {
		kind, name, _ := strings.Cut(k.SAN, ":")
		star := strings.Contains(name, "*")
		switch {
		case !slices.Contains([]string{"dns", "uri", "email"}, kind) || name == "" || seen[k.SAN]:
			return fmt.Errorf("clients: san %q is not dns:, uri: or email: with a name of its own", k.SAN)
		case star && !(kind == "dns" && strings.HasPrefix(name, "*.") || kind == "uri" && strings.HasSuffix(name, "/*")) || strings.Count(name, "*") > 1:
			return fmt.Errorf("clients: san %q: a star stands for the first label of a dns name, or the last segment of a uri", k.SAN)
		case star && k.Subject != "":
			return fmt.Errorf("clients: san %q: those whom a star stands for cannot all be one subject", k.SAN)
		case k.Subject != "" && !ids.ValidSubject(k.Subject):
			return fmt.Errorf("clients: subject %q is not one", k.Subject)
		case !plainTenant(k.Tenant):
			return fmt.Errorf("clients: san %q: tenant %q is not one", k.SAN, k.Tenant)
		case k.Kind != "" && !slices.Contains(kinds, k.Kind):
			return fmt.Errorf("clients: san %q: kind %q is none of user, agent, workload", k.SAN, k.Kind)
		}
		if err := checkScopes(k.Scopes); err != nil {
			return fmt.Errorf("clients: san %q: %w", k.SAN, err)
		}
		seen[k.SAN] = true
	}
	return nil
}

func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var b *pem.Block
		if b, data = pem.Decode(data); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no certificate of an authority")
	}
	return out, nil
}

// authority is the trust root of certificates, as subject.issuer says it: the
// authority's subject, with what an issuer cannot hold percent-encoded.
func authority(ca *x509.Certificate) string {
	var b strings.Builder
	b.WriteString("x509:")
	for _, r := range ca.Subject.String() {
		if r <= ' ' || r == '%' || r == 0x7f || r > 0x7f {
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Facet implements Lane.
func (l *certLane) Facet() Facet {
	f := Facet{Lane: LaneMTLS, Issuers: l.issuers, Revocation: l.cfg.Revocation, MinimumAssurance: KeyBound}
	if l.cfg.Revocation == ShortLived {
		f.WindowSeconds = int64(l.cfg.Window / time.Second)
	}
	return f
}

// Claims implements Lane. A certificate alone is a credential; beside another one
// it is at most what that one is bound to.
func (l *certLane) Claims(c *Credential) bool { return c.Scheme == "" && c.certified() }

// Authenticate implements Lane.
func (l *certLane) Authenticate(ctx context.Context, c *Credential) (Caller, error) {
	if l.lists != nil {
		l.lists.refresh()
	}
	certs := c.HTTP.TLS.PeerCertificates
	h := sha256.New()
	for _, cert := range certs {
		h.Write(cert.Raw)
	}
	v, err := l.cache.get(ctx, [32]byte(l.lists.stamp(h)), func(context.Context) (*verified, error) { return l.verify(certs) })
	if err != nil {
		return Caller{}, err
	}
	caller := v.caller
	caller.Assurance, caller.Expires = KeyBound, v.ends
	return caller, nil
}

func (l *certLane) verify(certs []*x509.Certificate) (*verified, error) {
	leaf, between := certs[0], x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	now := l.now()
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: l.roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, unverified(err)
	}
	chain := chains[0]
	v := &verified{ends: leaf.NotAfter}
	if l.lists != nil {
		fresh, err := l.lists.check(chain)
		if err != nil {
			return nil, err
		}
		v.ends = until(v.ends, fresh)
	} else if leaf.NotAfter.Sub(leaf.NotBefore) > l.cfg.Window {
		return nil, unverified(fmt.Errorf("the certificate lives longer than %s", l.cfg.Window))
	}
	v.until = until(v.ends, now.Add(recheckCertificates))
	v.caller, err = l.resolve(leaf, authority(chain[len(chain)-1]))
	return v, err
}

// resolve finds the one entry that a certificate's names mean.
func (l *certLane) resolve(leaf *x509.Certificate, issuer string) (Caller, error) {
	var found *Client
	var name string
	for _, san := range alternatives(leaf) {
		for i := range l.cfg.Clients {
			k := &l.cfg.Clients[i]
			if !k.means(san) {
				continue
			}
			if found != nil && (found != k || name != san) {
				return Caller{}, unresolvable("the certificate's names mean more than one client")
			}
			found, name = k, san
		}
	}
	if found == nil {
		return Caller{}, unresolvable("no client is known by a name of the certificate")
	}
	s := event.Subject{Issuer: issuer, SubjectID: found.Subject, Tenant: found.Tenant, Lane: LaneMTLS, Kind: found.Kind}
	if s.SubjectID == "" {
		_, value, _ := strings.Cut(name, ":")
		s.SubjectID = strings.NewReplacer("~", "~7E", "/", "~2F").Replace(value)
	}
	if s.Kind == "" {
		s.Kind = "workload"
	}
	return Caller{Subject: s, Scopes: found.Scopes, Membership: Membership{Groups: found.Groups, Roles: found.Roles, Source: LaneMTLS}}, nil
}

func alternatives(c *x509.Certificate) []string {
	var out []string
	for _, n := range c.DNSNames {
		out = append(out, "dns:"+strings.ToLower(n))
	}
	for _, u := range c.URIs {
		out = append(out, "uri:"+u.String())
	}
	for _, e := range c.EmailAddresses {
		out = append(out, "email:"+e)
	}
	return out
}

// means reports whether a name is one that the entry stands for. A name that holds
// a star itself stands for nobody.
func (k *Client) means(san string) bool {
	if strings.Contains(san, "*") {
		return false
	}
	before, after, star := strings.Cut(k.SAN, "*")
	if !star {
		return san == k.SAN
	}
	if len(san) <= len(before)+len(after) || !strings.HasPrefix(san, before) || !strings.HasSuffix(san, after) {
		return false
	}
	one := san[len(before) : len(san)-len(after)]
	return !strings.ContainsAny(one, "./?#") || after == "" && !strings.ContainsAny(one, "/?#")
}

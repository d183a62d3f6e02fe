package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/config"
)

// authority makes certificates for a test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(tmpl, tmpl, &a.key.PublicKey)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (a *authority) sign(tmpl, parent *x509.Certificate, key any) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// issue makes a certificate with a serial number.
func (a *authority) issue(serial int64) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	c := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{{127, 0, 0, 1}},
		DNSNames: []string{"worker.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &key.PublicKey)
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// writePair puts a certificate and its key into files.
func writePair(t testing.TB, dir string, c tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", c.Certificate[0])
	put(t, filepath.Join(dir, "key.pem"), "PRIVATE KEY", key)
}

var stamps int64

func put(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	stamps++ // a change shows, whatever the resolution of the file system's clock is
	if err := os.Chtimes(file, time.Time{}, time.Unix(1_700_000_000+stamps, 0)); err != nil {
		t.Fatal(err)
	}
}

// handshake connects once, and returns the serial of the certificate shown.
func handshake(t testing.TB, s *served, client *tls.Config) (int64, error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		srv := tls.Server(a, s.config())
		err := srv.Handshake()
		if err == nil {
			_, err = srv.Write([]byte("x"))
		}
		a.Close()
		done <- err
	}()
	c := tls.Client(b, client)
	err := c.Handshake()
	if err == nil {
		_, err = c.Read(make([]byte, 1)) // TLS 1.3: a refused certificate shows only here
	}
	b.Close()
	<-done
	if err != nil {
		return 0, err
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

func TestCertificatesAreReadAgain(t *testing.T) {
	dir, ca := t.TempDir(), newAuthority(t)
	writePair(t, dir, ca.issue(10))
	var log strings.Builder
	s, err := newServed(config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"), TLSMin: "1.3"}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Now()
	s.now = func() time.Time { return clock }
	client := &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1"}
	expect := func(what string, want int64) {
		t.Helper()
		clock = clock.Add(tlsLookEvery)
		if got, err := handshake(t, s, client); err != nil || got != want {
			t.Errorf("%s: certificate %d, want %d (%v)", what, got, want, err)
		}
	}
	expect("at first", 10)
	writePair(t, dir, ca.issue(11))
	expect("changed", 11)
	put(t, filepath.Join(dir, "cert.pem"), "CERTIFICATE", []byte("nonsense"))
	expect("broken", 11)
	if !strings.Contains(log.String(), "stays in use") {
		t.Errorf("nothing is said about it: %s", &log)
	}
	if err := os.Remove(filepath.Join(dir, "cert.pem")); err != nil {
		t.Fatal(err)
	}
	expect("gone", 11)
	writePair(t, dir, ca.issue(12))
	expect("mended", 12)
	if _, err := handshake(t, s, &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1", MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 was spoken below the least version")
	}
}

func TestClientCertificatesOfOthersAreRefused(t *testing.T) {
	dir, ca, clients, others := t.TempDir(), newAuthority(t), newAuthority(t), newAuthority(t)
	writePair(t, dir, ca.issue(10))
	put(t, filepath.Join(dir, "clients.pem"), "CERTIFICATE", clients.cert.Raw)
	s, err := newServed(config.Config{TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"), TLSClientCA: filepath.Join(dir, "clients.pem")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	// Sent whether or not the server would like it.
	with := func(c tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }}
	}
	if _, err := handshake(t, s, with(clients.issue(20))); err != nil {
		t.Errorf("a client's: %v", err)
	}
	if _, err := handshake(t, s, &tls.Config{RootCAs: ca.pool(), ServerName: "127.0.0.1"}); err != nil {
		t.Errorf("none: %v", err)
	}
	if _, err := handshake(t, s, with(others.issue(21))); err == nil {
		t.Error("a certificate of another authority got through the handshake")
	}
}

func TestSettingsOfTLSThatDoNotFit(t *testing.T) {
	dir, ca := t.TempDir(), newAuthority(t)
	writePair(t, dir, ca.issue(10))
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for want, c := range map[string]config.Config{
		"given together":   {TLSCert: cert},
		"tls-cert and":     {TLSKey: key},
		"it needs":         {TLSClientCA: cert},
		"tls-cert, tls":    {TLSCert: key, TLSKey: cert},
		"tls-client-ca: ":  {TLSCert: cert, TLSKey: key, TLSClientCA: filepath.Join(dir, "nowhere")},
		"holds no certifi": {TLSCert: cert, TLSKey: key, TLSClientCA: key},
	} {
		if _, err := newServed(c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestServeOverTLS(t *testing.T) {
	w, ca := newWorld(t), newAuthority(t)
	writePair(t, w.home, ca.issue(10))
	done := w.start("serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(w.home, "data"), "--tls-cert", filepath.Join(w.home, "cert.pem"), "--tls-key", filepath.Join(w.home, "key.pem"))
	w.saw(w.out, "data  ")
	m := regexp.MustCompile(`is listening on (https://127\.0\.0\.1:\d+)\n`).FindStringSubmatch(w.out.String())
	if m == nil {
		t.Fatalf("no address in %s", w.out)
	}
	for _, protocols := range [][]string{{"http/1.1"}, {"h2"}} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool(), NextProtos: protocols}, ForceAttemptHTTP2: protocols[0] == "h2"}
		res, err := (&http.Client{Transport: tr}).Get(m[1] + "/.well-known/openwop")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		tr.CloseIdleConnections()
		if res.StatusCode != 200 || (res.ProtoMajor == 2) != (protocols[0] == "h2") {
			t.Errorf("%v: %d over %s", protocols, res.StatusCode, res.Proto)
		}
	}
	w.signals <- syscall.SIGTERM
	if code := w.wait(done); code != 0 {
		t.Errorf("exit %d: %s", code, w.err)
	}
}

package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// authority is a certificate authority that exists for one test set-up: the
// suite's receivers speak https under it, and the host is told to trust it
// (a fermata host by its setting egress-ca-file).
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

const (
	certBlock = "CERTIFICATE"
	keyBlock  = "EC PRIVATE KEY"
)

// NewAuthority makes an authority of 30 days and returns it as PEM: the
// certificate alone, which is for the host, and certificate with key, which is
// for Config.ReceiverCA and must stay with the suite.
func NewAuthority() (public, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "fermata conformance receivers"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 30),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	public = pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: der})
	return public, append(public[:len(public):len(public)], pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: raw})...), nil
}

// readAuthority reads what NewAuthority wrote as the private part.
func readAuthority(path string) (*authority, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := &authority{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case certBlock:
			a.cert, err = x509.ParseCertificate(block.Bytes)
		case keyBlock:
			a.key, err = x509.ParseECPrivateKey(block.Bytes)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if a.cert == nil || a.key == nil {
		return nil, errors.New(path + " does not hold a certificate and its EC key")
	}
	return a, nil
}

// leaf makes a certificate for receivers on this machine, and for the name of the
// address they are known by, if there is one.
func (a *authority) leaf(names ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "fermata conformance receiver"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else if n != "" {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return new(big.Int).SetBytes(b)
}

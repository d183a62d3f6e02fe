package fermata

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// egressTrust is the TLS configuration of outbound calls: nil for the system's
// authorities alone.
func egressTrust(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("fermata: Config.EgressCAFile: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without a store of its own
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("fermata: Config.EgressCAFile: %s holds no certificate in PEM", file)
	}
	return &tls.Config{RootCAs: pool}, nil
}

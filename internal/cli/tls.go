package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/config"
)

// tlsLookEvery is how often the files of TLS are looked at for a change, at most.
const tlsLookEvery = time.Second

// served is what the API is served with over TLS. The files are read again once
// they have changed, at the next connection; what cannot be used leaves what was
// there before in place, and says so in the log.
type served struct {
	cfg config.Config
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	current *tls.Config
	marks   [3]mark
	looked  time.Time
}

// mark tells one state of a file from another.
type mark struct {
	at   time.Time
	size int64
}

// newServed reads the files for the first time; nil where there is no TLS.
func newServed(cfg config.Config, log *slog.Logger) (*served, error) {
	if cfg.TLSCert == "" && cfg.TLSKey == "" {
		if cfg.TLSClientCA != "" {
			return nil, errors.New("tls-client-ca: it needs tls-cert and tls-key")
		}
		return nil, nil
	}
	if cfg.TLSCert == "" || cfg.TLSKey == "" {
		return nil, errors.New("tls-cert and tls-key are given together or not at all")
	}
	s := &served{cfg: cfg, log: log, now: time.Now}
	s.marks, s.looked = s.look(), s.now()
	var err error
	s.current, err = s.load()
	return s, err
}

// config is what a listener is given: it asks for the newest at each connection.
func (s *served) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: s.current.NextProtos,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.newest(), nil },
	}
}

func (s *served) newest() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.looked) >= tlsLookEvery || now.Before(s.looked) {
		s.looked = now
		s.reload()
	}
	return s.current
}

func (s *served) reload() {
	marks := s.look()
	if marks == s.marks {
		return
	}
	s.marks = marks
	fresh, err := s.load()
	if err != nil {
		s.log.Error("the changed files of TLS cannot be used; what was there before stays in use", "err", err)
		return
	}
	s.current = fresh
	s.log.Info("the files of TLS have changed and are in use")
}

func (s *served) look() (out [3]mark) {
	for i, f := range []string{s.cfg.TLSCert, s.cfg.TLSKey, s.cfg.TLSClientCA} {
		if st, err := os.Stat(f); f != "" && err == nil {
			out[i] = mark{st.ModTime(), st.Size()}
		}
	}
	return out
}

func (s *served) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(s.cfg.TLSCert, s.cfg.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("tls-cert, tls-key: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if s.cfg.TLSMin == "1.3" {
		c.MinVersion = tls.VersionTLS13
	}
	if s.cfg.TLSClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(s.cfg.TLSClientCA)
	if err != nil {
		return nil, fmt.Errorf("tls-client-ca: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls-client-ca: %s holds no certificate", s.cfg.TLSClientCA)
	}
	// A client may come without one, and by another lane. One that comes with a
	// certificate of somebody else does not get to ask for anything.
	c.ClientAuth = tls.VerifyClientCertIfGiven
	return c, nil
}

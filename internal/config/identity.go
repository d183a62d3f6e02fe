package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	jsonx "github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v4"
)

// Lanes are what the file of identity holds.
type Lanes struct {
	OIDC   *identity.Tokens       `json:"oidc"`
	OAuth2 *identity.Tokens       `json:"oauth2"`
	MTLS   *identity.Certificates `json:"mtls"`

	// Allow are closed ranges in which issuers may be, literal addresses in them
	// without TLS too, which relaxes a protection. CA is a file of authorities for
	// issuers' servers.
	Allow []netip.Prefix `json:"allow"`
	CA    string         `json:"ca"`
}

// maxSecret bounds a file that holds a secret.
const maxSecret = 64 << 10

// ReadLanes reads the file of identity: the lanes that are there, nothing by
// default. Names of files in it are relative to it. A member that nobody knows
// stops the start, since a slip in this file could let somebody in.
func ReadLanes(c *Config) (Lanes, error) {
	var l Lanes
	if c.Identity == "" {
		return l, nil
	}
	if err := readStrict(c.Identity, &l); err != nil {
		return Lanes{}, fmt.Errorf("identity: %s: %w", c.Identity, err)
	}
	if err := l.complete(c); err != nil {
		return Lanes{}, fmt.Errorf("identity: %s: %w", c.Identity, err)
	}
	return l, nil
}

// durations reads a duration as the settings write it: 30s, 5m, 12h, 30d.
var durations = jsonx.UnmarshalFunc(func(b []byte, into *time.Duration) error {
	var s string
	if err := jsonx.Unmarshal(b, &s); err != nil {
		return err
	}
	return duration(into, s, 0, 3650*day)
})

func readStrict(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("it has more than %d bytes", maxFile)
	}
	var doc map[string]any
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var more any
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("it holds more than one document")
	}
	plain, err := json.Marshal(doc)
	if err != nil {
		return errors.New("its members do not all have names that are texts")
	}
	var wrong *jsonx.SemanticError
	if err := jsonx.Unmarshal(plain, into, jsonx.RejectUnknownMembers(true), jsonx.WithUnmarshalers(durations)); errors.As(err, &wrong) {
		at := strings.ReplaceAll(strings.Trim(string(wrong.JSONPointer), "/"), "/", ".")
		if errors.Is(err, jsonx.ErrUnknownName) {
			return fmt.Errorf("%s: there is no such member", at)
		}
		return fmt.Errorf("%s: is not a value of its kind", at)
	} else if err != nil {
		return err
	}
	return nil
}

// complete reads the files that the file names.
func (l *Lanes) complete(c *Config) error {
	dir := filepath.Dir(c.Identity)
	for name, t := range map[string]*identity.Tokens{"oidc": l.OIDC, "oauth2": l.OAuth2} {
		for i := 0; t != nil && i < len(t.Issuers); i++ {
			in := t.Issuers[i].Introspection
			if in == nil || in.SecretFile == "" {
				continue
			}
			secret, err := readAll(beside(dir, in.SecretFile), maxSecret)
			if err != nil {
				return fmt.Errorf("%s: client-secret-file: %w", name, err)
			}
			in.Secret = strings.TrimSpace(string(secret))
		}
	}
	if l.CA != "" {
		l.CA = beside(dir, l.CA)
	}
	if l.MTLS == nil {
		return nil
	}
	for i, f := range l.MTLS.CRL {
		l.MTLS.CRL[i] = beside(dir, f)
	}
	if c.TLSClientCA == "" || c.TLSCert == "" {
		return errors.New("mtls: client certificates need tls-cert, tls-key and tls-client-ca")
	}
	var err error
	l.MTLS.CA, err = readAll(c.TLSClientCA, maxFile)
	return err
}

func beside(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

func readAll(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

package fermata

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/postgres"
	"github.com/fermata-run/fermata/internal/vault"
)

// MasterKey wraps the keys that seal what is secret in the data folder. A service
// that holds keys and never shows them fits behind it.
type MasterKey = vault.Master

// CredentialSource is a store of secrets outside the host. A credential may name
// what is in it; the host reads that whenever a node needs it, and keeps it nowhere.
type CredentialSource = vault.Source

// NewMasterKey makes the text of a master key, as a file of keys holds it.
func NewMasterKey() string { return vault.NewKeyText() }

// ErrNoSuchSecret is what a CredentialSource fails with if it has nothing of a name.
var ErrNoSuchSecret = vault.ErrAbsent

// masterKeyFile is where the key is, in the data folder, unless it is said otherwise.
const masterKeyFile = "master.key"

// ring is where the host finds its master keys.
func (c *Config) ring() (vault.Ring, error) {
	given := 0
	ring := vault.KeyFile(filepath.Join(c.DataDir, masterKeyFile))
	if c.MasterKeyFile != "" {
		ring, given = vault.KeyFile(c.MasterKeyFile), given+1
	}
	if c.MasterKey != "" {
		ring, given = vault.KeyText(c.MasterKey, "FERMATA_MASTER_KEY"), given+1
	}
	if c.MasterKeys != nil {
		ask := c.MasterKeys
		ring, given = func(ctx context.Context, _ bool) ([]vault.Master, error) { return ask(ctx) }, given+1
	}
	if given > 1 {
		return nil, errors.New("fermata: give the master key in one way only: a file, its text, or a service")
	}
	if given == 0 && c.Store != "" {
		return nil, errors.New("fermata: hosts that share a database need one master key: give each of them the same, by FERMATA_MASTER_KEY or --master-key-file (fermata credentials rotate-keys --new-key makes one)")
	}
	return ring, nil
}

// sealed opens the vault of a store and puts it before the store.
func (h *Host) sealed(ctx context.Context, db store.Store) (store.Store, error) {
	ring, err := h.cfg.ring()
	if err != nil {
		return nil, err
	}
	h.vault, err = vault.Open(ctx, db, vault.Options{
		Ring: ring, Clock: &h.clock, Log: h.cfg.Logger, Heard: func(tenant, label, secret string) {
			if !host.Shown(label) {
				h.redact.Know(tenant, label, secret)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return vault.Wrap(db, h.vault), nil
}

// newRedactor makes the one redactor of a host, which knows what it was given.
func newRedactor(c *Config) *redact.Redactor {
	r := redact.New()
	r.Know("", "bootstrap-key", c.BootstrapKey)
	for _, address := range []string{c.Store, c.StoreListen} {
		if address != "" && address != SameStore {
			r.Know("", "database-password", postgres.Password(address))
		}
	}
	return r
}

// sources are the stores of secrets that credentials may name.
func (c *Config) sources() map[string]vault.Source {
	out := map[string]vault.Source{"env": vault.Environment{Getenv: os.Getenv}}
	if c.CredentialsDir != "" {
		out["file"] = vault.Files{Dir: c.CredentialsDir}
	}
	for name, s := range c.CredentialSources {
		out[name] = s
	}
	return out
}

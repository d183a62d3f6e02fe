package conformance

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// certFlags are the flags that make a run of the suite end in a bundle.
type certFlags struct {
	file, key, keyID           string
	verifierKey, verifierKeyID string
	tier, build, relaxations   string

	cert Certificate
}

func (c *certFlags) bind(f *flag.FlagSet) {
	f.StringVar(&c.file, "certify", "", "write a signed certification bundle to this file")
	f.StringVar(&c.key, "signing-key", "", "PEM file of the host's Ed25519 private key (see conformance keygen)")
	f.StringVar(&c.keyID, "signing-key-id", "", "id the host publishes the key under (default: made of the key)")
	f.StringVar(&c.verifierKey, "verifier-key", "", "PEM file of an independent party's Ed25519 private key; makes the evidence independent")
	f.StringVar(&c.verifierKeyID, "verifier-key-id", "", "id of that key (default: made of the key)")
	f.StringVar(&c.tier, "evidence-tier", TierSelf, "who ran the suite: self or steward")
	f.StringVar(&c.build, "host-build", "", "build of the host as KIND:ID, kind image-digest, commit or artifact-sha256 (default: what the host says)")
	f.StringVar(&c.relaxations, "host-relaxations", "", "JSON file of relaxations the operator declares beside those the host shows")
}

// read reads everything a bundle needs before the suite runs: who has waited for
// the suite should not learn then that a file is missing.
func (c *certFlags) read(cfg Config) error {
	if c.file == "" {
		if c.key != "" || c.verifierKey != "" {
			return errors.New("a signing key needs --certify FILE")
		}
		return nil
	}
	if c.key == "" {
		return errors.New("--certify needs --signing-key FILE")
	}
	if cfg.TargetMajor == 1 {
		return errors.New("--certify is about version 2: it needs --target-major 2")
	}
	if cfg.Filter != "" {
		return errors.New("--certify needs a whole run, without --filter")
	}
	if !slices.Contains([]string{TierSelf, TierSteward}, c.tier) {
		return fmt.Errorf("--evidence-tier %q is not self or steward; --verifier-key makes it independent", c.tier)
	}
	c.cert = Certificate{Tier: c.tier, Secrets: []string{cfg.APIKey, cfg.OtherAPIKey}}
	var err error
	if c.cert.Signer, err = signerFile(c.key, c.keyID); err != nil {
		return err
	}
	if c.verifierKey != "" {
		if c.cert.Verifier, err = signerFile(c.verifierKey, c.verifierKeyID); err != nil {
			return err
		}
	}
	if c.build != "" {
		kind, id, ok := strings.Cut(c.build, ":")
		if !ok || id == "" || !slices.Contains([]string{"image-digest", "commit", "artifact-sha256"}, kind) {
			return fmt.Errorf("--host-build %q is not KIND:ID with a kind of image-digest, commit or artifact-sha256", c.build)
		}
		c.cert.Build = Build{kind, id}
	}
	if c.relaxations != "" {
		text, err := os.ReadFile(c.relaxations)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &c.cert.Relaxations); err != nil {
			return fmt.Errorf("%s: want a list of {obligation, durability, reason}: %w", c.relaxations, err)
		}
	}
	return nil
}

func signerFile(path, id string) (*Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := ReadSigner(text, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// write makes the bundle and puts it in its place whole.
func (c *certFlags) write(r *Report) error {
	if c.file == "" {
		return nil
	}
	b, err := Certify(r, c.cert)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	part := c.file + ".part"
	if err := os.WriteFile(part, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(part, c.file)
}

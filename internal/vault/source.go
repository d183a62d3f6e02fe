package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// ErrAbsent: a source has nothing of that name.
var ErrAbsent = errors.New("vault: the source holds nothing of this name")

// MaxMaterial bounds the material of a credential, in bytes.
const MaxMaterial = 64 << 10

// Source is a store of secrets outside the vault. What it holds is read whenever it
// is needed and kept nowhere. A name belongs to a tenant: a source must not let one
// tenant read what is another's.
type Source interface {
	// Check refuses a name that can never be one.
	Check(tenant, name string) error
	// Read fails with ErrAbsent if there is nothing of that name.
	Read(ctx context.Context, tenant, name string) ([]byte, error)
}

// Files is a folder with a folder for each tenant, and a file for each secret: what
// an orchestrator mounts.
type Files struct{ Dir string }

// Check implements Source.
func (f Files) Check(tenant, name string) error {
	if strings.HasPrefix(tenant, ".") || !plainName(name, "._-") || strings.HasPrefix(name, ".") {
		return errors.New("is not the name of a file: want letters, digits, dots, - and _")
	}
	return nil
}

// Read implements Source. Nothing outside the folder is read, whatever links say.
func (f Files) Read(_ context.Context, tenant, name string) ([]byte, error) {
	if f.Check(tenant, name) != nil {
		return nil, ErrAbsent
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("vault: the folder of credentials cannot be opened: %w", err)
	}
	defer root.Close()
	file, err := root.Open(tenant + "/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	}
	if err != nil {
		return nil, errors.New("vault: a file of the folder of credentials cannot be opened")
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, MaxMaterial+1))
	if err != nil {
		return nil, errors.New("vault: a file of the folder of credentials cannot be read")
	}
	return []byte(strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")), nil
}

// EnvPrefix begins the names of the variables that Environment reads. No other
// variable of the process can be had: some hold the host's own secrets.
const EnvPrefix = "FERMATA_CREDENTIAL_"

// Environment reads variables of the process: EnvPrefix, the tenant, two
// underscores, the name. In the tenant, lower case becomes upper case, and whatever
// is neither that nor a digit becomes _ and two hexadecimal digits.
type Environment struct{ Getenv func(string) string }

// Check implements Source.
func (Environment) Check(_, name string) error {
	if !plainName(name, "_") || strings.ToUpper(name) != name || strings.HasPrefix(name, "_") {
		return errors.New("is not the name of a variable: want capitals, digits and _")
	}
	return nil
}

// Read implements Source.
func (e Environment) Read(_ context.Context, tenant, name string) ([]byte, error) {
	if e.Check(tenant, name) != nil {
		return nil, ErrAbsent
	}
	v := e.Getenv(EnvPrefix + envTenant(tenant) + "__" + name)
	if v == "" {
		return nil, ErrAbsent
	}
	return []byte(v), nil
}

func envTenant(tenant string) string {
	var b strings.Builder
	for i := range len(tenant) {
		switch c := tenant[i]; {
		case c >= 'a' && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
		case c >= '0' && c <= '9':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02X", c)
		}
	}
	return b.String()
}

// plainName reports whether s has 1 to 128 letters, digits and others.
func plainName(s, others string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(others, c) >= 0) {
			return false
		}
	}
	return true
}

package vault

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Master is a key that wraps data keys: one in memory, or one that a service holds
// and never shows. bound is authenticated and must be the same both times.
type Master interface {
	// ID names the key for ever. It is stored beside what the key wraps.
	ID() string
	Wrap(ctx context.Context, key, bound []byte) ([]byte, error)
	// Unwrap fails if the key did not wrap this with bound.
	Unwrap(ctx context.Context, wrapped, bound []byte) ([]byte, error)
}

// Ring finds the master keys: the first wraps, all of them unwrap. It is asked at
// the start and whenever master keys are rotated. fresh says that nothing is sealed
// yet, so that a key may be made; otherwise it must not be.
type Ring func(ctx context.Context, fresh bool) ([]Master, error)

// localMaster is a key in the memory of this process.
type localMaster struct {
	id string
	a  cipher.AEAD
}

func (m localMaster) ID() string { return m.id }

func (m localMaster) Wrap(_ context.Context, key, bound []byte) ([]byte, error) {
	return m.a.Seal(nil, nil, key, bound), nil
}

func (m localMaster) Unwrap(_ context.Context, wrapped, bound []byte) ([]byte, error) {
	return m.a.Open(nil, nil, wrapped, bound)
}

// NewMaster makes a master key of its bytes.
func NewMaster(key []byte) (Master, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("vault: a master key has %d bytes, not %d", KeySize, len(key))
	}
	id, err := masterID(key)
	if err != nil {
		return nil, err
	}
	a, err := aead(key)
	return localMaster{id, a}, err
}

// keyMark begins the text of a master key, so that it is known for what it is
// wherever it turns up.
const keyMark = "fermata-master-key-1:"

// NewKeyText makes the text of a new master key.
func NewKeyText() string {
	key := make([]byte, KeySize)
	rand.Read(key)
	return keyMark + base64.RawStdEncoding.EncodeToString(key)
}

// ParseKeys reads texts of master keys, parted by white space or commas. The first
// is the one in use. Lines that begin with # are left out.
func ParseKeys(text string) ([]Master, error) {
	var out []Master
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, f := range strings.FieldsFunc(line, func(r rune) bool { return r <= ' ' || r == ',' }) {
			n++
			raw, ok := strings.CutPrefix(f, keyMark)
			key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(raw, "="))
			if !ok || err != nil || len(key) != KeySize {
				return nil, fmt.Errorf("key %d is none: want %s and %d bytes in base64", n, keyMark, KeySize)
			}
			m, err := NewMaster(key)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		}
	}
	if n == 0 {
		return nil, errors.New("there is no key in it")
	}
	return out, nil
}

// KeyText is a ring of keys that are given as text.
func KeyText(text, from string) Ring {
	return func(context.Context, bool) ([]Master, error) {
		ms, err := ParseKeys(text)
		if err != nil {
			return nil, fmt.Errorf("the master key in %s: %w", from, err)
		}
		return ms, nil
	}
}

// KeyFile is a ring of the keys in a file. It makes the file, with one key and
// readable by its owner alone, where nothing is sealed yet and there is none.
func KeyFile(path string) Ring {
	return func(_ context.Context, fresh bool) ([]Master, error) {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			if !fresh {
				return nil, fmt.Errorf("there is no master key in %s, and the data is sealed with one: put the key back; none is made beside data that another one opens", path)
			}
			b, err = makeKeyFile(path)
		}
		if err != nil {
			return nil, fmt.Errorf("the master key in %s: %w", path, err)
		}
		if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("the master key in %s can be read by others: run chmod 600 %s", path, path)
		}
		ms, err := ParseKeys(string(b))
		if err != nil {
			return nil, fmt.Errorf("the master key in %s: %w", path, err)
		}
		return ms, nil
	}
}

// makeKeyFile writes a new key and makes it durable before anything is sealed with
// it: a key that is lost in a crash takes its data along. The file appears with its
// content or not at all.
func makeKeyFile(path string) ([]byte, error) {
	b := []byte("# Opens what is secret in the data of this host. Without it that is lost.\n" + NewKeyText() + "\n")
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".master-*") // 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // its name is gone if all went well
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	// A link, and no rename: that would replace a key that has come meanwhile.
	if err := os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return os.ReadFile(path)
		}
		return nil, err
	}
	if runtime.GOOS != "windows" {
		d, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return b, d.Sync()
	}
	return b, nil
}

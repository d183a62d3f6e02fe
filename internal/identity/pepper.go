package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// The host's secret in the hashes of API keys. There is one: what it has hashed is
// hashed by nothing else.
const (
	pepperPurpose = "api-key-pepper"
	pepperID      = "1"
	pepperBytes   = 32
)

// plain is the form of hashes before there was a pepper, and the inner half of the
// present one: a hash of the old form is brought into the new one without its key.
func plain(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// keyed is the present form. A database without the pepper helps nobody to find
// out keys, not even keys that somebody chose badly.
func keyed(pepper, plain []byte) []byte {
	m := hmac.New(sha256.New, pepper)
	m.Write(plain)
	return m.Sum(nil)
}

// findPepper reads the pepper, and makes it on a host that has none. It errs if
// there are keys that were hashed with one that is gone.
func findPepper(ctx context.Context, keys store.Keys, secrets store.Secrets, now time.Time) ([]byte, error) {
	for try := range 2 {
		list, err := secrets.List(ctx, pepperPurpose)
		if err != nil {
			return nil, fmt.Errorf("read the secret of API keys: %w", err)
		}
		for _, s := range list {
			if s.ID == pepperID {
				return s.Value, nil
			}
		}
		all, err := keys.Count(ctx)
		if err != nil {
			return nil, err
		}
		old, err := keys.Unkeyed(ctx, all+1)
		if err != nil {
			return nil, err
		}
		if len(old) < all && try == 0 {
			continue // unless another replica has made it, and a key, since it was looked for
		}
		if len(old) < all {
			return nil, errors.New("the secret that API keys are hashed with is gone: restore it, for no key there is can be used without it")
		}
		s := store.Secret{Purpose: pepperPurpose, ID: pepperID, Value: make([]byte, pepperBytes), CreatedAt: now}
		rand.Read(s.Value)
		switch err := secrets.Add(ctx, s); {
		case err == nil:
			return s.Value, nil
		case !errors.Is(err, store.ErrExists): // else another replica was first
			return nil, fmt.Errorf("make the secret of API keys: %w", err)
		}
	}
	return nil, errors.New("the secret of API keys is there and cannot be read")
}

// modernize brings hashes of the old form into the present one. A process that dies
// half-way leaves the rest to the next.
func modernize(ctx context.Context, keys store.Keys, pepper []byte) error {
	for {
		old, err := keys.Unkeyed(ctx, 256)
		if err != nil || len(old) == 0 {
			return err
		}
		for _, k := range old {
			k.Hash, k.Keyed = keyed(pepper, k.Hash), true
			if k.Kind == "" {
				k.Kind = "user"
			}
			if err := keys.Update(ctx, k); err != nil && !errors.Is(err, store.ErrStale) {
				return fmt.Errorf("hash the key %s anew: %w", k.ID, err)
			}
		}
	}
}

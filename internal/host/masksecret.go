package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/token"
)

// The one secret under which sensitive values are hashed. Its id is fixed, so that
// of two hosts that start on a new store at once only one makes it.
const (
	maskPurpose = "mask"
	maskID      = "1"
)

// MaskSecret reads the secret of masking by hash, and makes it where there is none.
// It lives in the store, for it must be the same as long as any log is: hashes made
// under another are equal to nothing.
func MaskSecret(ctx context.Context, s store.Secrets, now time.Time) ([]byte, error) {
	for range 2 {
		list, err := s.List(ctx, maskPurpose)
		if err != nil {
			return nil, fmt.Errorf("read the secret of masking: %w", err)
		}
		for _, k := range list {
			if k.ID == maskID {
				return k.Value, nil
			}
		}
		made := store.Secret{Purpose: maskPurpose, ID: maskID, Value: make([]byte, token.MinSecret), CreatedAt: now}
		rand.Read(made.Value)
		switch err := s.Add(ctx, made); {
		case err == nil:
			return made.Value, nil
		case !errors.Is(err, store.ErrExists):
			return nil, fmt.Errorf("make the secret of masking: %w", err)
		}
	}
	return nil, errors.New("the secret of masking is there and cannot be read")
}

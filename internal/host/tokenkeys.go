package host

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/token"
)

const (
	tokenPurpose = "interrupt-token"
	// tokenKeyLife is for how long one key signs. Then the next is made.
	tokenKeyLife = 30 * 24 * time.Hour
	// maxTokenKeys bounds how many there can be: each has to be kept for as long as
	// a token can live, and rotating is for anybody who may do everything.
	maxTokenKeys = 100
)

// tokenKeys are the keys of interrupt tokens. They live in the store, so that a
// token outlives the process that gave it out and any replica can read it. The
// newest signs; older ones verify until nothing they signed can be valid any
// more (spec v2 interrupt.md §Tokens).
type tokenKeys struct {
	store store.Secrets
	now   func() time.Time

	making sync.Mutex // one at a time makes a key
	mu     sync.RWMutex
	known  map[string][]byte // by kid
}

// signing is the key to sign with now. It is read from the store each time: to
// give out a token is rare, and another replica may have made a newer key.
func (k *tokenKeys) signing(ctx context.Context) (store.Secret, error) {
	k.making.Lock()
	defer k.making.Unlock()
	list, err := k.load(ctx)
	if err != nil {
		return store.Secret{}, err
	}
	if len(list) == 0 || k.now().Sub(list[0].CreatedAt) >= tokenKeyLife {
		return k.make(ctx, list)
	}
	return list[0], nil
}

// rotate makes a new key, which signs from now on.
func (k *tokenKeys) rotate(ctx context.Context) (store.Secret, error) {
	k.making.Lock()
	defer k.making.Unlock()
	list, err := k.load(ctx)
	if err != nil {
		return store.Secret{}, err
	}
	if len(list) >= maxTokenKeys {
		p := problem.New(problem.RateLimited, "%d token keys are in use already; older ones go %d days after their last token", len(list), int(maxTokenLife.Hours()/24))
		p.RetryAfter = time.Hour
		return store.Secret{}, p
	}
	return k.make(ctx, list)
}

func (k *tokenKeys) make(ctx context.Context, older []store.Secret) (store.Secret, error) {
	s := store.Secret{Purpose: tokenPurpose, Value: make([]byte, token.MinSecret), CreatedAt: k.now()}
	if len(older) > 0 && !s.CreatedAt.After(older[0].CreatedAt) {
		s.CreatedAt = older[0].CreatedAt.Add(time.Millisecond) // the clock may go back, the order may not
	}
	var id [9]byte
	rand.Read(id[:])
	rand.Read(s.Value)
	s.ID = "it-" + base64.RawURLEncoding.EncodeToString(id[:])
	if err := k.store.Add(ctx, s); err != nil {
		return store.Secret{}, fmt.Errorf("make a token key: %w", err)
	}
	// A key was the signing one until the one after it was made.
	for i := 1; i < len(older); i++ {
		if s.CreatedAt.Sub(older[i-1].CreatedAt) > maxTokenLife {
			if err := k.store.Drop(ctx, tokenPurpose, older[i].ID); err != nil {
				return store.Secret{}, err
			}
		}
	}
	_, err := k.load(ctx)
	return s, err
}

// load reads the keys there are, newest first, and remembers them.
func (k *tokenKeys) load(ctx context.Context) ([]store.Secret, error) {
	list, err := k.store.List(ctx, tokenPurpose)
	if err != nil {
		return nil, err
	}
	known := make(map[string][]byte, len(list))
	for _, s := range list {
		known[s.ID] = s.Value
	}
	k.mu.Lock()
	k.known = known
	k.mu.Unlock()
	return list, nil
}

// verifying finds the key of a kid; nil if this host does not hold it. A kid
// that is not known may be one that another replica has made.
func (k *tokenKeys) verifying(ctx context.Context, kid string) ([]byte, error) {
	find := func() []byte {
		k.mu.RLock()
		defer k.mu.RUnlock()
		return k.known[kid]
	}
	if v := find(); v != nil {
		return v, nil
	}
	if _, err := k.load(ctx); err != nil {
		return nil, err
	}
	return find(), nil
}

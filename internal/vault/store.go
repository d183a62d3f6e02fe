package vault

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/store"
)

// Places that sealed values are tied to.
func secretBound(purpose, id string) []byte { return bound(store.CellSecret, "", purpose, id) }
func webhookBound(tenant, id string) []byte { return bound(store.CellWebhook, tenant, id) }
func answerBound(tenant, endpoint, key string) []byte {
	return bound(store.CellAnswer, tenant, endpoint, key)
}
func materialBound(tenant, ref string, n int64) []byte {
	return bound(store.CellCredential, tenant, ref, strconv.FormatInt(n, 10))
}

// cellBound is the place of a cell. A rotation moves a value within its row, so the
// column is no part of it.
func cellBound(c store.Cell) []byte {
	switch c.Kind {
	case store.CellSecret:
		return secretBound(c.ID, string(c.Sub))
	case store.CellWebhook, store.CellWebhookOld:
		return webhookBound(c.Tenant, c.ID)
	case store.CellCredential, store.CellCredOld:
		return materialBound(c.Tenant, c.ID, c.At)
	}
	return answerBound(c.Tenant, c.ID, string(c.Sub))
}

// Store is a store whose secrets are sealed in what it wraps, and open to whoever
// uses it.
type Store struct {
	store.Store
	v *Vault
}

// Wrap wraps a store whose vault is open.
func Wrap(s store.Store, v *Vault) *Store { return &Store{s, v} }

// Secrets implements store.Store.
func (s *Store) Secrets() store.Secrets { return secrets{s.Store.Secrets(), s.v} }

// Webhooks implements store.Store.
func (s *Store) Webhooks() store.Webhooks { return webhooks{s.Store.Webhooks(), s.v} }

// Idempotency implements store.Store.
func (s *Store) Idempotency() store.Idempotency { return idempotency{s.Store.Idempotency(), s.v} }

type secrets struct {
	store.Secrets
	v *Vault
}

// heard tells of a key, unless it is the public part of one, which is for showing.
func (x secrets) heard(s store.Secret) {
	if !strings.HasSuffix(s.Purpose, "-public") {
		x.v.opts.Heard("", s.Purpose, string(s.Value))
	}
}

// Add implements store.Secrets.
func (x secrets) Add(ctx context.Context, s store.Secret) (err error) {
	x.heard(s)
	s.Value, err = x.v.Seal(ctx, "", s.Value, secretBound(s.Purpose, s.ID))
	if err != nil {
		return err
	}
	return x.Secrets.Add(ctx, s)
}

// List implements store.Secrets.
func (x secrets) List(ctx context.Context, purpose string) ([]store.Secret, error) {
	list, err := x.Secrets.List(ctx, purpose)
	for i := range list {
		if err == nil {
			list[i].Value, err = x.v.Unseal(ctx, "", list[i].Value, secretBound(purpose, list[i].ID))
		}
		if err != nil {
			return nil, fmt.Errorf("secret %s of %s: %w", list[i].ID, purpose, err)
		}
		x.heard(list[i])
	}
	return list, err
}

type webhooks struct {
	store.Webhooks
	v *Vault
}

// Add implements store.Webhooks.
func (x webhooks) Add(ctx context.Context, s store.Subscription, most int) error {
	for _, at := range []*string{&s.Secret, &s.Previous} {
		if *at == "" {
			continue
		}
		sealed, err := x.seal(ctx, s.Tenant, s.ID, *at)
		if err != nil {
			return err
		}
		*at = sealed
	}
	return x.Webhooks.Add(ctx, s, most)
}

func (x webhooks) seal(ctx context.Context, tenant, id, secret string) (string, error) {
	x.v.opts.Heard(tenant, "webhook", secret)
	b, err := x.v.Seal(ctx, tenant, []byte(secret), webhookBound(tenant, id))
	return string(b), err
}

// Get implements store.Webhooks.
func (x webhooks) Get(ctx context.Context, tenant, id string) (store.Subscription, error) {
	s, err := x.Webhooks.Get(ctx, tenant, id)
	if err != nil {
		return s, err
	}
	for _, at := range []*string{&s.Secret, &s.Previous} {
		if *at == "" {
			continue
		}
		plain, err := x.v.Unseal(ctx, tenant, []byte(*at), webhookBound(tenant, id))
		if err != nil {
			return store.Subscription{}, fmt.Errorf("the secret of webhook %s: %w", id, err)
		}
		*at = string(plain)
		x.v.opts.Heard(tenant, "webhook", *at)
	}
	return s, nil
}

// Rotate implements store.Webhooks.
func (x webhooks) Rotate(ctx context.Context, tenant, id, secret string, at, until time.Time) error {
	sealed, err := x.seal(ctx, tenant, id, secret)
	if err != nil {
		return err
	}
	return x.Webhooks.Rotate(ctx, tenant, id, sealed, at, until)
}

// idempotency seals recorded answers, which may hold what was shown once.
type idempotency struct {
	store.Idempotency
	v *Vault
}

// Finish implements store.Idempotency.
func (x idempotency) Finish(ctx context.Context, r store.Record) error {
	if r.Outcome != nil && len(r.Outcome.Body) > 0 {
		o := *r.Outcome
		var err error
		if o.Body, err = x.v.Seal(ctx, r.Tenant, o.Body, answerBound(r.Tenant, r.Endpoint, string(r.Key))); err != nil {
			return err
		}
		r.Outcome = &o
	}
	return x.Idempotency.Finish(ctx, r)
}

// Claim implements store.Idempotency. An answer that was recorded before there was
// a vault is given as it is; it lasts two days at most.
func (x idempotency) Claim(ctx context.Context, r store.Record) (store.Record, bool, error) {
	out, mine, err := x.Idempotency.Claim(ctx, r)
	if err != nil || out.Outcome == nil {
		return out, mine, err
	}
	if _, _, sealed := split(out.Outcome.Body); sealed {
		o := *out.Outcome
		if o.Body, err = x.v.Unseal(ctx, r.Tenant, o.Body, answerBound(r.Tenant, r.Endpoint, string(r.Key))); err != nil {
			return store.Record{}, false, err
		}
		out.Outcome = &o
	}
	return out, mine, nil
}

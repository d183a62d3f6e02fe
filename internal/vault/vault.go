package vault

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/store"
)

// Options are what a vault is opened with.
type Options struct {
	Ring  Ring
	Clock clock.Clock
	Log   *slog.Logger
	// Heard, if set, is given every secret that is opened or about to be sealed, so
	// that it can be kept out of what is written elsewhere. The tenant is empty for
	// the host's own.
	Heard func(tenant, label, secret string)
}

// Vault seals and opens. It is safe for concurrent use.
type Vault struct {
	store store.Vault
	opts  Options

	rotating sync.Mutex
	mu       sync.RWMutex
	master   Master
	keys     map[string]dataKey // by tenant and id
	newest   map[string]dataKey // by tenant
}

type dataKey struct {
	store.DataKey
	a cipher.AEAD
}

func keyName(tenant, id string) string { return tenant + "\x00" + id }

func dataBound(k store.DataKey) []byte { return bound("data key", k.Tenant, k.ID) }

// answers is the endpoint whose recorded answers hold a secret that the host has
// made. Answers are sealed whatever they hold; these are sealed anew with the rest.
const answers = "registerWebhook"

// Open opens the vault of a store. Where nothing has been sealed yet, everything
// that is to be is sealed now, in one transaction. If a key is missing or wrong it
// fails and has changed nothing.
func Open(ctx context.Context, s store.Store, o Options) (*Vault, error) {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Heard == nil {
		o.Heard = func(string, string, string) {}
	}
	v := &Vault{store: s.Vault(), opts: o}
	// Of several processes that begin on one store, one is first.
	for range 4 {
		keys, err := v.store.Keys(ctx)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			return v, v.unlock(ctx, keys)
		}
		err = v.begin(ctx)
		if !errors.Is(err, store.ErrStale) {
			return v, err
		}
	}
	return nil, errors.New("vault: others change the store while it is being sealed")
}

// masters asks the ring.
func (v *Vault) masters(ctx context.Context, fresh bool) ([]Master, error) {
	ms, err := v.opts.Ring(ctx, fresh)
	if err == nil && len(ms) == 0 {
		err = errors.New("vault: there is no master key")
	}
	return ms, err
}

// unlock opens the data keys that are there, and wraps them by the master key in use
// where another one did.
func (v *Vault) unlock(ctx context.Context, keys []store.DataKey) error {
	ms, err := v.masters(ctx, false)
	if err != nil {
		return err
	}
	opened := make([]dataKey, 0, len(keys))
	var rewrap []store.DataKey
	for _, k := range keys {
		i := slices.IndexFunc(ms, func(m Master) bool { return m.ID() == k.Master })
		if i < 0 {
			return wrongKey(k, ms)
		}
		plain, err := ms[i].Unwrap(ctx, k.Wrapped, dataBound(k))
		if err != nil {
			return fmt.Errorf("vault: the master key %s does not open the data key %s: %w", k.Master, k.ID, err)
		}
		d := dataKey{DataKey: k}
		if d.a, err = aead(plain); err != nil {
			return fmt.Errorf("vault: data key %s: %w", k.ID, err)
		}
		if i > 0 {
			d.Master = ms[0].ID()
			if d.Wrapped, err = ms[0].Wrap(ctx, plain, dataBound(k)); err != nil {
				return fmt.Errorf("vault: wrap the data key %s: %w", k.ID, err)
			}
			rewrap = append(rewrap, d.DataKey)
		}
		clear(plain)
		opened = append(opened, d)
	}
	if len(rewrap) > 0 {
		if err := v.store.Change(ctx, store.VaultChange{Rewrap: rewrap}); err != nil {
			return err
		}
		v.opts.Log.Info("data keys are wrapped by another master key", "keys", len(rewrap), "master", ms[0].ID())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.master = ms[0]
	v.know(opened...)
	return nil
}

func wrongKey(k store.DataKey, ms []Master) error {
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID()
	}
	return fmt.Errorf("vault: the data was sealed under the master key %s, and the one given is %s: give the right one; nothing has been changed",
		k.Master, strings.Join(ids, ", "))
}

// know remembers keys, the oldest first. The lock is held.
func (v *Vault) know(keys ...dataKey) {
	if v.keys == nil {
		v.keys, v.newest = map[string]dataKey{}, map[string]dataKey{}
	}
	for _, k := range keys {
		v.keys[keyName(k.Tenant, k.ID)] = k
		if last, ok := v.newest[k.Tenant]; !ok || !k.CreatedAt.Before(last.CreatedAt) {
			v.newest[k.Tenant] = k
		}
	}
}

// begin seals a store for the first time.
func (v *Vault) begin(ctx context.Context) error {
	cells, err := v.store.Cells(ctx, answers)
	if err != nil {
		return err
	}
	for _, c := range cells {
		if _, _, ok := split(c.Value); ok {
			// Unless another process has sealed it since the keys were read.
			if keys, err := v.store.Keys(ctx); err != nil || len(keys) > 0 {
				return errors.Join(err, store.ErrStale)
			}
			return errors.New("vault: the data holds sealed values, and the keys that open them are gone from it: restore a whole backup; nothing has been changed")
		}
	}
	ms, err := v.masters(ctx, true)
	if err != nil {
		return err
	}
	b := batch{v: v, master: ms[0], keys: map[string]dataKey{}}
	if _, err := b.key(ctx, ""); err != nil { // its being there says that the store is sealed
		return err
	}
	for _, c := range cells {
		if err := b.seal(ctx, c, c.Value); err != nil {
			return err
		}
	}
	if err := v.store.Change(ctx, b.change); err != nil {
		return err
	}
	v.mu.Lock()
	v.master = ms[0]
	for _, k := range b.keys {
		v.know(k)
	}
	v.mu.Unlock()
	if len(cells) > 0 {
		v.opts.Log.Info("what was secret in the data is sealed now", "values", len(cells), "master", ms[0].ID())
		if err := v.store.Scrub(ctx); err != nil {
			v.opts.Log.Warn("copies of what was open may be left in unused parts of the database's files", "err", err)
		}
	}
	return nil
}

// batch gathers a change.
type batch struct {
	v      *Vault
	master Master
	keys   map[string]dataKey // by tenant
	change store.VaultChange
}

// key is the tenant's data key of this batch; it is made when first asked for.
func (b *batch) key(ctx context.Context, tenant string) (dataKey, error) {
	if k, ok := b.keys[tenant]; ok {
		return k, nil
	}
	k, err := newDataKey(ctx, b.master, tenant, b.v.opts.Clock.Now())
	if err == nil {
		b.keys[tenant] = k
		b.change.Add = append(b.change.Add, k.DataKey)
	}
	return k, err
}

func (b *batch) seal(ctx context.Context, c store.Cell, plain []byte) error {
	k, err := b.key(ctx, c.Tenant)
	if err == nil {
		b.change.Replace = append(b.change.Replace, store.Replaced{Cell: c, New: seal(k.a, k.ID, plain, cellBound(c))})
	}
	return err
}

func newDataKey(ctx context.Context, m Master, tenant string, now time.Time) (dataKey, error) {
	var name [12]byte
	plain := make([]byte, KeySize)
	rand.Read(name[:])
	rand.Read(plain)
	defer clear(plain)
	k := dataKey{DataKey: store.DataKey{
		Tenant: tenant, ID: dataPrefix + base64.RawURLEncoding.EncodeToString(name[:]), Master: m.ID(), CreatedAt: now,
	}}
	var err error
	if k.a, err = aead(plain); err != nil {
		return k, err
	}
	if k.Wrapped, err = m.Wrap(ctx, plain, dataBound(k.DataKey)); err != nil {
		return k, fmt.Errorf("vault: wrap a data key: %w", err)
	}
	return k, nil
}

// sealing is the key that seals for a tenant; it is made when first needed.
func (v *Vault) sealing(ctx context.Context, tenant string) (dataKey, error) {
	v.mu.RLock()
	k, ok := v.newest[tenant]
	v.mu.RUnlock()
	if ok {
		return k, nil
	}
	v.rotating.Lock()
	defer v.rotating.Unlock()
	v.mu.RLock()
	k, ok = v.newest[tenant]
	m := v.master
	v.mu.RUnlock()
	if ok {
		return k, nil
	}
	k, err := newDataKey(ctx, m, tenant, v.opts.Clock.Now())
	if err == nil {
		// It is no part of what its first value is sealed for.
		err = v.store.Change(store.Unaudited(ctx), store.VaultChange{Add: []store.DataKey{k.DataKey}})
	}
	if err != nil {
		return k, err
	}
	v.mu.Lock()
	v.know(k)
	v.mu.Unlock()
	return k, nil
}

// Seal closes a value of a tenant for one place.
func (v *Vault) Seal(ctx context.Context, tenant string, plain, bound []byte) ([]byte, error) {
	k, err := v.sealing(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return seal(k.a, k.ID, plain, bound), nil
}

// Unseal opens a value that was closed for the same tenant and place. A key that is
// not known may be one that another replica has made.
func (v *Vault) Unseal(ctx context.Context, tenant string, sealed, bound []byte) ([]byte, error) {
	id, box, ok := split(sealed)
	if !ok {
		return nil, ErrSealed
	}
	find := func() (dataKey, bool) {
		v.mu.RLock()
		defer v.mu.RUnlock()
		k, ok := v.keys[keyName(tenant, id)]
		return k, ok
	}
	k, ok := find()
	if !ok {
		keys, err := v.store.Keys(ctx)
		if err == nil {
			err = v.unlock(ctx, keys)
		}
		if err != nil {
			return nil, err
		}
		if k, ok = find(); !ok {
			return nil, ErrSealed
		}
	}
	plain, err := k.a.Open(nil, nil, box, bound)
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

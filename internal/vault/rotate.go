package vault

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/store"
)

// Rotated says what a rotation has done.
type Rotated struct {
	Master string `json:"master"`   // id of the master key in use
	Keys   int    `json:"dataKeys"` // data keys made
	Values int    `json:"values"`   // values sealed anew
}

// RotateMaster asks the ring for its keys again and wraps every data key by the
// first of them. What the data keys seal is not touched, and nothing stands still.
func (v *Vault) RotateMaster(ctx context.Context) (Rotated, error) {
	v.rotating.Lock()
	defer v.rotating.Unlock()
	keys, err := v.store.Keys(ctx)
	if err == nil {
		err = v.unlock(ctx, keys)
	}
	if err != nil {
		return Rotated{}, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	return Rotated{Master: v.master.ID()}, nil
}

// RotateData makes a new data key for every tenant that has one, and seals every
// value anew. Older data keys stay, since recorded answers name them until they
// expire.
func (v *Vault) RotateData(ctx context.Context) (Rotated, error) {
	v.rotating.Lock()
	defer v.rotating.Unlock()
	for range 16 { // a value that changes meanwhile is looked at again
		out, err := v.reseal(ctx)
		if !errors.Is(err, store.ErrStale) {
			return out, err
		}
	}
	return Rotated{}, errors.New("vault: values change faster than they can be sealed anew")
}

func (v *Vault) reseal(ctx context.Context) (Rotated, error) {
	v.mu.RLock()
	b := batch{v: v, master: v.master, keys: map[string]dataKey{}}
	tenants := make([]string, 0, len(v.newest))
	for t := range v.newest {
		tenants = append(tenants, t)
	}
	v.mu.RUnlock()
	for _, t := range tenants {
		if _, err := b.key(ctx, t); err != nil {
			return Rotated{}, err
		}
	}
	cells, err := v.store.Cells(ctx, answers)
	if err != nil {
		return Rotated{}, err
	}
	for _, c := range cells {
		plain, err := v.Unseal(ctx, c.Tenant, c.Value, cellBound(c))
		if err == nil {
			err = b.seal(ctx, c, plain)
			clear(plain)
		}
		if err != nil {
			return Rotated{}, fmt.Errorf("a value of kind %s: %w", c.Kind, err)
		}
	}
	if err := v.store.Change(ctx, b.change); err != nil {
		return Rotated{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range b.keys {
		v.know(k)
	}
	return Rotated{Master: v.master.ID(), Keys: len(b.keys), Values: len(cells)}, nil
}

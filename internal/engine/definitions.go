package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/store"
)

// maxDefinitions bounds the compiled definitions kept in memory.
const maxDefinitions = 1024

// Definitions compiles workflow versions and keeps the ones in use. A version
// never changes, so a compiled one never goes stale; which version is the
// latest is asked of the store every time it matters.
type Definitions struct {
	store   store.Workflows
	catalog flow.Catalog

	mu   sync.RWMutex
	byID map[defKey]*flow.Workflow
}

type defKey struct{ tenant, id, version string }

// NewDefinitions makes an empty cache over a store.
func NewDefinitions(s store.Workflows, c flow.Catalog) *Definitions {
	return &Definitions{store: s, catalog: c, byID: map[defKey]*flow.Workflow{}}
}

// Get returns a compiled version, or the latest one if version is empty. It
// fails with store.ErrNotFound if the tenant has no such workflow.
func (d *Definitions) Get(ctx context.Context, tenant, id, version string) (*flow.Workflow, error) {
	if version != "" {
		d.mu.RLock()
		w := d.byID[defKey{tenant, id, version}]
		d.mu.RUnlock()
		if w != nil {
			return w, nil
		}
	}
	row, err := d.store.Get(ctx, tenant, id, version)
	if err != nil {
		return nil, err
	}
	key := defKey{tenant, id, row.Version}
	d.mu.RLock()
	w := d.byID[key]
	d.mu.RUnlock()
	if w != nil {
		return w, nil
	}
	w, err = flow.Load(row.Definition, d.catalog)
	if err != nil {
		return nil, defect{fmt.Errorf("workflow %s version %s cannot be used any more: %w", id, row.Version, err)}
	}
	d.keep(key, w)
	return w, nil
}

func (d *Definitions) keep(key defKey, w *flow.Workflow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byID) >= maxDefinitions {
		// Any entry will do: a version that is needed again is compiled again.
		for k := range d.byID {
			delete(d.byID, k)
			break
		}
	}
	d.byID[key] = w
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/problem"
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
// fails with store.ErrNotFound if the tenant has no such workflow, and with
// node_config_invalid if this host cannot use it any more.
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
		return nil, defect{unusable(id, row.Version, err)}
	}
	d.keep(key, w)
	return w, nil
}

// unusable is the failure of a registered version that does not compile any more: a
// node type it names is gone from this host, or takes other settings now. That is no
// secret and no fault of the host's, so that whoever asks for it is told.
func unusable(id, version string, err error) error {
	var issues flow.Issues
	if !errors.As(err, &issues) || len(issues) == 0 {
		return fmt.Errorf("workflow %s version %s cannot be read: %w", id, version, err)
	}
	p := problem.New(problem.NodeConfigInvalid, "workflow %s version %s cannot be used here any more: %s", id, version, issues[0].Message).
		With("field", issues[0].Field).With("workflowId", id).With("workflowVersion", version)
	p.Cause = err
	if i := issues[0]; i.Capability != "" {
		p = p.With("requiredCapability", i.Capability).With("offendingTypeId", i.TypeID).With("nodeId", i.NodeID)
	}
	return p
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

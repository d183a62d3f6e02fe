package fermata

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fermata-run/fermata/internal/builtin"
	"github.com/fermata-run/fermata/internal/effect"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/node"
)

// catalog holds the node types of a host. It changes only until the host starts.
type catalog struct {
	types  map[string]*node.Type
	seams  effect.Registry     // of the types, and those listed beside them
	own    map[*node.Type]bool // of the program that embeds the host
	frozen atomic.Bool
}

func newCatalog(types []node.Type) (*catalog, error) {
	c := &catalog{types: make(map[string]*node.Type, len(types)), own: map[*node.Type]bool{}}
	for i := range types {
		if err := c.put(&types[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add registers a type of the program that embeds the host.
func (c *catalog) add(t node.Type) error {
	if err := c.put(&t); err != nil {
		return err
	}
	c.own[&t] = true
	return nil
}

func (c *catalog) put(t *node.Type) error {
	switch {
	case c.frozen.Load():
		return errors.New("fermata: node types must be registered before the host starts")
	case !ids.ValidTypeID(t.ID):
		return fmt.Errorf("fermata: %q is not a node type id: want dotted segments such as acme.mail.send", t.ID)
	case t.Run == nil:
		return fmt.Errorf("fermata: node type %s has no Run function", t.ID)
	case c.types[t.ID] != nil:
		return fmt.Errorf("fermata: node type %s is registered already", t.ID)
	case t.Pure && len(t.Seams) > 0:
		return fmt.Errorf("fermata: node type %s is pure and has seams: a pure node reaches nothing outside", t.ID)
	}
	if err := c.seams.Add(t.Seams...); err != nil {
		return fmt.Errorf("fermata: node type %s: %w", t.ID, err)
	}
	c.types[t.ID] = t
	return nil
}

func (c *catalog) freeze() { c.frozen.Store(true) }

// Type implements flow.Catalog.
func (c *catalog) Type(id string) (*node.Type, bool) {
	t, ok := c.types[id]
	return t, ok
}

// quick reports whether a type's pure calls are known to return.
func (c *catalog) quick(t *node.Type) bool { return !c.own[t] }

// BuiltinNodes lists the node types every host has (docs/nodes.md), to check
// definitions without opening a host.
func BuiltinNodes() []node.Type {
	return builtin.All(builtin.Deps{Egress: egress.New(egress.Options{})})
}

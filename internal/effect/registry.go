package effect

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-run/fermata/node"
)

// Seam is a way out of the host.
type Seam = node.Seam

// Guarded is what guards a seam that does not say otherwise.
const Guarded = "effect.Guard: no call passes unless its run may have effects"

// Registry lists the seams of a host. It is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	seams map[string]Seam
}

// Add lists seams. One that is listed already must be the same.
func (r *Registry) Add(seams ...Seam) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range seams {
		if err := s.Check(); err != nil {
			return err
		}
		if s.GuardedBy == "" {
			s.GuardedBy = Guarded
		}
		if old, ok := r.seams[s.Name]; ok && old != s {
			return fmt.Errorf("seam %s is listed already, as another one", s.Name)
		}
		if r.seams == nil {
			r.seams = map[string]Seam{}
		}
		r.seams[s.Name] = s
	}
	return nil
}

// Has reports whether a seam is listed. A nil Registry lists none.
func (r *Registry) Has(name string) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.seams[name]
	return ok
}

// All returns every seam, by name: what GET /host/effect-seams shows.
func (r *Registry) All() []Seam {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]Seam, 0, len(r.seams))
	for _, s := range r.seams {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Seam) int { return strings.Compare(a.Name, b.Name) })
	return out
}

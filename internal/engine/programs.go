package engine

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-run/fermata/internal/expr"
)

// Bounds of the compiled expressions kept in memory. Nodes of one workflow ask
// for the same few again and again; a source long enough to be written by a
// program is not worth its room.
const (
	maxPrograms      = 1024
	maxProgramSource = 1024
)

// programs keeps the expressions that nodes evaluated last, compiled.
type programs struct {
	mu    sync.RWMutex
	byKey map[string]*expr.Program
}

func (p *programs) compile(source string, extra map[string]json.RawMessage) (*expr.Program, error) {
	names := slices.Sorted(maps.Keys(extra))
	if len(source) > maxProgramSource {
		return expr.Compile(source, names...)
	}
	key := source + "\x00" + strings.Join(names, "\x00")
	p.mu.RLock()
	got := p.byKey[key]
	p.mu.RUnlock()
	if got != nil {
		return got, nil
	}
	made, err := expr.Compile(source, names...)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil || len(p.byKey) >= maxPrograms {
		p.byKey = map[string]*expr.Program{} // what is in use comes back by itself
	}
	p.byKey[key] = made
	return made, nil
}

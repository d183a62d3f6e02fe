package schema

import (
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Compiler returns a new compiler that resolves the identifiers of this package
// and nothing else, and asserts formats. It is for a caller with a schema of its
// own that refers to these; as every compiler, it serves one goroutine.
func Compiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(loader{})
	c.AssertFormat()
	return c
}

// loader finds embedded schemas. A reference that leads out of the program is an
// error, so that no document can make us fetch anything.
type loader struct{}

func (loader) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, Prefix)
	if !ok {
		return nil, fmt.Errorf("schema %q is not one of ours, and remote references are not followed", url)
	}
	b, ok := V2(name)
	if !ok {
		return nil, fmt.Errorf("no schema is called %q", name)
	}
	return decode(b)
}

// cache holds what was compiled so far, by location. One compiler does all the
// work, so that a schema many others refer to is compiled once.
var cache struct {
	mu       sync.RWMutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
}

// compiled returns the schema at a location: an identifier, with a fragment for
// one of its definitions.
func compiled(location string) (*jsonschema.Schema, error) {
	cache.mu.RLock()
	s := cache.schemas[location]
	cache.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if s := cache.schemas[location]; s != nil {
		return s, nil
	}
	if cache.compiler == nil {
		cache.compiler = Compiler()
		cache.schemas = map[string]*jsonschema.Schema{}
	}
	s, err := cache.compiler.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	cache.schemas[location] = s
	return s, nil
}

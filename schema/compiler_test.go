package schema

import (
	"sync"
	"testing"
)

// Nothing is compiled before it is asked for, and the first to ask may be many.
func TestFirstUseFromManyGoroutines(t *testing.T) {
	cache.mu.Lock()
	cache.compiler, cache.schemas = nil, nil
	cache.mu.Unlock()
	var wg sync.WaitGroup
	for range 8 {
		for _, name := range []string{"run-snapshot", "capabilities", "workflow-definition"} {
			wg.Go(func() {
				if Validate(name, []byte(`{}`)) == nil {
					t.Errorf("%s accepts an empty object", name)
				}
			})
		}
		wg.Go(func() {
			if err := ValidatePayload("node.started", []byte(`{"nodeId":"n","typeId":"core.noop"}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

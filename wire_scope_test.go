package fermata_test

import (
	"sync"
	"testing"
)

// A caller who asks for it gets no second active run of a scope (spec v2 runs.md
// §Create), however many ask at once.
func TestWireScopeAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	body := func(scope string) map[string]any {
		return map[string]any{"workflowId": "gate", "scopeId": scope}
	}
	for round := range 5 {
		scope := "order-" + string(rune('a'+round))
		var wg sync.WaitGroup
		got := make([]answer, 10)
		for i := range got {
			wg.Go(func() { got[i] = s.do("POST", "/runs", body(scope), "OpenWOP-Dedup", "enforce") })
		}
		wg.Wait()
		id := ""
		for _, a := range got {
			if a.status == 201 {
				if id != "" {
					t.Fatalf("two runs of %s", scope)
				}
				id = a.json["runId"].(string)
			}
		}
		for _, a := range got {
			if a.status == 201 {
				continue
			}
			a.refused(t, 409, "run_already_active")
			if a.json["details"].(map[string]any)["runId"] != id || a.header.Get("Retry-After") == "" {
				t.Errorf("%s, Retry-After %q", a.body, a.header.Get("Retry-After"))
			}
		}
		s.do("POST", "/runs", body(scope)).want(t, 201) // whoever does not ask
		s.do("POST", "/runs", map[string]any{"workflowId": "gate"}, "OpenWOP-Dedup", "enforce").want(t, 201)
	}
	// The scope is free again once its run is over, also after a restart.
	id := s.do("POST", "/runs", body("free"), "OpenWOP-Dedup", "enforce").want(t, 201).json["runId"].(string)
	s.restart()
	s.do("POST", "/runs", body("free"), "OpenWOP-Dedup", "enforce").refused(t, 409, "run_already_active")
	s.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
	s.do("POST", "/runs", body("free"), "OpenWOP-Dedup", "enforce").want(t, 201)
}

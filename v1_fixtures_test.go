package fermata_test

import (
	"slices"
	"testing"
)

// flatOf is a request of the other major as a client of v1 writes it.
func flatOf(body map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range body {
		if k != "configurable" {
			out[k] = v
			continue
		}
		flat := map[string]any{}
		for k, v := range v.(map[string]any)["run"].(map[string]any) {
			flat[k] = v
		}
		out[k] = flat
	}
	return out
}

// ownCodes are the codes that workflows give their failures; v1 shows them.
var ownCodes = map[string]string{
	"conformance-failure":                           "conformance_test_failure", // what core.fail says unless told otherwise
	"conformance-dispatch-deterministic-fail-child": "hvmap_1b_failed_fixture",
}

// The protocol's own workflows, registered and run as a client of v1 does: each ends as
// its description says, or is refused for what this host lacks.
func TestV1Fixtures(t *testing.T) {
	t.Parallel()
	files := fixtureFiles(t)
	s := start(t, withV1)
	known := map[string]bool{}
	for id, def := range files {
		a := s.do("POST", "/v1/workflows", def)
		code, details := errorOf(a)
		switch {
		case a.status == 201:
			known[id] = true
			s.do("GET", "/v1/workflows/"+id, nil).want(t, 200)
		case a.status != 422 || code != "capability_required" || details["requiredCapability"] == nil || details["offendingTypeId"] == nil || details["nodeId"] == nil:
			t.Errorf("%s: %d %s", id, a.status, a.body)
		default:
			s.do("POST", "/v1/runs", map[string]any{"workflowId": id}).refused(t, 404, "not_found")
		}
	}
	for id, want := range outcomes {
		if !known[id] {
			t.Errorf("%s was not accepted", id)
			continue
		}
		t.Run(id, func(t *testing.T) {
			s := s.as(t)
			run := s.run1(id, flatOf(want.body))
			if want.waits != "" {
				if x, _ := s.await1(run, want.waits)["interrupt"].(map[string]any); x["nodeId"] != want.node {
					t.Errorf("interrupt %v", x)
				}
			}
			for _, a := range want.answers {
				s.answer(run, want.node, a).want(t, 200) // as the other major names it, under an id without a tenant
			}
			snap := s.await1(run, want.status)
			code := want.code
			if own, ok := ownCodes[id]; ok {
				code = own
			}
			if e, _ := snap["error"].(map[string]any); code != "" && e["code"] != code {
				t.Errorf("error %v, want code %s", e, code)
			}
		})
	}
	kinds := []string{}
	for id := range known {
		if _, listed := outcomes[id]; !listed {
			kinds = append(kinds, id)
		}
	}
	slices.Sort(kinds)
	for _, id := range kinds {
		if _, ok := skipped[id]; !ok {
			t.Errorf("%s runs here, but nothing says how it ends", id)
		}
	}
}

package api

import (
	"slices"
	"testing"
)

func TestMatch(t *testing.T) {
	table := NewTable([]Route{
		{Method: "GET", Pattern: "/runs", ID: "list"}, {Method: "POST", Pattern: "/runs", ID: "create"},
		{Method: "POST", Pattern: "/runs:bulk-cancel", ID: "bulk"}, {Method: "GET", Pattern: "/runs/{runId}", ID: "get"},
		{Method: "POST", Pattern: "/runs/{runId}:pause", ID: "pause"}, {Method: "GET", Pattern: "/runs/{runId}:diff", ID: "diff"},
		{Method: "POST", Pattern: "/runs/{runId}/interrupts/{nodeId}", ID: "resolve"}, {Method: "GET", Pattern: "/runs/{runId}/events", ID: "stream", Stream: true},
		{Method: "GET", Pattern: "/runs/latest", ID: "latest"},
	})
	for _, c := range []struct {
		method, path, id, runID string
		allowed                 []string
	}{
		{"GET", "/runs", "list", "", nil},
		{"HEAD", "/runs", "list", "", nil},
		{"POST", "/runs:bulk-cancel", "bulk", "", nil},
		{"GET", "/runs/t~2Fx", "get", "t~2Fx", nil},
		{"GET", "/runs/t%2Fx", "get", "t/x", nil},
		{"GET", "/runs/t%252Fx", "get", "t%2Fx", nil},
		{"GET", "/runs/anon:a~2Fb", "get", "anon:a~2Fb", nil},
		{"GET", "/runs/anon:a%2fb", "get", "anon:a/b", nil},
		{"GET", "/runs/a~2Fb:fork", "", "", nil}, // a verb that no row has
		{"GET", "/runs/anon:a%2Fb:fork", "", "", nil},
		{"POST", "/runs/a:b", "", "", nil},
		{"GET", "/runs/latest", "latest", "", nil},
		{"POST", "/runs/x:pause", "pause", "x", nil},
		{"POST", "/runs/x:y~2Fz:pause", "pause", "x:y~2Fz", nil},
		{"GET", "/runs/x:diff", "diff", "x", nil},
		{"GET", "/runs/x:pause", "", "", []string{"POST"}},
		{"POST", "/runs/x:diff", "", "", []string{"GET"}},
		{"POST", "/runs/:pause", "", "", nil}, // no id before the verb
		{"POST", "/runs/x/interrupts/n%3A1", "resolve", "x", nil},
		{"HEAD", "/runs/x/events", "", "", []string{"GET"}},
		{"DELETE", "/runs", "", "", []string{"GET", "POST"}},
		{"GET", "/runs/", "", "", nil},
		{"GET", "/runs//events", "", "", nil},
		{"GET", "/runs/%zz", "", "", nil},
		{"GET", "/RUNS", "", "", nil},
		{"GET", "/runs/x/events/", "", "", nil},
		{"GET", "runs", "list", "", nil},
		{"GET", "", "", "", nil},
		{"GET", "*", "", "", nil},
	} {
		r, params, allowed := table.Match(c.method, c.path)
		id := ""
		if r != nil {
			id = r.ID
		}
		slices.Sort(allowed)
		if id != c.id || params["runId"] != c.runID || !slices.Equal(allowed, c.allowed) {
			t.Errorf("%s %s: %q %v, allowed %v; want %q %q, %v", c.method, c.path, id, params, allowed, c.id, c.runID, c.allowed)
		}
	}
}

// The order of the table decides nothing.
func TestMatchWhateverTheOrder(t *testing.T) {
	routes := []Route{{Method: "POST", Pattern: "/a/{x}"}, {Method: "POST", Pattern: "/a/{x}:v"}, {Method: "POST", Pattern: "/a/b"}}
	for range 2 {
		for path, want := range map[string]string{"/a/1": "/a/{x}", "/a/1:v": "/a/{x}:v", "/a/b": "/a/b"} {
			if r, _, _ := NewTable(routes).Match("POST", path); r == nil || r.Pattern != want {
				t.Errorf("%s: %v", path, r)
			}
		}
		slices.Reverse(routes)
	}
}

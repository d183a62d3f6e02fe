package fermata_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pages reads a list to its end and returns the run ids of each page.
func (s *server) pages(query string) [][]string {
	s.t.Helper()
	var out [][]string
	cursor := ""
	for {
		q := "?" + query
		if cursor != "" {
			q += "&cursor=" + url.QueryEscape(cursor)
		}
		a := s.do("GET", "/runs"+q, nil).want(s.t, 200)
		ids := []string{}
		for _, r := range a.json["runs"].([]any) {
			ids = append(ids, r.(map[string]any)["runId"].(string))
		}
		out = append(out, ids)
		if cursor = a.str("nextCursor"); cursor == "" {
			return out
		}
		if len(out) > 1000 {
			s.t.Fatal("the list does not end")
		}
	}
}

// Runs made at the same instant have a place in the list all the same: pages
// hold each run once, newest first, however many come in meanwhile.
func TestWireListPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	var all []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 23 {
		wg.Go(func() {
			id := s.run([]string{"gate", "one"}[i%2], map[string]any{"tags": []string{"t"}, "metadata": map[string]any{"secret": "payload"}, "inputs": map[string]any{"in": "payload"}})
			mu.Lock()
			defer mu.Unlock()
			all = append(all, id)
		})
	}
	wg.Wait()
	for _, id := range all {
		s.await(id, "waiting-approval", "completed")
	}
	slices.Sort(all)
	slices.Reverse(all)
	for _, limit := range []int{1, 7, 22, 23, 24, 200, 100_000} {
		pages := s.pages(fmt.Sprintf("limit=%d", limit))
		if got := slices.Concat(pages...); !slices.Equal(got, all) {
			t.Errorf("limit %d: %d runs in %d pages, want %d\n%v", limit, len(got), len(pages), len(all), got)
		}
		for _, p := range pages[:len(pages)-1] {
			if len(p) != min(limit, 200) {
				t.Errorf("limit %d: a page of %d", limit, len(p))
			}
		}
	}
	// Runs that come in between two pages do not shift the second.
	first := s.do("GET", "/runs?limit=10", nil).want(t, 200)
	newer := s.run("one")
	rest := s.do("GET", "/runs?limit=100&cursor="+first.str("nextCursor"), nil).want(t, 200)
	if n := len(rest.json["runs"].([]any)); n != 13 || strings.Contains(string(rest.body), newer) {
		t.Errorf("the second page has %d runs: %s", n, rest.body)
	}
	if strings.Contains(string(first.body), "payload") || strings.Contains(string(first.body), "nodeStates") {
		t.Errorf("the list holds payloads: %s", first.body)
	}
	if !strings.Contains(string(first.body), `"tags":["t"]`) {
		t.Errorf("the list lacks tags: %s", first.body)
	}
}

func TestWireListFilters(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	s.register(gate("gate-2"))
	s.register(flow("one", []any{step("a", "core.noop", nil)}, []any{}))
	want := map[string][]string{}
	add := func(workflow, status string) {
		id := s.run(workflow)
		switch status {
		case "cancelled":
			s.await(id, "waiting-approval")
			s.do("POST", "/runs/"+seg(id)+"/cancel", nil).want(t, 200)
		case "paused":
			s.await(id, "waiting-approval")
			s.do("POST", "/runs/"+seg(id)+":pause", nil).want(t, 202)
		}
		s.await(id, status)
		for _, key := range []string{"", "workflowId=" + workflow, "status=" + status, "workflowId=" + workflow + "&status=" + status} {
			want[key] = append([]string{id}, want[key]...)
		}
	}
	for range 3 {
		add("gate", "waiting-approval")
		add("one", "completed")
		add("gate-2", "waiting-approval")
		add("gate", "cancelled")
		add("gate-2", "paused")
	}
	for query, ids := range want {
		for _, limit := range []string{"limit=1", "limit=2", "limit=50"} {
			if got := slices.Concat(s.pages(query + "&" + limit)...); !slices.Equal(got, ids) {
				t.Errorf("%s %s: %v, want %v", query, limit, got, ids)
			}
		}
	}
	for _, nothing := range []string{"status=failed", "workflowId=nobody", "workflowId=one&status=paused"} {
		if got := s.pages(nothing); len(got) != 1 || len(got[0]) != 0 {
			t.Errorf("%s: %v", nothing, got)
		}
	}
	// A filter the host does not advertise is ignored.
	if got := s.pages("tag=x&limit=50"); len(got[0]) != 15 {
		t.Errorf("an unknown filter left %d", len(got[0]))
	}
}

func TestWireListRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for range 3 {
		s.run("gate")
	}
	cursor := s.do("GET", "/runs?limit=1", nil).str("nextCursor")
	filtered := s.do("GET", "/runs?limit=1&workflowId=gate", nil).str("nextCursor")
	if cursor == "" || filtered == "" {
		t.Fatal("no cursors")
	}
	flipped := []byte(cursor)
	flipped[3] ^= 1
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=-1": "limit", "limit=x": "limit", "limit=": "limit", "limit=1.5": "limit", "limit=%2B1": "limit", "limit=99999999999999999999": "limit",
		"status=": "status", "status=Running": "status", "status=running,paused": "status", "workflowId=": "workflowId", "workflowId=a%20b": "workflowId",
		"cursor=": "cursor", "cursor=x": "cursor", "cursor=" + cursor + "A": "cursor", "cursor=" + string(flipped): "cursor", "cursor=" + cursor[:len(cursor)-1]: "cursor",
		"cursor=" + cursor + "&workflowId=gate": "cursor", "cursor=" + filtered: "cursor", "cursor=" + filtered + "&workflowId=gate&status=paused": "cursor",
		"cursor=" + strings.Repeat("A", 5000): "cursor", "cursor=%00": "cursor",
	} {
		a := s.do("GET", "/runs?"+query, nil).refused(t, 400, "validation_error")
		if got := a.json["details"].(map[string]any)["field"]; got != field {
			t.Errorf("%.60s: details name %v, want %s", query, got, field)
		}
	}
	other := s.key("other-key-other-key-other-key-other-key", "other", "*")
	s.do("GET", "/runs?cursor="+cursor, nil, "Authorization", other).refused(t, 400, "validation_error")
	for _, list := range []string{"/host/fermata/workflows", "/host/fermata/interrupts", "/host/fermata/schedules"} {
		for _, query := range []string{"limit=0", "limit=x", "cursor=x", "cursor=" + cursor} {
			s.do("GET", list+"?"+query, nil).refused(t, 400, "validation_error")
		}
	}
}

// The inbox and the list of workflows page in the same way.
func TestWireOtherLists(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 5 {
		id := fmt.Sprintf("gate-%d", i)
		s.register(gate(id))
		s.await(s.run(id), "waiting-approval")
	}
	for path, c := range map[string]struct{ member, key string }{
		"/host/fermata/workflows": {"workflows", "workflowId"}, "/host/fermata/interrupts": {"interrupts", "interruptId"},
	} {
		seen, cursor, n := map[string]bool{}, "", 0
		for {
			a := s.do("GET", path+"?limit=2"+cursor, nil).want(t, 200)
			for _, x := range a.json[c.member].([]any) {
				seen[x.(map[string]any)[c.key].(string)] = true
				n++
			}
			if a.str("nextCursor") == "" {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(a.str("nextCursor"))
		}
		if n != 5 || len(seen) != 5 {
			t.Errorf("%s: %d entries, %d of them different", path, n, len(seen))
		}
	}
}

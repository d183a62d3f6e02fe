package conformance_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/conformance"
)

// expired opens a host that has let go of a run.
func expired(t *testing.T) (http.Handler, string) {
	t.Helper()
	ctx := context.Background()
	h, err := fermata.Open(ctx, fermata.Config{DataDir: t.TempDir(), BootstrapKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Stop(ctx) })
	c := h.Client()
	def := `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`
	if _, err := c.PutWorkflow(ctx, json.RawMessage(def)); err != nil {
		t.Fatal(err)
	}
	made, err := c.CreateRun(ctx, client.CreateRunRequest{WorkflowID: "w"})
	if err != nil {
		t.Fatal(err)
	}
	all := time.Duration(0)
	if p, err := h.Prune(ctx, fermata.Prune{OlderThan: &all}); err != nil || p.Total != 1 {
		t.Fatalf("%+v %v", p, err)
	}
	return h.Handler(), made.RunID
}

func TestExpiredRun(t *testing.T) {
	t.Parallel()
	h, id := expired(t)
	statuses := func(h http.Handler) map[string]conformance.Status {
		s := httptest.NewServer(h)
		defer s.Close()
		out := map[string]conformance.Status{}
		for _, x := range look(t, s.URL, func(c *conformance.Config) { c.Filter, c.ExpiredRun = `^retention\.`, id }).Results {
			out[x.ID] = x.Status
		}
		return out
	}
	good := statuses(h)
	if good["retention.gone"] != conformance.Pass || good["retention.listed"] != conformance.Pass || good["retention.fork"] == conformance.Fail {
		t.Errorf("%v", good)
	}
	// Hosts that forget, that answer in half, and that go on listing.
	for name, tc := range map[string]struct {
		check  string
		damage func(http.Handler) http.Handler
	}{
		"not found":   {"retention.gone", instead(when("GET", aRun), 404, `{"error":"not_found","message":"x"}`)},
		"still there": {"retention.gone", instead(when("GET", aPoll), 200, `{}`)},
		"listed": {"retention.listed", answers(when("GET", create), object(func(m map[string]any) {
			m["runs"] = append(m["runs"].([]any), map[string]any{"runId": id, "workflowId": "w", "status": "completed", "eventLogSchemaVersion": 3,
				"owner": map[string]any{"tenant": "default", "subject": map[string]any{"tenant": "default", "subjectId": "s", "issuer": "urn:x", "kind": "service"}}})
		}))},
	} {
		if got := statuses(tc.damage(h))[tc.check]; got == conformance.Pass || got == conformance.Inapplicable {
			t.Errorf("%s: %s is %s", name, tc.check, got)
		}
	}
	// Without such a run nothing is said.
	s := httptest.NewServer(h)
	defer s.Close()
	for _, x := range look(t, s.URL, func(c *conformance.Config) { c.Filter = `^retention\.` }).Results {
		if x.Status != conformance.Inapplicable {
			t.Errorf("%s is %s", x.ID, x.Status)
		}
	}
}

package fermata_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
)

// nightly is a workflow with one schedule.
func nightly(id, version string, config map[string]any) map[string]any {
	return flow(id, []any{step("a", "core.noop", nil)}, []any{}, map[string]any{
		"version": version, "variables": []any{map[string]any{"name": "n", "type": "number"}},
		"triggers": []any{map[string]any{"id": "tick", "type": "schedule", "config": config}},
	})
}

func TestWireScheduleRefusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	for field, config := range map[string]map[string]any{
		"triggers[0].config.cron":     {"cron": "0 25 * * *"},
		"triggers[0].config.timezone": {"cron": "0 3 * * *", "timezone": "Europe/Atlantis"},
		"triggers[0].config.every":    {"every": "10s"},
		"triggers[0].config.catchUp":  {"every": "10m", "catchUp": "some"},
		"triggers[0].config.overlap":  {"every": "10m", "overlap": "queue"},
		"triggers[0].config.jitter":   {"every": "10m", "jitter": "1m"},
		"triggers[0].config.inputs.n": {"every": "10m", "inputs": map[string]any{"n": "seven"}},
	} {
		def := nightly("nightly", "1", config)
		for _, a := range []answer{s.do("PUT", "/host/fermata/workflows/nightly", def), s.do("POST", "/host/fermata/workflows:validate", def)} {
			a.refused(t, 400, "validation_error")
			if got := a.json["details"].(map[string]any)["field"]; got != field {
				t.Errorf("details name %v, want %s: %s", got, field, a.body)
			}
		}
	}
	def := nightly("nightly", "1", map[string]any{"every": "10m"})
	def["triggers"].([]any)[0].(map[string]any)["nodeId"] = "a"
	s.do("PUT", "/host/fermata/workflows/nightly", def).refused(t, 400, "validation_error")
	var many []any
	for i := range 21 {
		many = append(many, map[string]any{"id": fmt.Sprint("t", i), "type": "schedule", "config": map[string]any{"every": "10m"}})
	}
	def["triggers"] = many
	s.do("PUT", "/host/fermata/workflows/nightly", def).refused(t, 400, "validation_error")
	if got := s.schedules(); len(got) != 0 {
		t.Errorf("schedules are there: %v", got)
	}
	writer := s.key("writer-writer-writer-writer-writer", "default", "workflows:write")
	s.do("PUT", "/host/fermata/workflows/nightly", nightly("nightly", "1", map[string]any{"every": "10m"}), "Authorization", writer).refused(t, 403, "forbidden")
}

// schedules reads the list to its end, by pages of two.
func (s *server) schedules() (out []map[string]any) {
	s.t.Helper()
	for cursor := ""; ; {
		a := s.do("GET", "/host/fermata/schedules?limit=2"+cursor, nil).want(s.t, 200)
		for _, x := range a.json["schedules"].([]any) {
			out = append(out, x.(map[string]any))
		}
		if a.str("nextCursor") == "" {
			return out
		}
		cursor = "&cursor=" + url.QueryEscape(a.str("nextCursor"))
	}
}

func TestWireScheduleList(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i := range 5 {
		s.register(nightly(fmt.Sprint("w", i), "1", map[string]any{"cron": "0 3 29 2 *", "timezone": "Europe/Berlin", "inputs": map[string]any{"n": 1}}))
	}
	list := s.schedules()
	for i, x := range list {
		next, _ := time.Parse(time.RFC3339, x["nextTick"].(string))
		if x["workflowId"] != fmt.Sprint("w", i) || x["triggerId"] != "tick" || x["timezone"] != "Europe/Berlin" || x["overlap"] != "allow" ||
			x["catchUp"] != "last" || next.Format("01-02T15:04") != "02-29T02:00" || x["inputs"] != nil || x["lastTick"] != nil {
			t.Errorf("schedule %d is %v", i, x)
		}
	}
	if len(list) != 5 {
		t.Errorf("%d schedules", len(list))
	}
	other := s.key("other-key-other-key-other-key-other-key", "other", "*")
	if a := s.do("GET", "/host/fermata/schedules", nil, "Authorization", other).want(t, 200); len(a.json["schedules"].([]any)) != 0 {
		t.Errorf("another tenant sees %s", a.body)
	}
	a := s.do("GET", "/host/fermata/schedules?limit=2", nil)
	for _, q := range []string{"limit=0", "cursor=x", "cursor=" + url.QueryEscape(a.str("nextCursor"))} {
		s.do("GET", "/host/fermata/schedules?"+q, nil, "Authorization", other).refused(t, 400, "validation_error")
	}
	s.register(flow("w0", []any{step("a", "core.noop", nil)}, []any{}, map[string]any{"version": "2"}))
	s.do("DELETE", "/host/fermata/workflows/w1", nil).want(t, 204)
	s.register(nightly("w2", "2", map[string]any{"every": "90m"}))
	archived := nightly("w3", "2", map[string]any{"every": "90m"})
	archived["status"] = "archived"
	s.register(archived)
	list = s.schedules()
	if len(list) != 2 || list[0]["workflowId"] != "w2" || list[0]["every"] != "1h30m0s" || list[0]["version"] != "2" || list[1]["workflowId"] != "w4" {
		t.Errorf("schedules are %v", list)
	}
}

// ticked lists the ticks of each workflow's runs, by what their logs begin with.
func (s *server) ticked() map[string][]time.Time {
	s.t.Helper()
	out := map[string][]time.Time{}
	for _, page := range s.pages("limit=100") {
		for _, id := range page {
			e := s.do("GET", "/runs/"+seg(id)+"/events/poll?timeout=1", nil).want(s.t, 200).json["events"].([]any)[0].(map[string]any)
			var p struct {
				WorkflowID string `json:"workflowId"`
				X          struct {
					Trigger struct {
						ID   string    `json:"id"`
						Tick time.Time `json:"tick"`
					} `json:"trigger"`
				} `json:"x-fermata"`
			}
			b, _ := json.Marshal(e["payload"])
			if err := json.Unmarshal(b, &p); err != nil || p.X.Trigger.ID != "tick" {
				s.t.Fatalf("%s begins with %s: %v", id, b, err)
			}
			out[p.WorkflowID] = append(out[p.WorkflowID], p.X.Trigger.Tick)
		}
	}
	for _, ticks := range out {
		slices.SortFunc(ticks, time.Time.Compare)
	}
	return out
}

// caughtUp waits, within a bound, until no schedule is behind.
func (s *server) caughtUp() {
	s.t.Helper()
	for range 3000 {
		if !slices.ContainsFunc(s.schedules(), func(x map[string]any) bool {
			next, err := time.Parse(time.RFC3339, x["nextTick"].(string))
			return err != nil || !next.After(time.Now())
		}) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatalf("schedules are behind: %v", s.schedules())
}

// eachMinute wants at least so many ticks of each workflow, one for each minute.
func eachMinute(t *testing.T, ticks map[string][]time.Time, workflows, least int) {
	t.Helper()
	if len(ticks) != workflows {
		t.Errorf("%d workflows have runs, want %d", len(ticks), workflows)
	}
	for id, list := range ticks {
		if len(list) < least {
			t.Errorf("%s: %d runs, want %d or more", id, len(list), least)
		}
		for i := 1; i < len(list); i++ {
			if d := list[i].Sub(list[i-1]); d != time.Minute {
				t.Errorf("%s: ticks %s and %s", id, list[i-1], list[i])
			}
		}
	}
}

// back makes schedules due again that came up so many minutes ago, as if nobody had
// been there.
func back(minutes int) string {
	return fmt.Sprintf(`UPDATE schedules SET next_at = next_at - %[1]d, due_at = next_at - %[1]d`, minutes*60000)
}

// A host comes back after minutes, and once more with a store that has not heard of
// the runs it has made: each tick is one run.
func TestWireATickSurvivesACrash(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(nightly("nightly", "1", map[string]any{"cron": "* * * * *", "catchUp": "all"}))
	for range 2 {
		s.down()
		s.tamper(back(6))
		s.up()
		s.caughtUp()
	}
	eachMinute(t, s.ticked(), 1, 6)
	list := s.schedules()
	if id, _ := list[0]["lastRunId"].(string); s.await(id, "completed")["workflowId"] != "nightly" {
		t.Errorf("schedules are %v", list)
	}
}

// TestReplicasTickOnce: three hosts on one database, all of them behind: every tick is
// one run.
func TestReplicasTickOnce(t *testing.T) {
	t.Parallel()
	pgtest.Shared(t)
	r := replicas(t, 3, func(c *fermata.Config) { c.StoreListen = "" })
	for i := range 8 {
		r[0].register(nightly(fmt.Sprint("w", i), "1", map[string]any{"every": "1m", "catchUp": "all"}))
	}
	u, err := url.Parse(r[0].cfg.Store)
	if err == nil {
		err = pgtest.Shared(t).Exec(t.Context(), strings.Trim(u.Path, "/"), back(15))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r { // what is new wakes whoever hears of it
		s.register(nightly("wake", "1", map[string]any{"every": "8000h"}))
		s.do("DELETE", "/host/fermata/workflows/wake", nil).want(t, 204)
	}
	r[1].caughtUp()
	eachMinute(t, r[2].ticked(), 8, 15)
}

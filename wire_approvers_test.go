package fermata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-run/fermata"
)

func decodeInto(t testing.TB, raw []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

// person is somebody with an API key of their own.
type person struct{ id, auth string }

// person makes a key over the wire.
func (s *server) person(name string, groups, roles []string) person {
	s.t.Helper()
	a := s.do("POST", "/host/fermata/keys", map[string]any{
		"name": name, "scopes": []string{"approvals:respond", "runs:read"},
		"groups": append([]string{}, groups...), "roles": append([]string{}, roles...),
	}).want(s.t, 201)
	if a.header.Get("Cache-Control") != "no-store" || a.str("key") == "" {
		s.t.Errorf("%v %s", a.header, a.body)
	}
	return person{a.str("subjectId"), "Bearer " + a.str("key")}
}

func (s *server) says(p person, id, action string, header ...string) answer {
	s.t.Helper()
	return s.do("POST", "/runs/"+seg(id)+"/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": action}},
		append([]string{"Authorization", p.auth}, header...)...)
}

func show(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// gated starts a run of an approval with the given config, and waits for it.
func (s *server) gated(name string, config map[string]any) string {
	s.t.Helper()
	config["title"] = "?"
	s.register(flow(name, []any{step("ok", "core.approvalGate", config)}, []any{}))
	id := s.run(name)
	s.await(id, "waiting-approval")
	return id
}

// grounds lists by what right each answer in a run's log counted.
func (s *server) grounds(id string) []string {
	s.t.Helper()
	var out []string
	for _, d := range s.docs(id) {
		e := validEvent(s.t, d)
		if e.Type != "approval.received" && e.Type != "interrupt.resolved" && e.Type != "approval.overridden" {
			continue
		}
		var p struct {
			X struct {
				Eligibility, Ref, Source string
				Override                 bool
			} `json:"x-fermata"`
		}
		decodeInto(s.t, e.Payload, &p)
		out = append(out, strings.TrimRight(fmt.Sprintf("%s %s %s %s", e.Type, p.X.Eligibility, p.X.Ref, p.X.Source), " "))
	}
	return out
}

// Groups and roles count on every way in, and what they were is in the log for good.
func TestWireApproverRefs(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob, cid := s.person("ann", []string{"finance"}, nil), s.person("bob", nil, []string{"lead"}), s.person("cid", []string{"lead"}, []string{"finance"})
	var kinds []string
	doc := s.do("GET", "/.well-known/openwop", nil).json["interrupt"].(map[string]any)
	for _, k := range doc["refKinds"].([]any) {
		kinds = append(kinds, k.(string))
	}
	if !slices.Equal(kinds, []string{"principal", "group", "role"}) {
		t.Errorf("refKinds %v", kinds)
	}
	id := s.gated("refs", map[string]any{"requiredApprovals": 3, "approversList": []string{cid.id}, "approverGroupRefs": []string{"finance"}, "approverRoleRefs": []string{"lead"}})
	dan := s.person("dan", []string{"sales"}, nil)
	s.says(dan, id, "accept").refused(t, 403, "forbidden")
	s.answer(id, "ok", yes).refused(t, 403, "forbidden") // every scope, and in no group
	s.issue(id, "ok", nil, "Authorization", dan.auth).refused(t, 403, "forbidden")
	s.issue(id, "ok", nil).refused(t, 403, "forbidden")
	s.says(ann, id, "accept").want(t, 200)
	token := s.issue(id, "ok", nil, "Authorization", bob.auth).want(t, 201).str("token")
	s.restart()
	s.use(token, yes).want(t, 200)
	s.says(cid, id, "accept").want(t, 200)
	s.await(id, "completed")
	want := []string{"approval.received group finance api-key", "approval.received role lead api-key", "interrupt.resolved listed"}
	if got := s.grounds(id); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A quorum is of people: not of answers, nor of ways in.
func TestWireQuorumIsOfPeople(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := s.person("ann", nil, nil), s.person("bob", nil, nil)
	id := s.gated("quorum", map[string]any{"requiredApprovals": 2})
	token := s.issue(id, "ok", nil, "Authorization", ann.auth).want(t, 201).str("token")
	for range 3 {
		s.says(ann, id, "accept").want(t, 200)
		s.use(token, yes).want(t, 200)
	}
	if a := s.says(ann, id, "accept"); a.str("status") != "waiting-approval" {
		t.Errorf("%s", a.body)
	}
	s.says(bob, id, "accept").want(t, 200)
	s.await(id, "completed")
	s.says(bob, id, "accept").refused(t, 409, "interrupt_already_resolved")

	// Many at once, each of them twice: the gate opens once, with its quorum.
	people := make([]person, 8)
	for i := range people {
		people[i] = s.person(fmt.Sprint("p", i), nil, nil)
	}
	for round := range 10 {
		id := s.gated("crowd", map[string]any{"requiredApprovals": 5, "rejectionPolicy": "majority"})
		var taken, late atomic.Int32
		var wg sync.WaitGroup
		for i := range 2 * len(people) {
			wg.Go(func() {
				switch a := s.as(t).says(people[i/2], id, "accept"); a.status {
				case 200:
					taken.Add(1)
				case 409:
					late.Add(1)
				default:
					t.Errorf("%d %s", a.status, a.body)
				}
			})
		}
		wg.Wait()
		s.await(id, "completed")
		by, resolved := map[string]bool{}, 0
		for _, d := range s.docs(id) {
			e := validEvent(t, d)
			var p struct{ ResolvedBy struct{ SubjectID string } }
			switch e.Type {
			case "interrupt.resolved":
				resolved++
				fallthrough
			case "approval.received":
				decodeInto(t, e.Payload, &p)
				by[p.ResolvedBy.SubjectID] = true
			}
		}
		if resolved != 1 || len(by) != 5 || int(taken.Load()+late.Load()) != 2*len(people) {
			t.Fatalf("round %d: %d decisions by %d people, %d answers taken", round, resolved, len(by), taken.Load())
		}
	}
}

func TestWireOverride(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *fermata.Config) { c.OverrideApprovers = []string{"role:boss"} })
	boss, ann := s.person("boss", nil, []string{"boss"}), s.person("ann", []string{"boss"}, nil)
	off := s.gated("off", map[string]any{"requiredApprovals": 2})
	s.says(boss, off, "accept").want(t, 200)
	if st := s.snapshot(off)["status"]; st != "waiting-approval" {
		t.Errorf("a gate without an override is %v", st)
	}
	on := s.gated("on", map[string]any{"requiredApprovals": 3, "overrideBypassesQuorum": true})
	s.says(ann, on, "accept").want(t, 200)
	if st := s.snapshot(on)["status"]; st != "waiting-approval" {
		t.Errorf("after somebody else's vote it is %v", st)
	}
	token := s.issue(on, "ok", nil, "Authorization", boss.auth).want(t, 201).str("token")
	s.use(token, yes).want(t, 200)
	s.await(on, "completed")
	want := []string{"approval.received open", "approval.overridden open  api-key", "interrupt.resolved open  api-key"}
	if got := s.grounds(on); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// An embedder's own directory is asked at every answer; while it is down, gates
// that need it stay shut and say that it is worth trying again.
func TestWireMembersOfAnEmbedder(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	var asked atomic.Int32
	var inside sync.Map
	s := start(t, func(c *fermata.Config) {
		c.Members = func(_ context.Context, p fermata.Party) (groups, roles []string, err error) {
			asked.Add(1)
			if down.Load() {
				return nil, nil, errors.New("no answer")
			}
			if _, ok := inside.Load(p.SubjectID); ok && p.Tenant == "default" && p.Issuer != "" {
				groups = []string{"board"}
			}
			return groups, nil, nil
		}
	})
	ann := s.person("ann", []string{"board"}, nil) // what the key says does not count here
	id := s.gated("refs", map[string]any{"approverGroupRefs": []string{"board"}})
	s.says(ann, id, "accept").refused(t, 403, "forbidden")
	down.Store(true)
	s.says(ann, id, "accept").refused(t, 503, "service_unavailable")
	down.Store(false)
	inside.Store(ann.id, true)
	s.says(ann, id, "accept").want(t, 200)
	s.await(id, "completed")
	if got := s.grounds(id); !slices.Equal(got, []string{"interrupt.resolved group board embedder"}) {
		t.Errorf("%q", got)
	}
	// What has been decided is not asked again, by whoever reads it.
	before := asked.Load()
	inside.Delete(ann.id)
	s.restart()
	if st := s.snapshot(id)["status"]; st != "completed" || asked.Load() != before {
		t.Errorf("%v, asked %d times more", st, asked.Load()-before)
	}
}

// The inbox shows what waits to everybody who may read, and whom it concerns.
func TestWireInboxSaysWhomItConcerns(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.person("ann", []string{"finance"}, nil)
	s.gated("open", map[string]any{})
	s.gated("refs", map[string]any{"approverGroupRefs": []string{"finance"}, "approversList": []string{"bob"}})
	s.gated("told", map[string]any{"approversList": []string{"bob"}, "audience": map[string]any{"roles": []string{"lead"}}})
	want := map[string]string{
		`"artifactId":"ok","artifactType":"approval","title":"?","actions":["accept","reject"]}`: "true <nil>",
		`"approverGroupRefs":["finance"]`: "true map[groups:[finance] subjects:[bob]]",
		`"audience"`:                      "false map[roles:[lead]]",
	}
	for _, x := range s.do("GET", "/host/fermata/interrupts", nil, "Authorization", ann.auth).want(t, 200).json["interrupts"].([]any) {
		e := x.(map[string]any)
		got := fmt.Sprint(e["mayAnswer"], " ", e["notify"])
		req := show(t, e["request"])
		found := ""
		for part := range want {
			if part[0] == '"' && strings.HasPrefix(part, `"artifactId"`) {
				if !strings.Contains(req, "approver") {
					found = part
				}
			} else if strings.Contains(req, part) {
				found = part
			}
		}
		if want[found] != got {
			t.Errorf("%s: %s, want %s", req, got, want[found])
		}
		delete(want, found)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// Keys are made within the maker's own rights; the keys of tokens are replaced
// without taking a token away.
func TestWireKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	reader := s.key("reader-key-reader-key-reader-key-reader", "default", "runs:read")
	for _, path := range []string{"/host/fermata/keys", "/host/fermata/token-keys"} {
		body := any(nil)
		if path == "/host/fermata/keys" {
			body = map[string]any{"scopes": []string{"runs:read"}}
		}
		s.do("POST", path, body, "Authorization", reader).refused(t, 403, "forbidden")
		s.do("POST", path, body, "Authorization", "").refused(t, 401, "unauthenticated")
	}
	for _, bad := range []string{`{}`, `{"scopes":[]}`, `{"scopes":["x y"]}`, `{"scopes":["runs:read"],"tenant":"other"}`, `{"scopes":["runs:read"],"groups":[""]}`, `{"scopes":"*"}`} {
		s.do("POST", "/host/fermata/keys", bad).refused(t, 400, "validation_error")
	}
	id := s.waiting()
	token := s.token(id, "ok")
	kid := s.do("POST", "/host/fermata/token-keys", nil).want(t, 201).str("kid")
	if fresh := strings.Split(s.token(id, "ok"), "."); kid == "" || fresh[2] != kid {
		t.Errorf("signed by %s after a rotation to %s", fresh[2], kid)
	}
	s.look(token).want(t, 200)
	s.use(token, yes).want(t, 200)
}

// Two credentials are none: another reader of the request may have taken the other.
func TestWireTwoCredentials(t *testing.T) {
	t.Parallel()
	s := start(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.http.URL+"/runs", nil)
	if err != nil {
		t.Fatal(err)
	}
	ann := s.person("ann", nil, nil)
	req.Header["Authorization"] = []string{"Bearer " + testKey, ann.auth}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 401 {
		t.Errorf("%d", res.StatusCode)
	}
}

// What answers could never be held against, and what nobody could ever pass, is
// refused when the workflow is registered.
func TestWireGatesThatCannotWorkAreRefusedAtTheDoor(t *testing.T) {
	t.Parallel()
	s := start(t)
	custom := func(schema any) any {
		return step("ok", "core.interrupt", map[string]any{"kind": "custom", "data": map[string]any{"customKind": "x"}, "resumeSchema": schema})
	}
	for name, node := range map[string]any{
		"remote schema":         custom(map[string]any{"$ref": "https://example.com/s.json"}),
		"local file":            custom(map[string]any{"$ref": "file:///etc/passwd"}),
		"broken schema":         custom(map[string]any{"type": 7}),
		"endless schema":        custom(map[string]any{"$ref": "#"}),
		"schema beside no data": step("ok", "core.interrupt", map[string]any{"kind": "custom", "resumeSchema": map[string]any{"type": 7}}),
		"question": step("ok", "core.clarificationGate", map[string]any{"questions": []any{
			map[string]any{"id": "q", "question": "?", "schema": map[string]any{"$ref": "https://example.com/s.json"}}}}),
		"short list": step("ok", "core.approvalGate", map[string]any{"requiredApprovals": 2, "approversList": []string{"a", "a"}}),
		"short list of an interrupt": step("ok", "core.interrupt", map[string]any{"kind": "approval", "data": map[string]any{
			"artifactId": "a", "artifactType": "b", "title": "c", "actions": []string{"accept"}, "requiredApprovals": 2, "approversList": []string{"a"}}}),
	} {
		a := s.do("PUT", "/host/fermata/workflows/w", flow("w", []any{node}, []any{}))
		if a.status != 400 || a.json["error"] != "validation_error" || !strings.HasPrefix(fmt.Sprint(a.json["details"].(map[string]any)["field"]), "nodes[0].config") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

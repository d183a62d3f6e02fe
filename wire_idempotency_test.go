package fermata_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-run/fermata"
)

const (
	keyHeader    = "Idempotency-Key"
	replayHeader = "OpenWOP-Idempotent-Replay"
)

// idem is a key of the test's own.
func idem(n any) string { return fmt.Sprintf("%s-%022v", "key", n) }

// replays wants an answer that is another one again, marked as such.
func (a answer) replays(t testing.TB, first answer) {
	t.Helper()
	if a.header.Get(replayHeader) != "true" || first.header.Get(replayHeader) != "" {
		t.Fatalf("%s: %q, then %q: %s", replayHeader, first.header.Get(replayHeader), a.header.Get(replayHeader), a.body)
	}
	h := a.header.Clone()
	h.Del(replayHeader)
	h.Set("Date", first.header.Get("Date"))
	if a.status != first.status || !bytes.Equal(a.body, first.body) || !maps.EqualFunc(h, first.header, equal) {
		t.Fatalf("%d %v %s\nis not, again,\n%d %v %s", a.status, h, a.body, first.status, first.header, first.body)
	}
}

func equal(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

// fresh wants an answer that comes of the request itself.
func (a answer) fresh(t testing.TB, status int) answer {
	t.Helper()
	if a.header.Get(replayHeader) != "" {
		t.Fatalf("a replay: %d %s", a.status, a.body)
	}
	return a.want(t, status)
}

func (s *server) runCount() int {
	s.t.Helper()
	return len(s.do("GET", "/runs?limit=200", nil).want(s.t, 200).json["runs"].([]any))
}

func TestWireKeyGrammar(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	body := map[string]any{"workflowId": "g"}
	good := "AZaz09._~-AZaz09._~-AZ"
	for _, bad := range []string{
		" ", good[:21], strings.Repeat("x", 129), good + " ", good + ",", good + "/", good + "=", good + "é", good + "\u0661", good + "+",
		strings.Repeat(good+", ", 2),
	} {
		if bad == good+" " {
			continue // the space is not part of the value
		}
		a := s.do("POST", "/runs", body, keyHeader, bad).refused(t, 400, "idempotency_key_invalid")
		if strings.Contains(string(a.body), good) {
			t.Errorf("the key is told again: %s", a.body)
		}
		s.do("GET", "/runs", nil, keyHeader, bad).want(t, 200)
	}
	for _, values := range [][]string{{good, good}, {good, ""}, {"", ""}, {""}} {
		req, err := http.NewRequest("POST", s.http.URL+"/runs", strings.NewReader(`{"workflowId":"g"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Content-Type": {"application/json"}, keyHeader: values}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 400 {
			t.Errorf("%q: %d", values, res.StatusCode)
		}
	}
	if n := s.runCount(); n != 0 {
		t.Errorf("%d runs", n)
	}
	for _, key := range []string{good, strings.Repeat("~", 128)} {
		s.do("POST", "/runs", body, keyHeader, key).fresh(t, 201)
	}
	// Reading knows no keys: the same one answers anew.
	s.do("GET", "/runs", nil, keyHeader, good).fresh(t, 200)
	s.do("GET", "/runs?limit=1", nil, keyHeader, good).fresh(t, 200)
}

// secretive operations take or give a credential, so no record of them is kept.
var secretive = []string{"issueInterruptToken", "createKey", "rotateKey", "createTenant", "createCredential", "rotateCredential", "rotateVault"}

// mutations says how each operation that changes something is called once, with
// success. A new row in the table needs a new one here.
var mutations = map[string]func(s *server) (path string, body any){
	"createRun": func(s *server) (string, any) {
		return "/runs", map[string]any{"workflowId": "g", "tags": []string{"t"}}
	},
	"cancelRun": func(s *server) (string, any) {
		return "/runs/" + seg(s.run("g")) + "/cancel", map[string]any{"reason": "r"}
	},
	"bulkCancelRuns": func(s *server) (string, any) {
		return "/runs:bulk-cancel", map[string]any{"runIds": []string{s.run("g"), "default/0123456789abcdef"}}
	},
	"pauseRun": func(s *server) (string, any) { return "/runs/" + seg(s.run("g")) + ":pause", nil },
	"resumeRun": func(s *server) (string, any) {
		id := s.run("g")
		s.do("POST", "/runs/"+seg(id)+":pause", nil).want(s.t, 202)
		return "/runs/" + seg(id) + ":resume", map[string]any{}
	},
	"resolveInterruptByRun": func(s *server) (string, any) {
		return "/runs/" + seg(s.run("g")) + "/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": "accept"}}
	},
	"registerWebhook": func(s *server) (string, any) {
		return "/webhooks", map[string]any{"url": "https://hooks.example.com/x", "events": []string{"run.completed"}}
	},
	"unregisterWebhook": func(s *server) (string, any) { return "/webhooks/" + seg(s.hook(nil)), nil },
	"rotateWebhookSecret": func(s *server) (string, any) {
		return "/webhooks/" + seg(s.hook(standardHook(s.t))) + "/rotate-secret", map[string]any{"secret": standardSecret(2)}
	},
	"enableWebhook": func(s *server) (string, any) { return "/host/fermata/webhooks/" + seg(s.hook(nil)) + ":enable", nil },
	"forkRun": func(s *server) (string, any) {
		return "/runs/" + seg(s.run("g")) + ":fork", map[string]any{"mode": "branch", "fromSeq": 1}
	},
	"putWorkflow": func(s *server) (string, any) { return "/host/fermata/workflows/new", gate("new") },
	"resolveInterruptByToken": func(s *server) (string, any) {
		return "/interrupts/" + s.token(s.run("g"), "ok"), map[string]any{"resumeValue": map[string]any{"action": "accept"}}
	},
	"operateCompensation": func(s *server) (string, any) {
		s.register(undoable("undo", `{"triggers":["operator-request"]}`, ""))
		id := s.run("undo")
		s.await(id, "completed")
		return "/host/fermata/runs/" + seg(id) + "/compensation", map[string]any{"action": "start"}
	},
	"deleteWorkflow": func(s *server) (string, any) {
		s.register(gate("old"))
		return "/host/fermata/workflows/old", nil
	},
	"deleteCredential": func(s *server) (string, any) {
		return "/host/fermata/credentials/" + s.credential(map[string]any{"secret": "a-secret-of-this-test"}), nil
	},
	"rotateTokenKey": func(*server) (string, any) { return "/host/fermata/token-keys", nil },
	"revokeKey": func(s *server) (string, any) {
		made := s.do("POST", "/host/fermata/keys", map[string]any{"scopes": []string{"runs:read"}}).want(s.t, 201)
		return "/host/fermata/keys/" + made.str("keyId") + ":revoke", nil
	},
	"suspendTenant": func(s *server) (string, any) {
		s.do("POST", "/host/fermata/tenants", map[string]any{"tenantId": "a"}).want(s.t, 201)
		return "/host/fermata/tenants/a:suspend", nil
	},
	"activateTenant": func(s *server) (string, any) {
		s.do("POST", "/host/fermata/tenants", map[string]any{"tenantId": "b"}).want(s.t, 201)
		return "/host/fermata/tenants/b:activate", nil
	},
	"putMember": func(*server) (string, any) {
		return "/host/fermata/members", map[string]any{"subjectId": "ann", "roles": []string{"viewer"}}
	},
	"removeMember": func(s *server) (string, any) {
		made := s.do("POST", "/host/fermata/members", map[string]any{"subjectId": "bob"}).want(s.t, 201)
		return "/host/fermata/members/" + made.str("memberId"), nil
	},
	"putRole": func(*server) (string, any) {
		return "/host/fermata/roles/desk", map[string]any{"scopes": []string{"runs:read"}}
	},
	"removeRole": func(s *server) (string, any) {
		s.do("PUT", "/host/fermata/roles/old", map[string]any{"scopes": []string{}}).want(s.t, 201)
		return "/host/fermata/roles/old", nil
	},
	"rotateAuditKey": func(*server) (string, any) { return "/host/fermata/audit/keys", nil },
}

// TestWireEveryMutationReplays walks the table: an operation that changes
// something happens once for a key, whatever has happened in between.
func TestWireEveryMutationReplays(t *testing.T) {
	t.Parallel()
	s := start(t, withWebhooks)
	s.register(gate("g"))
	type sent struct {
		method, path, key string
		body              any
		first             answer
	}
	var all []sent
	for i, r := range s.host.Routes() {
		if r.Method == "GET" || r.ID == "validateWorkflow" || slices.Contains(secretive, r.ID) {
			if r.Mutates() {
				t.Errorf("%s is said to change something", r.ID)
			}
			continue
		}
		prepare := mutations[r.ID]
		if prepare == nil || !r.Mutates() {
			t.Errorf("%s: not known to honour a key", r.ID)
			continue
		}
		path, body := prepare(s)
		x := sent{method: r.Method, path: path, body: body, key: idem(i)}
		x.first = s.do(r.Method, path, body, keyHeader, x.key)
		if _, ok := r.Returns[x.first.status]; !ok {
			t.Fatalf("%s: %d %s", r.ID, x.first.status, x.first.body)
		}
		s.do(r.Method, path, body, keyHeader, x.key).replays(t, x.first)
		all = append(all, x)
	}
	before := s.runCount()
	for _, restart := range []bool{false, true} {
		if restart {
			s.restart()
		}
		for _, x := range all {
			s.do(x.method, x.path, x.body, keyHeader, x.key).replays(t, x.first)
		}
	}
	if after := s.runCount(); after != before {
		t.Errorf("%d runs became %d", before, after)
	}
	// What changes nothing does not look at the key.
	for range 2 {
		s.do("POST", "/host/fermata/workflows:validate", gate("v"), keyHeader, "!").fresh(t, 200)
	}
}

func TestWireKeyDigest(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	n := 0
	for _, c := range []struct {
		first, second string
		same          bool
	}{
		{`{"workflowId":"g","tags":["a"]}`, " {\n\"tags\" : [\"\\u0061\"], \"workflowId\":\"g\"}", true},
		{`{"workflowId":"g","inputs":{"n":1e400}}`, `{"workflowId":"g","inputs":{"n":1e401}}`, false},
		{`{"workflowId":"g","inputs":{"n":9007199254740993}}`, `{"workflowId":"g","inputs":{"n":9007199254740992}}`, false},
		{`{"workflowId":"g","inputs":{"n":0.1}}`, `{"workflowId":"g","inputs":{"n":0.10000000000000001}}`, false},
		{`{"workflowId":"g","inputs":{"n":9007199254740993}}`, `{"workflowId":"g","inputs":{"n":9007199254740993.0}}`, true},
		{`{"workflowId":"g"}`, `{"workflowId":"g","tags":[]}`, false},
		{`{"workflowId":"g"}`, `{`, false},
		{`{"workflowId":"g"}`, ``, false},
	} {
		n++
		first := s.do("POST", "/runs", c.first, keyHeader, idem(n)).fresh(t, 201)
		a := s.do("POST", "/runs", c.second, keyHeader, idem(n), "Content-Type", "application/json; charset=utf-8")
		if c.same {
			a.replays(t, first)
		} else {
			a.fresh(t, 409).refused(t, 409, "idempotency_key_mismatch")
			s.do("POST", "/runs", c.first, keyHeader, idem(n)).replays(t, first)
		}
	}
	if got := s.runCount(); got != n {
		t.Errorf("%d runs of %d keys", got, n)
	}
	// Another resource is another record; two spellings of one are not.
	one, two := s.run("g"), s.run("g")
	first := s.do("POST", "/runs/"+seg(one)+":pause", nil, keyHeader, idem("p")).fresh(t, 202)
	s.do("POST", "/runs/"+seg(two)+":pause", nil, keyHeader, idem("p")).fresh(t, 202)
	s.do("POST", "/runs/"+strings.ReplaceAll(one, "/", "%2F")+":pause", nil, keyHeader, idem("p")).replays(t, first)
	s.do("POST", "/runs/"+seg(one)+":resume", nil, keyHeader, idem("p")).fresh(t, 202)
}

// TestWireKeyPerTenant: tenants may draw the same key.
func TestWireKeyPerTenant(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.key("other-tenant-other-tenant-other-tenant", "other", "*")
	s.register(gate("g"))
	s.do("PUT", "/host/fermata/workflows/g", gate("g"), "Authorization", other).want(t, 201)
	body := map[string]any{"workflowId": "g"}
	a := s.do("POST", "/runs", body, keyHeader, idem(1)).fresh(t, 201)
	b := s.do("POST", "/runs", body, keyHeader, idem(1), "Authorization", other).fresh(t, 201)
	if !strings.HasPrefix(b.str("runId"), "other/") {
		t.Errorf("the other tenant was given %s", b.body)
	}
	s.do("POST", "/runs", body, keyHeader, idem(1)).replays(t, a)
	s.do("POST", "/runs", body, keyHeader, idem(1), "Authorization", other).replays(t, b)
	// Another tenant's key says nothing about what it was used for.
	s.do("POST", "/runs", map[string]any{"workflowId": "nope"}, keyHeader, idem(2)).fresh(t, 404)
	s.do("POST", "/runs", body, keyHeader, idem(2), "Authorization", other).fresh(t, 201)
}

// TestWireParallelCreates: however many ask at once, one run comes of it.
func TestWireParallelCreates(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	rounds := 25
	for round := range rounds {
		var mu sync.Mutex
		runs, replays := map[string]bool{}, 0
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				a := s.do("POST", "/runs", map[string]any{"workflowId": "g"}, keyHeader, idem(round))
				mu.Lock()
				defer mu.Unlock()
				if a.status != 201 {
					t.Errorf("%d %s", a.status, a.body)
				}
				runs[a.str("runId")] = true
				if a.header.Get(replayHeader) == "true" {
					replays++
				}
			})
		}
		wg.Wait()
		if len(runs) != 1 || replays != 9 {
			t.Fatalf("round %d: %d runs, %d replays", round, len(runs), replays)
		}
	}
	if n := s.runCount(); n != rounds {
		t.Errorf("%d runs of %d keys", n, rounds)
	}
}

// TestWireUncachedOutcomes: what a caller can mend may be mended under one key.
func TestWireUncachedOutcomes(t *testing.T) {
	t.Parallel()
	s := start(t, withLimits(fermata.Limits{MaxBodyBytes: 4096}))
	s.register(gate("g"))
	reader := s.key("only-reads-only-reads-only-reads-only", "default", "runs:read")
	body := map[string]any{"workflowId": "g"}
	for i, c := range []struct {
		body   any
		header []string
		status int
	}{
		{body, []string{"Authorization", ""}, 401},
		{body, []string{"Authorization", reader}, 403},
		{map[string]any{"workflowId": "g", "tenantId": "foreign"}, nil, 403},
		{map[string]any{"workflowId": "g", "tags": 1}, nil, 400},
		{"{", nil, 400},
		{nil, nil, 400},
		{body, []string{"Content-Type", "text/plain"}, 415},
		{`{"workflowId":"g","tags":["` + strings.Repeat("x", 5000) + `"]}`, nil, 413},
	} {
		key := []string{keyHeader, idem(i)}
		for range 2 {
			s.do("POST", "/runs", c.body, append(c.header, key...)...).fresh(t, c.status)
		}
		first := s.do("POST", "/runs", body, key...).fresh(t, 201)
		s.do("POST", "/runs", body, key...).replays(t, first)
		// The recorded answer is for those only who might ask for it.
		s.do("POST", "/runs", body, append([]string{"Authorization", reader}, key...)...).fresh(t, 403)
	}
	// Any other refusal stays.
	first := s.do("POST", "/runs", map[string]any{"workflowId": "later"}, keyHeader, idem("n")).fresh(t, 404)
	s.register(gate("later"))
	s.do("POST", "/runs", map[string]any{"workflowId": "later"}, keyHeader, idem("n")).replays(t, first)
	id := s.run("g")
	first = s.do("POST", "/runs/"+seg(id)+":resume", nil, keyHeader, idem("r")).fresh(t, 409)
	s.do("POST", "/runs/"+seg(id)+":pause", nil).want(t, 202)
	s.do("POST", "/runs/"+seg(id)+":resume", nil, keyHeader, idem("r")).replays(t, first)
}

// TestWireAnswersOfPeople: one person's answer never passes for another's.
func TestWireAnswersOfPeople(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	other := s.key("another-person-another-person-another", "default", "*")
	id := s.run("g")
	path, body := "/runs/"+seg(id)+"/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": "accept"}}
	first := s.do("POST", path, body, keyHeader, idem(1)).fresh(t, 200)
	s.do("POST", path, body, keyHeader, idem(1), "Authorization", other).refused(t, 409, "idempotency_key_mismatch")
	s.do("POST", path, body, keyHeader, idem(1)).replays(t, first)
	for _, doc := range s.docs(id) {
		validEvent(t, doc)
	}
}

// TestWireKeysStaySecret: a key is in no log and in no file.
func TestWireKeysStaySecret(t *testing.T) {
	onlySQLite(t)
	t.Parallel()
	var mu sync.Mutex
	var log bytes.Buffer
	s := start(t, func(c *fermata.Config) {
		c.Logger = slog.New(slog.NewTextHandler(locked{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	s.register(gate("g"))
	key := "secret-secret-secret-secret"
	s.do("POST", "/runs", map[string]any{"workflowId": "g"}, keyHeader, key).want(t, 201)
	s.do("POST", "/runs", map[string]any{"workflowId": "h"}, keyHeader, key).want(t, 409)
	s.do("POST", "/runs/"+seg(s.run("g"))+"/interrupts/ok", map[string]any{"resumeValue": map[string]any{"action": "accept"}}, keyHeader, key).want(t, 200)
	s.down()
	mu.Lock()
	if strings.Contains(log.String(), key) {
		t.Error("a key is in the log")
	}
	mu.Unlock()
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte(key)) {
			t.Errorf("%s holds a key (%v)", filepath.Base(f), err)
		}
	}
}

type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// TestWireKeyIsDocumented: OpenAPI shows the header where it is honoured; the
// capability, which promises more than requests, is not advertised.
func TestWireKeyIsDocumented(t *testing.T) {
	t.Parallel()
	s := start(t)
	paths := s.do("GET", "/openapi.json", nil).want(t, 200).json["paths"].(map[string]any)
	for _, r := range s.host.Routes() {
		op := paths[r.Pattern].(map[string]any)[strings.ToLower(r.Method)].(map[string]any)
		shown := false
		params, _ := op["parameters"].([]any)
		for _, p := range params {
			shown = shown || p.(map[string]any)["name"] == keyHeader
		}
		if shown != r.Mutates() {
			t.Errorf("%s: documented %v", r.ID, shown)
		}
	}
	doc := s.do("GET", "/.well-known/openwop", nil).json
	if family, _ := doc["idempotency"].(map[string]any); family["status"] != "stable" || family["crossRegion"] != "single-region" {
		t.Errorf("the family idempotency is %v", doc["idempotency"])
	}
}

// A record of an answer by token keeps neither the token nor the key.
func TestWireRecordsKeepNoCredential(t *testing.T) {
	onlySQLite(t)
	t.Parallel()
	s := start(t)
	s.register(gate("g"))
	token := s.token(s.run("g"), "ok")
	a := s.do("POST", "/interrupts/"+token, map[string]any{"resumeValue": map[string]any{"action": "accept"}}, keyHeader, idem(1))
	a.fresh(t, 200)
	s.do("POST", "/interrupts/"+token, map[string]any{"resumeValue": map[string]any{"action": "accept"}}, keyHeader, idem(1)).replays(t, a)
	s.do("POST", "/interrupts/"+token, map[string]any{"resumeValue": map[string]any{"action": "accept"}}, keyHeader, idem(2)).refused(t, 409, "interrupt_already_resolved")
	s.down()
	files, err := filepath.Glob(filepath.Join(s.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, secret := range map[string]string{"token": token, "key": idem(1)} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s holds the %s", filepath.Base(name), what)
			}
		}
	}
	s.up()
}

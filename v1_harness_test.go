package fermata_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/api"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// v1Base is where the protocol's own schemas of v1 say they are.
const v1Base = "https://openwop.dev/spec/v1/"

// v1Folders hold them, where the project has them beside it: those of the middle of
// 2026, and what the seed has of v1.
var v1Folders = []string{
	filepath.Join("..", "shared", "protocol", "v1", "schemas"),
	filepath.Join("..", "shared", "protocol", "seed", "openwop-conformance-1.0.0", "schemas"),
}

// withoutLookahead reads the patterns that Go can. One that looks ahead holds whatever
// it is matched against.
func withoutLookahead(s string) (jsonschema.Regexp, error) {
	if strings.Contains(s, "(?!") {
		s = ""
	}
	re, err := regexp.Compile(s)
	return re, err
}

// v1Schemas finds a schema of v1 by name, with a pointer into it behind a # if need be,
// in every folder that has it; none where the project stands alone.
var v1Schemas = sync.OnceValue(func() func(name string) []*jsonschema.Schema {
	var compilers []*jsonschema.Compiler
	for _, folder := range v1Folders {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.UseRegexpEngine(withoutLookahead)
		files, _ := filepath.Glob(filepath.Join(folder, "*.schema.json"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				panic(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				panic(f + ": " + err.Error())
			}
			if err := c.AddResource(v1Base+filepath.Base(f), doc); err != nil {
				panic(err)
			}
		}
		compilers = append(compilers, c)
	}
	var mu sync.Mutex
	return func(name string) (out []*jsonschema.Schema) {
		mu.Lock()
		defer mu.Unlock()
		file, at, _ := strings.Cut(name, "#")
		for i, c := range compilers {
			if _, err := os.Stat(filepath.Join(v1Folders[i], file+".schema.json")); err != nil {
				continue
			}
			s, err := c.Compile(v1Base + file + ".schema.json#" + at)
			if err != nil {
				panic(name + ": " + err.Error())
			}
			out = append(out, s)
		}
		return out
	}
})

// validV1 holds a document against the protocol's own schemas of v1.
func validV1(t testing.TB, name string, doc []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Errorf("%s: %v\n%.500s", name, err, doc)
		return
	}
	for _, s := range v1Schemas()(name) {
		if err := s.Validate(v); err != nil {
			t.Errorf("not a %s of v1: %v\n%.2000s", name, err, doc)
		}
	}
}

// v1Answers names the schema of v1 for what an operation answers with.
var v1Answers = map[string]string{
	"getCapabilities": "capabilities", "getRun": "run-snapshot", "getWorkflow": "workflow-definition", "diffRun": "run-diff-response",
	"getRunAncestry": "run-ancestry-response", "verifyAuditLog": "audit-verify-result", "getEvalSummary": "eval-summary", "getDebugBundle": "debug-bundle",
}

// isV1 reports whether an answer is one of the older wire.
func (s *server) isV1(path string, a answer) bool {
	return s.cfg.V1 && (path == "/v1" || strings.HasPrefix(path, "/v1/") || strings.HasPrefix(a.header.Get("OpenWOP-Version"), "1."))
}

// conformsV1 is conforms for the older wire.
func (s *server) conformsV1(method, path string, a answer) {
	s.t.Helper()
	if got := a.header.Get("OpenWOP-Version"); got != "1.0" {
		s.t.Errorf("%s %s: OpenWOP-Version %q, want 1.0", method, path, got)
	}
	if a.status < 400 && strings.Contains(string(a.body), fermata.DefaultTenant+"/0") { // a refusal may quote what was asked for
		s.t.Errorf("%s %s: a tenant-bound id: %s", method, path, a.body)
	}
	var rows []api.Route
	for _, r := range s.host.Routes() {
		if r.Wire == "v1" {
			rows = append(rows, r)
		}
	}
	at := path
	if path != "/.well-known/openwop" && !strings.HasPrefix(path, "/v1") {
		at = "/v1" + path // a bare path, under the older major
	}
	route, _, _ := api.NewTable(rows).Match(method, at)
	switch {
	case method == "HEAD" || a.status == 304 || a.status == 204:
		if len(a.body) > 0 {
			s.t.Errorf("%s %s: %d with a body", method, path, a.status)
		}
	case a.status >= 400:
		if ct := a.header.Get("Content-Type"); ct != "application/json" {
			s.t.Errorf("%s %s: a refusal as %q", method, path, ct)
		}
		validV1(s.t, "error-envelope", a.body)
	case route != nil && route.Returns[a.status].Description == "":
		s.t.Errorf("%s %s: the row has no answer %d", method, path, a.status)
	case route != nil && v1Answers[route.ID] != "":
		validV1(s.t, v1Answers[route.ID], a.body)
	}
}

// withV1 serves the older wire, too.
func withV1(c *fermata.Config) { c.V1 = true }

// run1 starts a run by way of v1.
func (s *server) run1(workflow string, extra ...map[string]any) string {
	s.t.Helper()
	body := map[string]any{"workflowId": workflow}
	for _, x := range extra {
		for k, v := range x {
			body[k] = v
		}
	}
	return s.do("POST", "/v1/runs", body).want(s.t, 201).str("runId")
}

// snapshot1 is a run's snapshot as v1 shows it.
func (s *server) snapshot1(id string) map[string]any {
	s.t.Helper()
	return s.do("GET", "/v1/runs/"+id, nil).want(s.t, 200).json
}

// await1 waits, within a bound, until a run is in one of the given statuses.
func (s *server) await1(id string, statuses ...string) map[string]any {
	s.t.Helper()
	var last map[string]any
	for range 2000 {
		last = s.snapshot1(id)
		for _, st := range statuses {
			if last["status"] == st {
				return last
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	b, _ := json.MarshalIndent(last, "", " ")
	s.t.Fatalf("run %s did not become %v: %s", id, statuses, b)
	return nil
}

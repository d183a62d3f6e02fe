package fermata_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// bodies lists every operation with a closed JSON body: one that is right, and
// the members it knows with a value of a wrong type.
func bodies(run string) []struct {
	name, method, path, good string
	optional                 bool
	wrong                    map[string]string
} {
	at := "/runs/" + seg(run)
	def, _ := json.Marshal(gate("put"))
	return []struct {
		name, method, path, good string
		optional                 bool
		wrong                    map[string]string
	}{
		{"createRun", "POST", "/runs", `{"workflowId":"gate","inputs":{}}`, false, map[string]string{
			"workflowId": `1`, "inputs": `[]`, "residency": `"eu"`, "tenantId": `{}`, "scopeId": `true`, "callbackUrl": `1`, "mode": `false`,
			"evalSuiteRef": `[]`, "agentId": `0`, "configurable": `"x"`, "tags": `"x"`, "metadata": `[]`,
		}},
		{"cancelRun", "POST", at + "/cancel", `{"reason":"because"}`, true, map[string]string{"reason": `1`}},
		{"pauseRun", "POST", at + ":pause", `{"reason":"because"}`, true, map[string]string{"reason": `[]`, "drainPolicy": `1`}},
		{"resumeRun", "POST", at + ":resume", `{"reason":"because"}`, true, map[string]string{"reason": `{}`}},
		{"bulkCancelRuns", "POST", "/runs:bulk-cancel", `{"runIds":["` + run + `"]}`, false, map[string]string{"runIds": `"x"`, "reason": `1`}},
		{"resolveInterruptByRun", "POST", at + "/interrupts/ok", `{"resumeValue":{"action":"accept"}}`, false, nil},
		{"putWorkflow", "PUT", "/host/fermata/workflows/put", string(def), false, map[string]string{
			"id": `1`, "name": `[]`, "version": `{}`, "nodes": `{}`, "edges": `"x"`, "variables": `1`, "metadata": `[]`, "settings": `true`,
		}},
	}
}

// Every closed body refuses what it does not know or cannot be, names the place,
// and leaves nothing half done.
func TestWireClosedBodies(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	run := s.run("gate")
	before := s.await(run, "waiting-approval")
	log := len(s.docs(run))
	for _, op := range bodies(run) {
		type bad struct{ body, field string }
		last := strings.LastIndexByte(op.good, '}')
		first := op.good[1:strings.IndexByte(op.good, ':')] // the first member's quoted name
		name := strings.Trim(first, `"`)
		cases := map[string]bad{
			"unknown member":      {op.good[:last] + `,"surprise":1}`, "surprise"},
			"wrong case":          {strings.Replace(op.good, first, `"`+strings.ToUpper(name)+`"`, 1), strings.ToUpper(name)},
			"duplicate member":    {op.good[:last] + "," + op.good[1:], name},
			"array":               {`[` + op.good + `]`, ""},
			"null":                {`null`, ""},
			"string":              {`"{}"`, ""},
			"number":              {`0`, ""},
			"white space":         {" \n", ""},
			"trailing garbage":    {op.good + `x`, ""},
			"two values":          {op.good + op.good, ""},
			"trailing comma":      {op.good[:last] + `,}`, ""},
			"comment":             {`/* x */` + op.good, ""},
			"single quotes":       {strings.ReplaceAll(op.good, `"`, `'`), ""},
			"cut off":             {op.good[:last], ""},
			"byte order mark":     {"\xef\xbb\xbf" + op.good, ""},
			"UTF-16":              {"{\x00}\x00", ""},
			"invalid UTF-8":       {strings.Replace(op.good, `":`, "\xff\":", 1), ""},
			"overlong UTF-8":      {strings.Replace(op.good, `":`, "\xc0\x80\":", 1), ""},
			"raw surrogate":       {strings.Replace(op.good, `":`, "\xed\xa0\x80\":", 1), ""},
			"escaped surrogate":   {strings.Replace(op.good, `":`, `\ud800":`, 1), ""},
			"surrogates reversed": {strings.Replace(op.good, `":`, `\udc00\ud800":`, 1), ""},
			"raw line break":      {strings.Replace(op.good, `":`, "\n\":", 1), ""},
			"raw NUL":             {op.good[:1] + "\x00" + op.good[1:], ""},
			"bad number":          {op.good[:last] + `,"surprise":01}`, ""},
			"NaN":                 {op.good[:last] + `,"surprise":NaN}`, "surprise"},
			"too deep":            {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), ""},
			"too deep, not ended": {strings.Repeat(`{"a":`, 100_000), ""},
		}
		if !op.optional {
			cases["empty body"] = bad{"", ""}
		}
		for member, value := range op.wrong {
			cases["wrong type of "+member] = bad{with(t, op.good, member, value), member}
			cases["null as "+member] = bad{with(t, op.good, member, "null"), member}
		}
		for what, c := range cases {
			t.Run(op.name+"/"+what, func(t *testing.T) {
				a := s.as(t).do(op.method, op.path, c.body).refused(t, 400, "validation_error")
				details, _ := a.json["details"].(map[string]any)
				field, _ := details["field"].(string)
				if field == "" || c.field != "" && !strings.HasPrefix(field, c.field) {
					t.Errorf("details name %q, want %q: %s", field, c.field, a.body)
				}
			})
		}
	}
	after := s.snapshot(run)
	if fmt.Sprint(before) != fmt.Sprint(after) || len(s.docs(run)) != log {
		t.Errorf("a refused body changed the run:\n%v\n%v", before, after)
	}
	if n := len(s.do("GET", "/runs", nil).json["runs"].([]any)); n != 1 {
		t.Errorf("%d runs after refusals only", n)
	}
	s.do("GET", "/host/fermata/workflows/put", nil).refused(t, 404, "not_found")
}

// with sets a member of a JSON object to a raw value.
func with(t *testing.T, object, member, value string) string {
	t.Helper()
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatal(err)
	}
	m[member] = json.RawMessage(value)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Raw members go through as they are, so what is wrong inside them is refused at
// the door too.
func TestWireRawMembersAreChecked(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for what, inputs := range map[string]string{
		"duplicate member": `{"a":{"b":1,"b":2}}`, "escaped duplicate": `{"a":1,"\u0061":2}`, "invalid UTF-8": "{\"a\":\"\xff\"}",
		"escaped surrogate": `{"a":"\ud800"}`, "surrogate before text": `{"a":"\ud800x"}`, "surrogate as a name": `{"\udfff":1}`,
		"leading zero": `{"a":01}`, "plus": `{"a":+1}`, "hex": `{"a":0x1}`, "bare point": `{"a":1.}`, "infinity": `{"a":Infinity}`,
	} {
		for _, member := range []string{"inputs", "metadata"} {
			a := s.do("POST", "/runs", `{"workflowId":"gate","`+member+`":`+inputs+`}`).refused(t, 400, "validation_error")
			if f, _ := a.json["details"].(map[string]any)["field"].(string); !strings.HasPrefix(f, member) {
				t.Errorf("%s in %s: details name %q", what, member, f)
			}
		}
	}
	if list := s.do("GET", "/runs", nil).json["runs"].([]any); len(list) != 0 {
		t.Errorf("%d runs", len(list))
	}
}

func TestWireContentTypes(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	for _, ct := range []string{"application/json", "application/json; charset=utf-8", `application/json;charset="UTF-8"`, "Application/JSON"} {
		s.do("POST", "/runs", `{"workflowId":"gate"}`, "Content-Type", ct).want(t, 201)
	}
}

func TestWireOptionalBodyMayBeAbsent(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	run := s.run("gate")
	s.await(run, "waiting-approval")
	for _, step := range []struct {
		path   string
		status int
	}{{":pause", 202}, {":resume", 202}, {"/cancel", 200}} {
		if a := s.do("POST", "/runs/"+seg(run)+step.path, nil); a.status != step.status || !bytes.Contains(a.body, []byte(run)) {
			t.Errorf("%s without a body: %d %s", step.path, a.status, a.body)
		}
	}
}

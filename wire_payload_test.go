package fermata_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// pass is a workflow whose one node hands its input on.
func pass(id string) map[string]any {
	return flow(id, []any{step("a", "core.identity", nil, map[string]any{
		"inputs": map[string]any{"x": map[string]any{"type": "variable", "variableName": "x"}},
	})}, []any{}, map[string]any{"variables": []any{map[string]any{"name": "x", "type": "object"}}})
}

// through sends an object through a run and wants the very same bytes wherever
// it comes out again.
func (s *server) through(t *testing.T, object string) {
	t.Helper()
	s = s.as(t)
	body := `{"workflowId":"pass","inputs":{"x":` + object + `}`
	if len(object) < 10_000 {
		body += `,"metadata":` + object
	}
	id := s.do("POST", "/runs", body+"}").want(t, 201).str("runId")
	s.subscribe(id, "").frames() // to the end
	type port struct {
		X json.RawMessage `json:"x"`
	}
	same := func(where string, got json.RawMessage) {
		t.Helper()
		if !bytes.Equal(got, []byte(object)) {
			t.Errorf("%s: %d bytes %.300q, want %d bytes %.300q", where, len(got), got, len(object), object)
		}
	}
	for _, doc := range s.docs(id) {
		e := validEvent(t, doc)
		var p struct {
			Inputs, Outputs port
			Metadata        json.RawMessage
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "run.started":
			same("run.started inputs", p.Inputs.X)
		case "node.completed", "run.completed":
			same(e.Type+" outputs", p.Outputs.X)
		case "node.started":
		default:
			t.Errorf("event %s", e.Type)
		}
	}
	var snap struct {
		Variables  port
		Metadata   json.RawMessage
		NodeStates struct{ A struct{ Outputs port } }
	}
	if err := json.Unmarshal(s.do("GET", "/runs/"+seg(id), nil).want(t, 200).body, &snap); err != nil {
		t.Fatal(err)
	}
	same("snapshot variables", snap.Variables.X)
	same("snapshot outputs", snap.NodeStates.A.Outputs.X)
	if len(object) < 10_000 {
		same("snapshot metadata", snap.Metadata)
	}
	if frames := s.subscribe(id, "?streamMode=debug").frames(); !bytes.Contains(frames[0].data, []byte(object)) {
		t.Error("the stream shows something else")
	}
}

func TestWirePayloadsAreKeptExactly(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(pass("pass"))
	// A code point of every plane, its last two (non-characters) and the corners.
	var planes strings.Builder
	for p := range rune(17) {
		for _, r := range []rune{p<<16 | 0x41, p<<16 | 0xFFFE, p<<16 | 0xFFFF} {
			planes.WriteRune(r)
		}
	}
	planes.WriteString("\u007f\u0080\u0085\u00ad\u200b\u202e\ufdd0\ufdef\ufeff\ufffd\ud7ff\ue000")
	for name, object := range map[string]string{
		"beyond 2^53":         `{"n":9007199254740993,"m":-9007199254740993,"l":18446744073709551617}`,
		"beyond a double":     `{"n":1e400,"m":-1E+400,"s":1e-400,"d":` + strings.Repeat("9", 400) + `}`,
		"spellings":           `{"a":-0,"b":1.0,"c":1e0,"d":1E+2,"e":-0.0,"f":0.10,"g":123456789012345678901234567890.123456789}`,
		"order and names":     `{"b":1,"a":2,"":3,"a b":4,"B":5,"__proto__":6,"~/.":7}`,
		"escapes":             `{"s":"\u0041\/\b\f\n\r\t\"\\\ud83d\ude00\u00e9","\u006b":1}`,
		"NUL":                 `{"s":"a\u0000b","\u0000":"\u0000"}`,
		"line separators":     "{\"s\":\"\u2028\u2029\",\"t\":\"\\u2028\\u2029\"}",
		"every plane":         `{"s":"` + planes.String() + `"}`,
		"combining":           "{\"e\u0301\":\"\u00e9\",\"\u00e9\":\"e\u0301\"}",
		"html":                `{"s":"<script>&amp;'</script>"}`,
		"frame of a stream":   `{"s":"\n\ndata: x\nid: 99\r\nevent: run.completed"}`,
		"empties":             `{"o":{},"a":[],"s":"","n":null,"f":false}`,
		"a name like a mark":  `{"x-fermata":{"closing":{}},"$ref":"#","runId":"default/0000000000000000"}`,
		"a long name":         `{"` + strings.Repeat("k", 5000) + `":1}`,
		"many members":        `{` + members(2000) + `}`,
		"a string of 100 KiB": `{"s":"` + strings.Repeat("0123456789abcde\u00df", 6000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); s.through(t, object) })
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	return b.String()[1:]
}

// White space between tokens is the one thing that is not kept.
func TestWireWhiteSpaceIsNotKept(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(pass("pass"))
	id := s.do("POST", "/runs", " {\r\n\t\"workflowId\" : \"pass\" , \"inputs\" : { \"x\" : { \"a b\" : [ 1 , 2 ] } } } \n").want(t, 201).str("runId")
	s.await(id, "completed")
	if doc := s.docs(id)[0]; !bytes.Contains(doc, []byte(`"inputs":{"x":{"a b":[1,2]}}`)) || bytes.ContainsAny(doc, "\r\n\t") {
		t.Errorf("%s", doc)
	}
}

func TestWireDepth(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(pass("pass"))
	s.register(gate("gate"))
	const limit = 128 // of a body, as details.maxDepth says
	nested := func(n int) string { return strings.Repeat(`{"d":`, n) + `1` + strings.Repeat(`}`, n) }
	s.through(t, nested(limit-2)) // below the body and inputs
	a := s.do("POST", "/runs", `{"workflowId":"pass","inputs":{"x":`+nested(limit-1)+`}}`).refused(t, 400, "validation_error")
	if a.json["details"].(map[string]any)["maxDepth"] != float64(limit) {
		t.Errorf("details %s", a.body)
	}
	// Brackets within strings do not count; arrays do.
	s.through(t, `{"s":"`+strings.Repeat(`[{\"`, 500)+`"}`)
	id := s.run("gate")
	s.await(id, "waiting-approval")
	list := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	at := "/runs/" + seg(id) + "/interrupts/ok"
	s.do("POST", at, `{"resumeValue":`+list(limit)+`}`).refused(t, 400, "validation_error")
	answer := `{"action":"edit-accept","editedArtifactData":` + list(limit-2) + `}`
	s.do("POST", at, `{"resumeValue":`+answer+`}`).want(t, 200)
	s.await(id, "completed")
}

// 4 MB go through as they are; past the limit nothing is kept.
func TestWireLargePayload(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(pass("pass"))
	object := `{"s":"` + strings.Repeat("0123456789abcdef", 4<<20/16) + `"}`
	s.through(t, object)
	huge := `{"workflowId":"pass","inputs":{"x":{"s":"` + strings.Repeat("z", 5<<20) + `"}}}`
	s.do("POST", "/runs", huge).refused(t, 413, "payload_too_large")
	if n := len(s.do("GET", "/runs", nil).json["runs"].([]any)); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A snapshot is the same bytes before and after the host was started again.
func TestWirePayloadsSurviveARestart(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(gate("gate"))
	id := s.do("POST", "/runs", `{"workflowId":"gate","inputs":{"x":{"n":-0,"m":1E+400,"s":"\u0041\/\ud83d\ude00\u2028"}},"metadata":{"\u006b":"\u0000"}}`).
		want(t, 201).str("runId")
	s.await(id, "waiting-approval")
	before := s.do("GET", "/runs/"+seg(id), nil).want(t, 200)
	s.restart()
	after := s.do("GET", "/runs/"+seg(id), nil).want(t, 200)
	if !bytes.Equal(before.body, after.body) || before.header.Get("ETag") != after.header.Get("ETag") {
		t.Errorf("before\n%s\nafter\n%s", before.body, after.body)
	}
}

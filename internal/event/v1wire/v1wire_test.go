package v1wire_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/event/v1wire"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

var run = ids.Run{Tenant: "acme", Opaque: "0123456789abcdef"}

const (
	child   = `"acme/fedcba9876543210"`
	subject = `{"issuer":"urn:acme:keys","subjectId":"ann","tenant":"acme","lane":"api-key","kind":"user"}`
)

func of(typ event.Type, payload string) *event.Event {
	return &event.Event{
		Run: run, Seq: 7, Type: typ, NodeID: "n1", Time: time.Date(2026, 11, 30, 10, 0, 0, 5e6, time.UTC), Causation: 6, Payload: jsontext.Value(payload),
	}
}

// key has the form of what somebody else hands out. Events of v1 hold no such thing,
// wherever it came from (v1 capabilities.md §Secrets).
var key = "sk" + "-" + strings.Repeat("NotAKey0", 3)

// cases are payloads as this host's logs hold them, and as v1 has them.
var cases = []struct {
	typ      event.Type
	is, want string
}{
	{event.NodeStarted, `{"nodeId":"n1","typeId":"core.noop","attempt":0}`, `{"nodeId":"n1","typeId":"core.noop","attempt":0}`},
	{event.RunStarted, `{"workflowId":"w","inputs":{"runId":"acme/fedcba9876543210","n":1.50},"transport":"rest","engineVersion":1,"owner":{"tenant":"acme","workspace":"eu","subject":` + subject + `},"tags":["a"],"x-fermata":{"workflowVersion":"1","parent":{"runId":"acme/fedcba9876543210"}}}`,
		`{"workflowId":"w","inputs":{"runId":"acme/fedcba9876543210","n":1.50},"transport":"rest","engineVersion":"1","owner":{"tenant":"acme","workspace":"eu","principal":"ann"},"tags":["a"]}`},
	{event.RunStarted, `{"workflowId":"w","inputs":{"said":"use ` + key + ` now","n":1.50}}`, `{"workflowId":"w","inputs":{"said":"use [hidden] now","n":1.50}}`},
	{event.NodeDispatched, `{"childRunId":` + child + `,"childWorkflowId":"w","childStatus":"pending"}`, `{"childRunId":"fedcba9876543210","childWorkflowId":"w","childStatus":"pending"}`},
	{event.NodeCompleted, `{"nodeId":"n1","outputs":{"childRunId":` + child + `,"deep":{"childRunId":` + child + `},"n":1e400},"durationMs":3,"x-fermata":{"edges":["e"]}}`,
		`{"nodeId":"n1","outputs":{"childRunId":"fedcba9876543210","deep":{"childRunId":` + child + `},"n":1e400},"durationMs":3}`},
	{event.NodeFailed, `{"nodeId":"n1","error":{"code":"internal_error","message":"m","details":{"childRunId":` + child + `}},"attempts":1}`,
		`{"nodeId":"n1","error":{"code":"internal_error","message":"m","details":{"childRunId":"fedcba9876543210"}},"attempts":1}`},
	{event.RunFailed, `{"error":{"code":"internal_error","message":"m","details":{"reason":"child_failed","n":1.0}},"failedNodeId":"n1","durationMs":1}`,
		`{"error":{"code":"child_failed","message":"m","details":{"reason":"child_failed","n":1.0}},"failedNodeId":"n1","durationMs":1}`},
	{event.NodeRetried, `{"nodeId":"n1","attempt":1,"delayMs":0,"lastError":{"code":"internal_error","message":"m","details":{"reason":"It broke."}}}`,
		`{"nodeId":"n1","attempt":1,"delayMs":0,"lastError":{"code":"internal_error","message":"m","details":{"reason":"It broke."}}}`},
	{event.RunCancelled, `{"reason":"parent-cancelled","durationMs":1,"parentRunId":` + child + `}`, `{"reason":"parent-cancelled","durationMs":1,"parentRunId":"fedcba9876543210"}`},
	{event.OutputChunk, `{"nodeId":"n1","runId":"acme/0123456789abcdef","chunk":"\u00e9","isLast":true}`, `{"nodeId":"n1","runId":"0123456789abcdef","chunk":"\u00e9","isLast":true}`},
	{event.ReplayDiverged, `{"sourceRunId":` + child + `,"atSequence":3,"originalEventId":"fedcba9876543210-3","divergenceKind":"output","divergencePoint":"node.completed","x-fermata":{"replayEventId":"a"}}`,
		`{"sourceRunId":"fedcba9876543210","atSequence":3,"originalEventId":"fedcba9876543210-3","divergenceKind":"output","divergencePoint":"node.completed"}`},
	{event.ChannelWritten, `{"channel":"c","value":{"runId":` + child + `},"reducer":"append","nodeId":"n1","writtenAt":"2026-11-30T10:00:00.005Z"}`,
		`{"channel":"c","value":{"runId":` + child + `},"reducer":"append","nodeId":"n1","writtenAt":"2026-11-30T10:00:00.005Z"}`},
	{event.NodeSuspended, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","key":"k"}`, `{"nodeId":"n1","interruptId":"int0123456789abc","kind":"approval","key":"k"}`},
	{event.InterruptRequested, `{"kind":"clarification","key":"k","data":{"questions":[{"id":"q","question":"?"}]}}`, `{"kind":"clarification","key":"k","data":{"questions":[{"id":"q","question":"?"}]}}`},
	{event.InterruptResolved, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","resumeValue":{"action":"accept"},"resolvedBy":` + subject + `,"decision":"granted","action":"accept","x-fermata":{"via":"token"}}`,
		`{"nodeId":"n1","interruptId":"int0123456789abc","kind":"approval","resumeValue":{"action":"accept"},"resolvedBy":"ann","decision":"granted","action":"accept"}`},
	{event.ApprovalRequested, `{"kind":"approval","key":"k","data":{"title":"Go?","actions":["accept","reject"],"requiredApprovals":2}}`,
		`{"nodeId":"n1","title":"Go?","actions":["accept","reject"],"requiredApprovals":2,"artifactId":"n1","artifactType":"approval"}`},
	{event.ApprovalReceived, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","resumeValue":{"action":"accept","feedback":"fine"},"resolvedBy":` + subject + `,"action":"accept"}`,
		`{"nodeId":"n1","interruptId":"int0123456789abc","kind":"approval","resumeValue":{"action":"accept","feedback":"fine"},"action":"accept","decidedBy":"ann","decidedAt":"2026-11-30T10:00:00.005Z","feedback":"fine"}`},
	{event.ApprovalReceived, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","resumeValue":{"action":"accept","voter":"bob"},"resolvedBy":` + subject + `,"action":"accept","x-fermata":{"voter":"bob"}}`,
		`{"nodeId":"n1","interruptId":"int0123456789abc","kind":"approval","resumeValue":{"action":"accept","voter":"bob"},"action":"accept","decidedBy":"bob","decidedAt":"2026-11-30T10:00:00.005Z"}`},
	{event.ApprovalReceived, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","reason":"timeout","decision":"rejected","action":"timeout"}`,
		`{"nodeId":"n1","interruptId":"int0123456789abc","kind":"approval","reason":"timeout","decision":"rejected","action":"timeout","decidedAt":"2026-11-30T10:00:00.005Z"}`},
	{event.ApprovalGranted, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","resumeValue":{"action":"accept"},"resolvedBy":` + subject + `,"decision":"granted","action":"accept"}`, `{"gateId":"n1","principal":"ann"}`},
	{event.ApprovalRejected, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","reason":"timeout","decision":"rejected","action":"timeout"}`, `{"gateId":"n1","principal":"system","reason":"timeout"}`},
	{event.ApprovalOverridden, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"approval","resumeValue":{"action":"accept","comment":"now"},"resolvedBy":` + subject + `,"action":"accept"}`, `{"gateId":"n1","principal":"ann","reason":"now"}`},
	{event.ApprovalOverridden, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","resolvedBy":` + subject + `}`, `{"gateId":"n1","principal":"ann","reason":"released by an override principal"}`},
	{event.ClarificationRequested, `{"kind":"clarification","key":"k","data":{"questions":[{"id":"q","question":"?"}]}}`, `{"nodeId":"n1","questions":[{"id":"q","question":"?"}]}`},
	{event.ClarificationResolved, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","kind":"clarification","resumeValue":{"answers":[{"id":"q","answer":2.0}]},"resolvedBy":` + subject + `}`,
		`{"nodeId":"n1","answers":{"q":2.0},"interruptId":"int0123456789abc","answeredBy":"ann"}`},
	{event.ClarificationResolved, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","resumeValue":{"answers":{"q":"a"}},"resolvedBy":` + subject + `}`,
		`{"nodeId":"n1","answers":{"q":"a"},"interruptId":"int0123456789abc","answeredBy":"ann"}`},
	{event.ClarificationResolved, `{"nodeId":"n1","interruptId":"acme/int0123456789abc","resumeValue":"[REDACTED]","resolvedBy":` + subject + `}`,
		`{"nodeId":"n1","answers":{},"interruptId":"int0123456789abc","answeredBy":"ann"}`},
	{event.LogAppended, `{"level":"info","message":"m","x-fermata":{"taken":1}}`, `{"level":"info","message":"m"}`},
	{event.CapBreached, `{"kind":"node-executions","limit":3,"observed":4,"nodeId":"n1"}`, `{"kind":"node-executions","limit":3,"observed":4,"nodeId":"n1"}`},
	// Somebody else's id, and something that only looks like one.
	{event.NodeDispatched, `{"childRunId":"beta/fedcba9876543210","childWorkflowId":"w","childStatus":"x"}`, `{"childRunId":"beta/fedcba9876543210","childWorkflowId":"w","childStatus":"x"}`},
	{event.Type("proposal.created"), `{"proposalId":"p","kind":"automation","sourceRunIds":[` + child + `,"x"]}`, `{"proposalId":"p","kind":"automation","sourceRunIds":["fedcba9876543210","x"]}`},
}

func TestPayloads(t *testing.T) {
	for _, c := range cases {
		e := of(c.typ, c.is)
		if got := string(v1wire.Payload(e)); got != c.want {
			t.Errorf("%s %s\n is %s\nwant %s", c.typ, c.is, got, c.want)
		}
		if string(e.Payload) != c.is {
			t.Errorf("%s: the event itself has changed: %s", c.typ, e.Payload)
		}
	}
}

// What v1 wrote itself comes out as it was.
func TestPayloadsOfV1StayAsTheyAre(t *testing.T) {
	for typ, payload := range map[string]string{
		"run.started":             `{"workflowId":"w","engineVersion":"3.1","owner":{"tenant":"acme","principal":"p1"}}`,
		"approval.requested":      `{"nodeId":"n1","artifactId":"a","artifactType":"doc","actions":["accept"]}`,
		"approval.received":       `{"nodeId":"n1","action":"accept","decidedBy":"p1"}`,
		"approval.granted":        `{"gateId":"g","principal":"p1","quorumProgress":{"granted":1,"required":2}}`,
		"clarification.requested": `{"nodeId":"n1","questions":[]}`,
		"clarification.resolved":  `{"nodeId":"n1","answers":{"q":1}}`,
		"interrupt.resolved":      `{"nodeId":"n1","interruptId":"i1","kind":"custom","resumeValue":{"x":1}}`,
		"agent.toolCalled":        `{"agentId":"a","toolName":"t","callId":"c","b":1.50}`,
		"run.dead_lettered":       `{"runId":"0123456789abcdef","reason":"r","attempts":1}`,
	} {
		stored, err := event.Old(run, 7, typ, jsontext.Value(payload), time.Unix(0, 0), "cause-of-theirs")
		if err != nil {
			t.Fatal(err)
		}
		e, err := event.Decode(stored.Doc(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Type, CausationID, RunID, EngineVersion string
			Payload                                 json.RawMessage
		}
		if err := json.Unmarshal(v1wire.Doc(&e), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.Type != typ || doc.CausationID != "cause-of-theirs" || doc.RunID != run.Opaque {
			t.Errorf("%s: %+v", typ, doc)
		}
		if typ == "run.started" {
			payload = `{"engineVersion":"3.1","owner":{"tenant":"acme","principal":"p1"},"workflowId":"w"}` // the stamp sorts members
		}
		if string(doc.Payload) != payload {
			t.Errorf("%s\n is %s\nwant %s", typ, doc.Payload, payload)
		}
	}
}

func TestDoc(t *testing.T) {
	e := of("agent.tool-called", `{"a":1.50}`)
	want := `{"eventId":"0123456789abcdef-7","runId":"0123456789abcdef","sequence":7,"type":"agent.toolCalled","nodeId":"n1",` +
		`"timestamp":"2026-11-30T10:00:00.005Z","schemaVersion":1,"engineVersion":"1","causationId":"0123456789abcdef-6"`
	if got := string(v1wire.Doc(e)); got != want+`,"payload":{"a":1.50}}` {
		t.Errorf("%s", got)
	}
	if got := string(v1wire.AliasedDoc(e)); got != want+`,"seq":7,"data":{"a":1.50},"payload":{"a":1.50}}` {
		t.Errorf("%s", got)
	}
	e.NodeID, e.Causation, e.Type = "", -1, "acme.own.thing"
	if got := string(v1wire.Doc(e)); strings.Contains(got, "nodeId") || strings.Contains(got, "causationId") || !strings.Contains(got, `"acme.own.thing"`) {
		t.Errorf("%s", got)
	}
}

// Of every registered type: its name in v1 leads back to it.
func TestNames(t *testing.T) {
	renamed := 0
	for _, row := range event.Rows() {
		name := v1wire.Name(row.Type)
		if back, ok := event.LookupV1(name); !ok || back.Type != row.Type {
			t.Errorf("%s is %s, which is %s", row.Type, name, back.Type)
		}
		if name != string(row.Type) {
			renamed++
		}
	}
	if renamed != 36 {
		t.Errorf("%d types have two names, want 36", renamed)
	}
}

func TestTiers(t *testing.T) {
	for typ, want := range map[event.Type][2]bool{
		event.RunStarted: {true, true}, event.RunPaused: {true, true}, event.NodeDispatched: {true, true}, event.ApprovalOverridden: {true, true},
		"workspace.updated": {true, true}, "deployment.canary-adjusted": {true, true}, event.NodeStarted: {false, true},
		event.NodeRetried: {}, event.NodeResumed: {}, event.VariableChanged: {}, event.LogAppended: {}, event.OutputChunk: {},
		"version.pinned": {}, "lease.lost": {}, "run.resume-started": {}, "run.dead-lettered": {}, "acme.own.thing": {},
	} {
		if got := [2]bool{v1wire.InUpdates(typ), v1wire.InValues(typ)}; got != want {
			t.Errorf("%s: %v, want %v", typ, got, want)
		}
	}
}

// v1schemas compiles schemas of v1 by their names; where there are none beside the
// module, the test is skipped.
func v1schemas(t *testing.T) func(pointer string) *jsonschema.Schema {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "protocol", "v1", "schemas")
	files, _ := filepath.Glob(filepath.Join(dir, "*.schema.json"))
	if len(files) == 0 {
		t.Skip("the schemas of v1 are not beside the module")
	}
	c := jsonschema.NewCompiler()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		withoutLookahead(doc)
		if err := c.AddResource(doc.(map[string]any)["$id"].(string), doc); err != nil {
			t.Fatal(err)
		}
	}
	return func(pointer string) *jsonschema.Schema {
		t.Helper()
		s, err := c.Compile("https://openwop.dev/spec/v1/" + pointer)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// withoutLookahead takes out patterns that no Go program can read.
func withoutLookahead(v any) {
	switch v := v.(type) {
	case map[string]any:
		if p, ok := v["pattern"].(string); ok && strings.Contains(p, "(?!") {
			delete(v, "pattern")
		}
		for _, x := range v {
			withoutLookahead(x)
		}
	case []any:
		for _, x := range v {
			withoutLookahead(x)
		}
	}
}

func TestDocumentsFitV1sSchemas(t *testing.T) {
	schema := v1schemas(t)
	envelope := schema("run-event.schema.json")
	for _, c := range cases {
		e := of(c.typ, c.is)
		for _, b := range [][]byte{v1wire.Doc(e), v1wire.AliasedDoc(e)} {
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if err := envelope.Validate(doc); err != nil {
				t.Errorf("%s: %v", c.typ, err)
			}
		}
		payload := schema("run-event-payloads.schema.json#/$defs/_typeIndex/properties/" + v1wire.Name(c.typ))
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(v1wire.Payload(e)))
		if err != nil {
			t.Fatal(err)
		}
		if err := payload.Validate(doc); err != nil {
			t.Errorf("payload of %s: %v", c.typ, err)
		}
	}
}

func FuzzPayload(f *testing.F) {
	for _, c := range cases {
		f.Add(string(c.typ), c.is)
	}
	f.Add("run.started", `{"x-fermata":1,"x-fermata":2,"runId":"acme/","owner":{"subject":7}}`)
	f.Fuzz(func(t *testing.T, typ, payload string) {
		if !jsontext.Value(payload).IsValid() {
			t.Skip()
		}
		e := of(event.Type(typ), payload)
		if got := v1wire.Payload(e); !got.IsValid(jsontext.AllowDuplicateNames(true)) || string(e.Payload) != payload {
			t.Errorf("%s %s is %s", typ, payload, got)
		}
	})
}

package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/node"
)

const askGate = `{"id":"g","name":"g","version":"1","nodes":[{"id":"gate","typeId":"core.approvalGate","name":"gate",
	"position":{"x":0,"y":0},"config":{"title":"?","actions":["accept","ask"],"requiredApprovals":3},"inputs":{}}],
	"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`

// A gate that is asked thousands of things stays as small as one that was asked a
// few, and so do a vote that is changed all the time and the answer at its end.
func TestAGateStaysSmallHoweverMuchItIsAsked(t *testing.T) {
	w := newWorld(t, []byte(askGate))
	if err := w.command("start"); err != nil {
		t.Fatal(err)
	}
	size := func() int {
		b, err := w.s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	text := strings.Repeat("x", 400)
	largest := 0
	for i := range 5000 {
		who := []string{"ann", "bob", "cid"}[i%3]
		line := fmt.Sprintf(`answer gate %s {"action":"ask","feedback":"%d %s"}`, who, i, text)
		if i%5 == 4 {
			line = `answer gate ann {"action":"accept"}` // again and again, and still one vote
		}
		if err := w.command(line); err != nil {
			t.Fatal(err)
		}
		if i%500 == 499 {
			largest = max(largest, size())
		}
	}
	if largest > 40<<10 {
		t.Errorf("the state grew to %d bytes", largest)
	}
	if st := w.s.Status(); st != "waiting-approval" {
		t.Fatalf("one voter opened the gate: %s", st)
	}
	for _, who := range []string{"bob", "cid"} {
		if err := w.command(`answer gate ` + who + ` {"action":"accept"}`); err != nil {
			t.Fatal(err)
		}
	}
	if st := w.s.Status(); st != "completed" || size() > 80<<10 {
		t.Errorf("%s, %d bytes", st, size())
	}
	w.check()
}

const oneTask = `{"id":"t","name":"t","version":"1","nodes":[{"id":"t","typeId":"test.task","name":"t",
	"position":{"x":0,"y":0},"config":{},"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`

// A node that asks for what it has been told, and again, and again, comes to an end.
func TestANodeThatNeverListensFails(t *testing.T) {
	w := newWorld(t, []byte(oneTask))
	for _, line := range []string{"start", "ask t k", `answer t bob "yes"`} {
		if err := w.command(line); err != nil {
			t.Fatal(err)
		}
	}
	for range 1001 {
		if st := w.s.Status(); st != "running" {
			t.Fatalf("%s too early", st)
		}
		if err := w.command("ask t k"); err != nil {
			t.Fatal(err)
		}
	}
	if st := w.s.Status(); st != "failed" || w.s.Error == nil || w.s.Error.Code != "node_config_invalid" {
		t.Errorf("%s %+v", st, w.s.Error)
	}
	w.check()
}

// Keys of whatever length come to one that fits, and differ where they differ.
func TestLongKeysDiffer(t *testing.T) {
	long := strings.Repeat("é", 120)
	keys := map[string]bool{}
	for _, k := range []string{long + "a", long + "b", long, "0", strings.Repeat("k", 256)} {
		w := newWorld(t, []byte(oneTask))
		for _, line := range []string{"start", "ask t " + k} {
			if err := w.command(line); err != nil {
				t.Fatal(err)
			}
		}
		w.check()
		key := w.s.Interrupts()[0].Request.Key
		if len(key) > 256 || keys[key] {
			t.Errorf("%d bytes: %s", len(key), key)
		}
		keys[key] = true
	}
	w := newWorld(t, []byte(oneTask))
	for _, line := range []string{"start", "ask t " + strings.Repeat("k", 257)} {
		if err := w.command(line); err != nil {
			t.Fatal(err)
		}
	}
	if w.s.Status() != "failed" {
		t.Errorf("a key of 257 bytes: %s", w.s.Status())
	}
}

// A gate that its list cannot pass is refused wherever it comes from.
func TestAGateNobodyCanPass(t *testing.T) {
	for data, want := range map[string]string{
		`"requiredApprovals":2,"approversList":["ann"]`:                               "failed",
		`"requiredApprovals":2,"approversList":["ann","ann"]`:                         "failed",
		`"requiredApprovals":2,"approversList":["ann"],"approverGroupRefs":["g"]`:     "waiting-approval",
		`"requiredApprovals":2,"approversList":["ann"],"overrideBypassesQuorum":true`: "waiting-approval",
		`"requiredApprovals":2,"approversList":[]`:                                    "waiting-approval",
		`"requiredApprovals":2,"approversList":["ann","bob"]`:                         "waiting-approval",
	} {
		w := newWorld(t, []byte(oneTask))
		if err := w.command("start"); err != nil {
			t.Fatal(err)
		}
		ask := node.Interrupt{Kind: "approval", Data: []byte(`{"artifactId":"a","artifactType":"b","title":"c","actions":["accept"],` + data + `}`)}
		w.finish("t", node.Suspend(ask, nil), nil)
		if st := w.s.Status(); st != want {
			t.Errorf("%s: %s", data, st)
		}
	}
}

// A schema that no answer could ever be held against ends its node, instead of a
// gate that refuses whatever is said.
func TestSchemasThatCannotBeUsedAreRefusedBeforeAnybodyIsAsked(t *testing.T) {
	doubling := `{"$defs":{"d40":{}`
	for i := range 40 {
		doubling += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}
	doubling += `},"$ref":"#/$defs/d0"}`
	many := strings.Repeat(`{"id":"q","question":"?","schema":{"type":"string"}},`, 300)
	for name, ask := range map[string]node.Interrupt{
		"remote":        {Kind: "custom", Data: []byte(`{"customKind":"x"}`), ResumeSchema: []byte(`{"$ref":"https://example.com/s.json"}`)},
		"a file":        {Kind: "custom", Data: []byte(`{"customKind":"x"}`), ResumeSchema: []byte(`{"$ref":"file:///etc/passwd"}`)},
		"broken":        {Kind: "custom", Data: []byte(`{"customKind":"x"}`), ResumeSchema: []byte(`{"type":7}`)},
		"doubling":      {Kind: "custom", Data: []byte(`{"customKind":"x"}`), ResumeSchema: []byte(doubling)},
		"itself":        {Kind: "custom", Data: []byte(`{"customKind":"x"}`), ResumeSchema: []byte(`{"$ref":"#"}`)},
		"deep":          {Kind: "custom", Data: []byte(`{"customKind":"x"}`), ResumeSchema: []byte(strings.Repeat(`{"not":`, 500) + "{}" + strings.Repeat("}", 500))},
		"of a question": {Kind: "clarification", Data: []byte(`{"questions":[{"id":"a","question":"?"},{"id":"b","question":"?","schema":{"$ref":"https://example.com/"}}]}`)},
		"of a turn":     {Kind: "conversation.exchange", Data: []byte(`{"conversationId":"c","prompt":"?","outcomeSchema":{"pattern":"("}}`)},
		"too many":      {Kind: "clarification", Data: []byte(`{"questions":[` + strings.TrimSuffix(many, ",") + `]}`)},
	} {
		w := newWorld(t, []byte(oneTask))
		if err := w.command("start"); err != nil {
			t.Fatal(err)
		}
		w.finish("t", node.Suspend(ask, nil), nil)
		if st := w.s.Status(); st != "failed" || w.s.Error.Code != "node_config_invalid" {
			t.Errorf("%s: %s %+v", name, st, w.s.Error)
		}
	}
}

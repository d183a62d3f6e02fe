package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/node"
)

// wait runs a node up to its interrupt, and gives the input it is woken with.
func wait(t *testing.T, id string, i *node.Input, a *node.Answer) (*node.Interrupt, *node.Input) {
	t.Helper()
	r, err := run(t, id, i)
	if err != nil || r.Kind() != node.Suspended {
		t.Fatalf("%s %s: kind %v, %v", id, i.Config, r.Kind(), err)
	}
	again := *i
	again.Wake = &node.Wake{State: r.State(), Answer: a}
	return r.Interrupt(), &again
}

func answer(action, value string) *node.Answer {
	a := &node.Answer{InterruptID: "x", Kind: "approval", Action: action, By: "user-7"}
	if value != "" {
		a.Value = json.RawMessage(value)
	}
	return a
}

func TestApprovalData(t *testing.T) {
	for config, want := range map[string]string{
		``: `{"artifactId":"n1","artifactType":"approval","title":"Node one","actions":["accept","reject"]}`,
		`{"title":"Pay?","description":"A bill","actions":["accept","reject"],"profile":"x","onTimeout":"accept"}`:                                                                                                         `{"artifactId":"n1","artifactType":"approval","title":"Pay?","description":"A bill","actions":["accept","reject"]}`,
		`{"title":"t","artifactId":"doc-1","artifactType":"doc","artifactData":` + exact + `}`:                                                                                                                             `{"artifactId":"doc-1","artifactType":"doc","title":"t","artifactData":` + exact + `,"actions":["accept","reject"]}`,
		`{"title":"t","requiredApprovals":3,"rejectionPolicy":"majority","approversList":[]}`:                                                                                                                              `{"artifactId":"n1","artifactType":"approval","title":"t","actions":["accept","reject"],"requiredApprovals":3,"rejectionPolicy":"majority","approversList":[]}`,
		`{"title":"t","actions":["accept","refine","edit-accept","ask"],"approversList":["u1"],"approverGroupRefs":["g"],"approverRoleRefs":["r"],"audience":{"subjects":["s"],"roles":[]},"overrideBypassesQuorum":true}`: `{"artifactId":"n1","artifactType":"approval","title":"t","actions":["accept","refine","edit-accept","ask"],"approversList":["u1"],"approverGroupRefs":["g"],"approverRoleRefs":["r"],"audience":{"subjects":["s"],"roles":[]},"overrideBypassesQuorum":true}`,
	} {
		ask, _ := wait(t, "core.approvalGate", in(config), nil)
		if ask.Kind != "approval" || ask.Timeout != 0 || ask.Key != "" {
			t.Errorf("%+v", ask)
		}
		sameJSON(t, config, ask.Data, want)
		if err := obey("data", ask.Data, dataRules["approval"]); err != nil {
			t.Error(err)
		}
	}
	ask, _ := wait(t, "core.approvalGate", in(`{"title":"t","requiredApprovals":2}`), nil)
	sameJSON(t, "quorum alone", ask.Data, `{"artifactId":"n1","artifactType":"approval","title":"t","actions":["accept","reject"],"requiredApprovals":2}`)
	ask, _ = wait(t, "core.approvalGate", in(`{"timeoutMs":60000}`, "artifactData", exact, "title", `"From a port"`), nil)
	sameJSON(t, "ports", ask.Data, `{"artifactId":"n1","artifactType":"approval","title":"From a port","artifactData":`+exact+`,"actions":["accept","reject"]}`)
	if ask.Timeout != time.Minute {
		t.Error(ask.Timeout)
	}
}

func TestApprovalAnswers(t *testing.T) {
	const all = `{"actions":["accept","reject","refine","edit-accept","ask"]}`
	for _, c := range []struct {
		action, value, want string
	}{
		{"accept", `{"action":"accept"}`, `{"action":"accept","approved":true,"decidedBy":"user-7"}`},
		{"accept", `{"action":"accept","feedback":"schön","decidedBy":"someone-else"}`, `{"action":"accept","approved":true,"decidedBy":"user-7","feedback":"schön"}`},
		{"", `{"action":"accept"}`, `{"action":"accept","approved":true,"decidedBy":"user-7"}`},
		{"accept", ``, `{"action":"accept","approved":true,"decidedBy":"user-7"}`},
		{"edit-accept", `{"action":"edit-accept","editedArtifactData":` + exact + `}`, `{"action":"edit-accept","approved":true,"artifactData":` + exact + `,"decidedBy":"user-7"}`},
		{"refine", `{"action":"refine","refineFeedback":{"more":["salt"]}}`, `{"action":"refine","approved":false,"decidedBy":"user-7","refineFeedback":{"more":["salt"]}}`},
	} {
		_, again := wait(t, "core.approvalGate", in(all), answer(c.action, c.value))
		completes(t, "core.approvalGate", again, c.want)
	}
	anonymous := answer("accept", `{"decidedBy":"claimed"}`)
	anonymous.By = ""
	_, again := wait(t, "core.approvalGate", in(all), anonymous)
	completes(t, "core.approvalGate", again, `{"action":"accept","approved":true,"decidedBy":"claimed"}`)
}

func TestApprovalNeverOpensByItself(t *testing.T) {
	for _, c := range []struct {
		name string
		a    *node.Answer
		code string
	}{
		{"rejected", answer("reject", `{"action":"reject"}`), "approval_rejected"},
		{"timed out", &node.Answer{Action: "timeout", TimedOut: true}, "approval_rejected"},
		{"timed out, saying accept", &node.Answer{Action: "accept", TimedOut: true}, "approval_rejected"},
		{"timeout without the flag", answer("timeout", ""), "approval_rejected"},
		{"not offered", answer("edit-accept", `{"editedArtifactData":1}`), node.CodeInternal},
		{"ask", answer("ask", ""), node.CodeInternal},
		{"unknown", answer("approve", ""), node.CodeInternal},
		{"nothing", answer("", ""), node.CodeInternal},
		{"the value disagrees with the host", answer("reject", `{"action":"accept"}`), "approval_rejected"},
	} {
		_, again := wait(t, "core.approvalGate", in(`{"actions":["accept","reject","ask"],"onTimeout":"accept"}`), c.a)
		e := fails(t, "core.approvalGate", again, c.code, "")
		if e.Retryable {
			t.Errorf("%s: it would be retried", c.name)
		}
		if c.code == "approval_rejected" && e.Details["action"] == nil {
			t.Errorf("%s: %v", c.name, e.Details)
		}
	}
	// What counts is what was offered, not what the run's data says by now.
	_, again := wait(t, "core.approvalGate", in(`{}`, "actions", `["reject"]`), answer("accept", ""))
	again.Inputs["actions"] = json.RawMessage(`["accept"]`)
	fails(t, "core.approvalGate", again, node.CodeInternal, "")
	_, again = wait(t, "core.approvalGate", in(`{}`), answer("accept", ""))
	again.Wake.State = nil
	fails(t, "core.approvalGate", again, node.CodeInternal, "")
	_, again = wait(t, "core.approvalGate", in(`{"actions":["edit-accept"]}`), answer("edit-accept", `{}`))
	fails(t, "core.approvalGate", again, node.CodeInternal, "edited artifact")
}

func TestApprovalConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"actions":[]}`:                                 "actions",
		`{"actions":["accept","accept"]}`:                "actions",
		`{"actions":["approve"]}`:                        "actions",
		`{"actions":[""]}`:                               "actions",
		`{"actions":["ask"]}`:                            "actions",
		`{"requiredApprovals":0}`:                        "requiredApprovals",
		`{"requiredApprovals":2,"approversList":["u1"]}`: "requiredApprovals",
		`{"rejectionPolicy":"none"}`:                     "rejectionPolicy",
		`{"timeoutMs":-1}`:                               "timeoutMs",
		`{"timeoutMs":1e18}`:                             "timeoutMs",
		`{"audience":{"subjects":"all"}}`:                "config.audience.subjects",
	} {
		badConfig(t, "core.approvalGate", in(config), field)
		refused(t, "core.approvalGate", config, field)
	}
	accepted(t, "core.approvalGate", `{"requiredApprovals":2,"approversList":["u1"],"approverGroupRefs":["g"]}`)
	accepted(t, "core.approvalGate", ``)
}

func TestClarification(t *testing.T) {
	config := `{"questions":[{"id":"q1","question":"Which colour?"},{"id":"q2","question":"Wie viele? 𝄐","schema":{"type":"number","maximum":1e400}}],"contextType":"form","timeoutMs":5}`
	ask, _ := wait(t, "core.clarificationGate", in(config), nil)
	sameJSON(t, "data", ask.Data, `{"questions":[{"id":"q1","question":"Which colour?"},{"id":"q2","question":"Wie viele? 𝄐","schema":{"type":"number","maximum":1e400}}],"contextType":"form"}`)
	if ask.Kind != "clarification" || ask.Timeout != 5*time.Millisecond || ask.ResumeSchema != nil {
		t.Errorf("%+v", ask)
	}
	if err := obey("data", ask.Data, dataRules["clarification"]); err != nil {
		t.Error(err)
	}
	for value, want := range map[string]string{
		`{"answers":{"q1":"blue","q2":12345678901234567890}}`:                  `{"answers":{"q1":"blue","q2":12345678901234567890}}`,
		`{"answers":[{"id":"q2","answer":1.10},{"id":"q1","answer":{"a":1}}]}`: `{"answers":{"q2":1.10,"q1":{"a":1}}}`,
		`[{"id":"q1","answer":"red"},{"id":"q1","answer":"blue"},{"id":"q2"}]`: `{"answers":{"q1":"blue","q2":null}}`,
		`{"answers":{}}`: `{"answers":{}}`,
	} {
		_, again := wait(t, "core.clarificationGate", in(config), &node.Answer{Value: json.RawMessage(value)})
		completes(t, "core.clarificationGate", again, want)
	}
	for _, value := range []string{``, `null`, `"blue"`, `{}`, `{"answers":"blue"}`, `{"answers":null}`, `[{"answer":1}]`, `[1]`,
		`[` + strings.Repeat(`{"id":"a"},`, 1000) + `{"id":"a"}]`} {
		_, again := wait(t, "core.clarificationGate", in(config), &node.Answer{Value: json.RawMessage(value)})
		fails(t, "core.clarificationGate", again, "validation_error", "")
	}
	_, again := wait(t, "core.clarificationGate", in(config), &node.Answer{TimedOut: true})
	fails(t, "core.clarificationGate", again, "interrupt_expired", "")
}

func TestClarificationConfig(t *testing.T) {
	accepted(t, "core.clarificationGate", `{}`)
	wait(t, "core.clarificationGate", in(`{}`, "questions", `[{"id":"a","question":"b"}]`), nil)
	badConfig(t, "core.clarificationGate", in(`{}`), "questions")
	many := `{"questions":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a","question":"b"},`, 101), ",") + `]}`
	for config, field := range map[string]string{
		`{"questions":[]}`:                 "questions",
		many:                               "questions",
		`{"questions":[{"question":"b"}]}`: "questions[0].id",
		`{"questions":[{"id":"a"}]}`:       "questions[0].question",
		`{"questions":[{"id":"a","question":"b"},{"id":"a","question":"c"}]}`: "questions[1].id",
		`{"questions":[{"id":"a","question":"b","schema":[]}]}`:               "questions[0].schema",
		`{"questions":[{"id":"a","question":"b"}],"timeoutMs":"soon"}`:        "timeoutMs",
		`{"questions":"what?"}`: "config.questions",
	} {
		badConfig(t, "core.clarificationGate", in(config), field)
		refused(t, "core.clarificationGate", config, field)
	}
}

func TestInterruptKinds(t *testing.T) {
	for _, c := range []struct{ kind, data, value, want string }{
		{"external-event", `{"eventType":"paid","correlation":{"order":12345678901234567890}}`, `{"order":12345678901234567890,"more":"é"}`,
			`{"event":{"order":12345678901234567890,"more":"é"},"resumeValue":{"order":12345678901234567890,"more":"é"}}`},
		{"custom", `{"customKind":"acme","payload":` + exact + `}`, `[1e400]`, `{"resumeValue":[1e400]}`},
		{"custom", `{"customKind":"acme"}`, ``, `{"resumeValue":null}`},
		{"clarification", `{"questions":[{"id":"a","question":"b"}]}`, `{"answers":{"a":1}}`, `{"answers":{"a":1},"resumeValue":{"answers":{"a":1}}}`},
		{"conversation.start", `{"conversationId":"c1","title":"t","initialPrompt":"p"}`, `"hi"`, `{"resumeValue":"hi"}`},
		{"conversation.exchange", `{"conversationId":"c1","prompt":"and?","outcomeSchema":{},"turnIndex":0}`, `"hi"`, `{"resumeValue":"hi"}`},
		{"conversation.close", `{"conversationId":"c1","reason":"done"}`, `null`, `{"resumeValue":null}`},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"c","actions":["accept"]}`, `{"action":"accept"}`,
			`{"action":"accept","approved":true,"resumeValue":{"action":"accept"}}`},
		{"low-confidence", `{"agentId":"a","threshold":0.7,"observed":1,"decision":null}`, `{"action":"accept"}`,
			`{"action":"accept","approved":true,"resumeValue":{"action":"accept"}}`},
	} {
		config := fmt.Sprintf(`{"kind":%q,"data":%s,"timeoutMs":60000,"resumeSchema":{"type":"object"},"key":"k"}`, c.kind, c.data)
		accepted(t, "core.interrupt", config)
		ask, again := wait(t, "core.interrupt", in(config), &node.Answer{Value: json.RawMessage(c.value)})
		if ask.Kind != c.kind || ask.Key != "k" || ask.Timeout != time.Minute || string(ask.ResumeSchema) != `{"type":"object"}` {
			t.Errorf("%+v", ask)
		}
		sameJSON(t, c.kind, ask.Data, c.data)
		completes(t, "core.interrupt", again, c.want)

		again.Wake.Answer = &node.Answer{TimedOut: true}
		code := "interrupt_expired"
		if c.kind == "approval" || c.kind == "low-confidence" {
			code = "approval_rejected"
		}
		fails(t, "core.interrupt", again, code, "")
		if early := typeOf(t, "core.interrupt").Early(json.RawMessage(config)); early != (c.kind == "external-event") {
			t.Errorf("%s: early %v", c.kind, early)
		}
	}
}

func TestInterruptData(t *testing.T) {
	for _, c := range []struct{ kind, data, field string }{
		{"external-event", `{"eventType":"a"}`, "data.correlation"},
		{"external-event", `{"eventType":"a","correlation":[]}`, "data.correlation"},
		{"external-event", `{"eventType":"a","correlation":{},"extra":1}`, "data.extra"},
		{"external-event", `{"EventType":"a","correlation":{}}`, "data.eventType"},
		{"custom", `{"customKind":""}`, "data.customKind"},
		{"custom", `[]`, "data"},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"c","actions":[]}`, "data.actions"},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"c","actions":"accept"}`, "data.actions"},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"","actions":["accept"]}`, "data.title"},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"c","actions":["accept"],"requiredApprovals":"1"}`, "data.requiredApprovals"},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"c","actions":["accept"],"rejectionPolicy":"x"}`, "data.rejectionPolicy"},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"c","actions":["accept"],"audience":{"all":true}}`, "data.audience.all"},
		{"approval", `{"artifactId":"a","artifactType":"b","title":"c","actions":["accept"],"approversList":["a",1]}`, "data.approversList[1]"},
		{"clarification", `{"questions":[]}`, "data.questions"},
		{"clarification", `{"questions":[{"id":"a","question":"b","context":{}}]}`, "data.questions[0].context"},
		{"clarification", `{"questions":[{"id":"a","question":"b"},{"id":"a","question":"b"}]}`, "data.questions[1].id"},
		{"conversation.start", `{"conversationId":"` + strings.Repeat("é", 257) + `"}`, "data.conversationId"},
		{"conversation.exchange", `{"conversationId":"c"}`, "data.prompt"},
		{"conversation.exchange", `{"conversationId":"c","prompt":"p","turnIndex":-1}`, "data.turnIndex"},
		{"conversation.close", `{"conversationId":"c","reason":1}`, "data.reason"},
		{"low-confidence", `{"agentId":"a","threshold":1.01,"observed":0}`, "data.threshold"},
		{"low-confidence", `{"agentId":"a","threshold":1,"observed":-0.1}`, "data.observed"},
		{"low-confidence", `{"agentId":"a","threshold":1,"observed":"0"}`, "data.observed"},
	} {
		config := fmt.Sprintf(`{"kind":%q,"data":%s}`, c.kind, c.data)
		refused(t, "core.interrupt", config, c.field)
		badConfig(t, "core.interrupt", in(config), c.field)
	}
	for config, field := range map[string]string{
		`{}`:              "kind",
		`{"kind":"auth"}`: "kind",
		`{"kind":"custom","data":{"customKind":"a"},"timeoutMs":-1}`:                           "timeoutMs",
		`{"kind":"custom","data":{"customKind":"a"},"resumeSchema":[]}`:                        "resumeSchema",
		`{"kind":"custom","data":{"customKind":"a"},"key":"` + strings.Repeat("k", 257) + `"}`: "key",
	} {
		refused(t, "core.interrupt", config, field)
		badConfig(t, "core.interrupt", in(config), field)
	}
	accepted(t, "core.interrupt", `{"kind":"custom"}`)
	unsure, _ := wait(t, "core.interrupt", in(`{"kind":"low-confidence","data":{"agentId":"a","threshold":1,"observed":0.2}}`), nil)
	if !json.Valid(unsure.ResumeSchema) {
		t.Errorf("%s", unsure.ResumeSchema)
	}
	ask, _ := wait(t, "core.interrupt", in(`{"kind":"custom"}`, "data", `{"customKind":"a"}`, "timeoutMs", "7"), nil)
	if ask.Timeout != 7*time.Millisecond {
		t.Error(ask.Timeout)
	}
	badConfig(t, "core.interrupt", in(`{"kind":"custom"}`), "data")
	if typeOf(t, "core.interrupt").Early(json.RawMessage(`{`)) {
		t.Error("a config that is no JSON is early")
	}
}

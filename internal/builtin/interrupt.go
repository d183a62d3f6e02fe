package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-run/fermata/node"
)

// interruptConfig leaves out data, which is taken as the bytes it came in.
type interruptConfig struct {
	Kind         string          `json:"kind"`
	Key          string          `json:"key"`
	ResumeSchema json.RawMessage `json:"resumeSchema"`
	TimeoutMs    number          `json:"timeoutMs"`
}

func interrupt() node.Type {
	return node.Type{
		ID:          "core.interrupt",
		Description: "Holds the run until something outside answers: a person, a system or an event.",
		Pure:        true,
		ConfigSchema: closed(`"kind":{"enum":["approval","clarification","external-event","custom",`+
			`"conversation.start","conversation.exchange","conversation.close","low-confidence"]},`+
			`"data":{"type":"object"},"key":`+nameType+`,"resumeSchema":{"type":"object"},"timeoutMs":`+timeoutType, "kind"),
		Check: checkInterrupt,
		Early: func(config json.RawMessage) bool {
			var cfg interruptConfig
			return json.Unmarshal(config, &cfg) == nil && cfg.Kind == "external-event"
		},
		Expect: func(config json.RawMessage) (node.Interrupt, bool) {
			var cfg interruptConfig
			if json.Unmarshal(config, &cfg) != nil {
				return node.Interrupt{}, false
			}
			data := member(&node.Input{Config: config}, "data") // none if it comes in through a port
			return node.Interrupt{Kind: cfg.Kind, Data: data, ResumeSchema: cfg.ResumeSchema}, true
		},
		Ports: interruptPorts,
		Run:   runInterrupt,
	}
}

func interruptPorts(config json.RawMessage) node.Ports {
	var cfg interruptConfig
	if json.Unmarshal(config, &cfg) != nil {
		return node.Ports{}
	}
	out := []string{"resumeValue"}
	switch cfg.Kind {
	case "approval", "low-confidence":
		out = append(out, verdictOutputs...)
	case "clarification":
		out = append(out, "answers")
	case "external-event":
		out = append(out, "event")
	}
	return node.Ports{Outputs: out}
}

func checkInterrupt(c node.CheckContext) error {
	var cfg interruptConfig
	if err := declared(c, &cfg); err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return err
	}
	data := member(&node.Input{Config: c.Config}, "data")
	if len(data) == 0 {
		return nil // it may come in through a port
	}
	return checkData(cfg.Kind, data)
}

// checkData holds the data of an interrupt against the rules of its kind.
func checkData(kind string, data json.RawMessage) error {
	if err := obey("data", data, dataRules[kind]); err != nil || kind != "approval" {
		return err
	}
	var gate approvalConfig
	if err := json.Unmarshal(data, &gate); err != nil {
		return badMember("data", "cannot be read: %v", err)
	}
	quorum, err := gate.RequiredApprovals.whole("data.requiredApprovals", 1, 1, 1000)
	if err != nil {
		return err
	}
	return gate.canPass(quorum)
}

func (cfg *interruptConfig) check() error {
	if _, ok := dataRules[cfg.Kind]; !ok {
		return badMember("kind", "must be one of the protocol's interrupt kinds")
	}
	if len(cfg.Key) > 256 {
		return badMember("key", "is longer than 256 bytes")
	}
	if !absent(cfg.ResumeSchema) && kind(cfg.ResumeSchema) != "an object" {
		return badMember("resumeSchema", "must be an object")
	}
	_, err := cfg.TimeoutMs.whole("timeoutMs", 0, 0, maxTimeoutMs)
	return err
}

func runInterrupt(_ context.Context, in *node.Input) (node.Result, error) {
	var cfg interruptConfig
	if err := settings(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if v, ok := in.Inputs["timeoutMs"]; ok {
		cfg.TimeoutMs = number{v}
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	if in.Wake != nil && in.Wake.Answer != nil {
		out, err := answered(cfg.Kind, in.Wake.Answer, in.Wake.State)
		return node.DoneRaw(out), err
	}
	data := member(in, "data")
	if err := checkData(cfg.Kind, data); err != nil {
		return node.Result{}, err
	}
	ask := node.Interrupt{Kind: cfg.Kind, Key: cfg.Key, Data: data}
	switch {
	case !absent(cfg.ResumeSchema):
		ask.ResumeSchema = cfg.ResumeSchema
	case cfg.Kind == "low-confidence":
		ask.ResumeSchema = confidenceSchema
	}
	ms, _ := cfg.TimeoutMs.whole("timeoutMs", 0, 0, maxTimeoutMs)
	ask.Timeout = time.Duration(ms) * time.Millisecond
	return node.Suspend(ask, waitingFor(cfg.Kind, data)), nil
}

// confidenceSchema is what answers a low-confidence interrupt, whose data names
// no actions. It lets the host refuse another answer while it can be corrected.
var confidenceSchema = json.RawMessage(`{"type":"object","required":["action"],"properties":{"action":{"enum":["accept","reject","refine","edit-accept"]}}}`)

// waitingFor is the state to wait with: the actions offered, where there are any.
func waitingFor(kind string, data json.RawMessage) any {
	switch kind {
	case "approval":
		return offer(offeredIn(data)) // both spell the member actions
	case "low-confidence":
		return offer([]string{"accept", "reject", "refine", "edit-accept"})
	}
	return nil
}

// answered turns an answer into outputs, by kind. What people decide fails as an
// approval does; what merely never came is an expiry.
func answered(kind string, a *node.Answer, state json.RawMessage) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	var err error
	switch {
	case kind == "approval", kind == "low-confidence":
		out, err = decide(a, offeredIn(state))
	case a.TimedOut:
		err = expired(kind)
	case kind == "clarification":
		out["answers"], err = answersOf(a.Value)
	case kind == "external-event":
		out["event"] = orNull(a.Value)
	}
	if err != nil {
		return nil, err
	}
	out["resumeValue"] = orNull(a.Value)
	return out, nil
}

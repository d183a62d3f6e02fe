package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/fermata-run/fermata/node"
)

// maxTimeoutMs is ten years.
const maxTimeoutMs = 3660 * 24 * 3600 * 1000

// approvalConfig leaves out artifactData, which is taken as the bytes it came
// in.
type approvalConfig struct {
	Title                  string    `json:"title"`
	Description            string    `json:"description"`
	Actions                []string  `json:"actions"`
	ArtifactID             string    `json:"artifactId"`
	ArtifactType           string    `json:"artifactType"`
	RequiredApprovals      number    `json:"requiredApprovals"`
	RejectionPolicy        string    `json:"rejectionPolicy"`
	ApproversList          []string  `json:"approversList"`
	ApproverGroupRefs      []string  `json:"approverGroupRefs"`
	ApproverRoleRefs       []string  `json:"approverRoleRefs"`
	Audience               *audience `json:"audience"`
	OverrideBypassesQuorum bool      `json:"overrideBypassesQuorum"`
	TimeoutMs              number    `json:"timeoutMs"`
}

type audience struct {
	Subjects []string `json:"subjects"`
	Groups   []string `json:"groups"`
	Roles    []string `json:"roles"`
}

func approvalGate() node.Type {
	// The config is closed on purpose: a misspelt quorum must not make a gate
	// that one person opens.
	return node.Type{
		ID:          "core.approvalGate",
		Description: "Holds the run until people approve, refine or reject.",
		Pure:        true,
		ConfigSchema: closed(`"title":{"type":"string","minLength":1},"description":{"type":"string"},` +
			`"actions":{"type":"array","minItems":1,"uniqueItems":true,"items":{"enum":["accept","reject","refine","edit-accept","ask"]}},` +
			`"artifactId":{"type":"string","minLength":1},"artifactType":{"type":"string","minLength":1},"artifactData":{},` +
			`"requiredApprovals":{"type":"integer","minimum":1,"maximum":1000},"rejectionPolicy":{"enum":["single-veto","majority"]},` +
			`"approversList":` + textsType + `,"approverGroupRefs":` + textsType + `,"approverRoleRefs":` + textsType + `,` +
			`"audience":{"type":"object","additionalProperties":false,"properties":{"subjects":` + textsType +
			`,"groups":` + textsType + `,"roles":` + textsType + `}},"overrideBypassesQuorum":{"type":"boolean"},` +
			`"timeoutMs":` + timeoutType + `,"onTimeout":{},"profile":{}`),
		Check: func(c node.CheckContext) error {
			var cfg approvalConfig
			if err := declared(c, &cfg); err != nil {
				return err
			}
			return cfg.check()
		},
		Ports: puts(verdictOutputs...),
		Run:   runApprovalGate,
	}
}

func (cfg *approvalConfig) check() error {
	if cfg.Actions == nil {
		cfg.Actions = []string{"accept", "reject"}
	}
	if err := checkActions("actions", cfg.Actions); err != nil {
		return err
	}
	if !slices.ContainsFunc(cfg.Actions, func(a string) bool { return a != "ask" }) {
		return badMember("actions", "must offer more than ask, or the gate could never end")
	}
	if _, err := choice("rejectionPolicy", cfg.RejectionPolicy, "single-veto", "single-veto", "majority"); err != nil {
		return err
	}
	quorum, err := cfg.RequiredApprovals.whole("requiredApprovals", 1, 1, 1000)
	if err != nil {
		return err
	}
	if err := cfg.canPass(quorum); err != nil {
		return err
	}
	_, err = cfg.TimeoutMs.whole("timeoutMs", 0, 0, maxTimeoutMs)
	return err
}

// canPass refuses a quorum that those who are listed cannot make, each with one
// vote. How many a group holds, nobody knows before the answers come.
func (cfg *approvalConfig) canPass(quorum int64) error {
	listed := map[string]bool{}
	for _, s := range cfg.ApproversList {
		listed[s] = true
	}
	n := int64(len(listed))
	if n > 0 && quorum > n && len(cfg.ApproverGroupRefs)+len(cfg.ApproverRoleRefs) == 0 && !cfg.OverrideBypassesQuorum {
		return badMember("requiredApprovals", "is %d, but only %d may approve", quorum, n)
	}
	return nil
}

func checkActions(field string, actions []string) error {
	if len(actions) == 0 {
		return badMember(field, "must name at least one action")
	}
	for i, a := range actions {
		if _, err := choice(field, a, "", "accept", "reject", "refine", "edit-accept", "ask"); err != nil {
			return err
		}
		if slices.Contains(actions[:i], a) {
			return badMember(field, "names %s twice", a)
		}
	}
	return nil
}

func runApprovalGate(_ context.Context, in *node.Input) (node.Result, error) {
	if in.Wake != nil && in.Wake.Answer != nil {
		out, err := decide(in.Wake.Answer, offeredIn(in.Wake.State))
		return node.DoneRaw(out), err
	}
	var cfg approvalConfig
	if err := bind(in, &cfg); err != nil {
		return node.Result{}, err
	}
	if err := cfg.check(); err != nil {
		return node.Result{}, err
	}
	ms, _ := cfg.TimeoutMs.whole("timeoutMs", 0, 0, maxTimeoutMs)
	return node.Suspend(node.Interrupt{
		Kind:    "approval",
		Data:    cfg.data(in).raw(),
		Timeout: time.Duration(ms) * time.Millisecond,
	}, offer(cfg.Actions)), nil
}

// data builds the interrupt's data. It is a closed object, so a member that the
// author left out is left out of it too.
func (cfg *approvalConfig) data(in *node.Input) object {
	o := object{
		{"artifactId", quote(first(cfg.ArtifactID, in.NodeID))},
		{"artifactType", quote(first(cfg.ArtifactType, "approval"))},
		{"title", quote(first(cfg.Title, in.Name, in.NodeID))},
	}
	if cfg.Description != "" {
		o.set("description", quote(cfg.Description))
	}
	if v := member(in, "artifactData"); len(v) > 0 {
		o.set("artifactData", v)
	}
	o.set("actions", quotes(cfg.Actions))
	if n, _ := cfg.RequiredApprovals.whole("", 0, 1, 1000); n > 0 {
		o.set("requiredApprovals", position(int(n)))
	}
	if cfg.RejectionPolicy != "" {
		o.set("rejectionPolicy", quote(cfg.RejectionPolicy))
	}
	o.texts("approversList", cfg.ApproversList)
	o.texts("approverGroupRefs", cfg.ApproverGroupRefs)
	o.texts("approverRoleRefs", cfg.ApproverRoleRefs)
	if cfg.Audience != nil {
		var a object
		a.texts("subjects", cfg.Audience.Subjects)
		a.texts("groups", cfg.Audience.Groups)
		a.texts("roles", cfg.Audience.Roles)
		o.set("audience", a.raw())
	}
	if cfg.OverrideBypassesQuorum {
		o.set("overrideBypassesQuorum", json.RawMessage("true"))
	}
	return o
}

func (o *object) texts(name string, list []string) {
	if list != nil {
		o.set(name, quotes(list))
	}
}

func first(options ...string) string {
	for _, s := range options {
		if s != "" {
			return s
		}
	}
	return "-"
}

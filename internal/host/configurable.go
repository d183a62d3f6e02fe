package host

import (
	"errors"
	"strings"

	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// configurable is the closed, nested run overlay (spec v2 runs.md §Run options).
type configurable struct {
	Version *int `json:"version"`
	Run     *struct {
		RecursionLimit      *int64   `json:"recursionLimit"`
		RunTimeoutMs        *int64   `json:"runTimeoutMs"`
		MaxLoopIterations   *int64   `json:"maxLoopIterations"`
		EscalationThreshold *float64 `json:"escalationThreshold"`
	} `json:"run"`
	AI *struct {
		Provider           *string           `json:"provider"`
		Model              *string           `json:"model"`
		Temperature        *float64          `json:"temperature"`
		MaxTokens          *int64            `json:"maxTokens"`
		CredentialRef      *string           `json:"credentialRef"`
		PromptOverrides    map[string]string `json:"promptOverrides"`
		MockProvider       jsontext.Value    `json:"mockProvider"`
		ReasoningVerbosity *string           `json:"reasoningVerbosity"`
		MaxRefusals        *int64            `json:"maxRefusals"`
	} `json:"ai"`
	Distillation *struct {
		TokenBudget *int64 `json:"tokenBudget"`
	} `json:"distillation"`
	Budget     jsontext.Value                       `json:"budget"`
	Extensions map[string]map[string]jsontext.Value `json:"extensions"`
}

// noNull refuses null, which the decoder would take for an absent member.
var noNull = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, v any) error {
	if _, raw := v.(*jsontext.Value); raw || dec.PeekKind() != 'n' {
		return errors.ErrUnsupported
	}
	if err := dec.SkipValue(); err != nil {
		return err
	}
	return errors.New("must not be null")
}))

const maxInt53 = 1<<53 - 1

// parseConfigurable refuses every member that is unknown, out of range, or
// would have to be ignored because this host lacks what it needs.
func parseConfigurable(v jsontext.Value) error {
	var c configurable
	if v.Kind() != '{' {
		return problem.Invalid("configurable", "must be an object")
	}
	if err := json.Unmarshal(v, &c, json.RejectUnknownMembers(true), noNull); err != nil {
		return problem.Invalid(memberOf("configurable", err), "is unknown or of the wrong type")
	}
	if c.Version == nil || *c.Version != 1 {
		return problem.Invalid("configurable.version", "must be 1")
	}
	if r := c.Run; r != nil {
		for name, n := range map[string]*int64{
			"recursionLimit": r.RecursionLimit, "runTimeoutMs": r.RunTimeoutMs, "maxLoopIterations": r.MaxLoopIterations,
		} {
			if n != nil && (*n < 1 || *n > maxInt53) {
				return problem.Invalid("configurable.run."+name, "is out of range: want at least 1")
			}
		}
		if r.EscalationThreshold != nil && *r.EscalationThreshold < 0 {
			return problem.Invalid("configurable.run.escalationThreshold", "must not be negative")
		}
	}
	if err := c.ai(); err != nil {
		return err
	}
	if d := c.Distillation; d != nil && d.TokenBudget != nil && *d.TokenBudget < 1 {
		return problem.Invalid("configurable.distillation.tokenBudget", "want at least 1")
	}
	if len(c.Budget) > 0 {
		return problem.New(problem.CapabilityNotProvided, "this host does not enforce budgets").
			With("requiredCapability", "budget").With("field", "configurable.budget")
	}
	for org := range c.Extensions {
		if !validOrg(org) {
			return problem.Invalid("configurable.extensions."+org, "is not an organisation name")
		}
	}
	return nil
}

func (c *configurable) ai() error {
	a := c.AI
	if a == nil {
		return nil
	}
	switch {
	case a.Provider != nil:
		return problem.Invalid("configurable.ai.provider", "this host offers no AI provider %q", *a.Provider)
	case a.CredentialRef != nil:
		return problem.New(problem.CredentialForbidden, "this host takes no provider credentials").With("field", "configurable.ai.credentialRef")
	case len(a.MockProvider) > 0:
		return problem.New(problem.MockProviderForbidden, "mock providers are for test credentials only").With("field", "configurable.ai.mockProvider")
	case a.Temperature != nil && (*a.Temperature < 0 || *a.Temperature > 2):
		return problem.Invalid("configurable.ai.temperature", "want 0 to 2")
	case a.MaxTokens != nil && *a.MaxTokens < 1:
		return problem.Invalid("configurable.ai.maxTokens", "want at least 1")
	case a.MaxRefusals != nil && *a.MaxRefusals < 0:
		return problem.Invalid("configurable.ai.maxRefusals", "must not be negative")
	case a.ReasoningVerbosity != nil && *a.ReasoningVerbosity != "none" && *a.ReasoningVerbosity != "summary" && *a.ReasoningVerbosity != "full":
		return problem.Invalid("configurable.ai.reasoningVerbosity", "%q is not none, summary or full", *a.ReasoningVerbosity)
	}
	return nil
}

func validOrg(s string) bool {
	for part := range strings.SplitSeq(s, "-") {
		if part == "" {
			return false
		}
		for _, r := range part {
			if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
				return false
			}
		}
	}
	return s[0] >= 'a' && s[0] <= 'z'
}

// memberOf names the member a decoding error is about, below a root.
func memberOf(root string, err error) string {
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		for tok := range sem.JSONPointer.Tokens() {
			root += "." + tok
		}
	}
	return root
}

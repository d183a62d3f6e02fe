package flow

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"

	"github.com/fermata-run/fermata/internal/expr"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/jsonschema"
	"github.com/fermata-run/fermata/node"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a definition. They keep one tenant's workflow from costing every
// other tenant.
const (
	MaxNodes    = 2000
	MaxEdges    = 10000
	MaxBindings = 5000
	MaxLoops    = 200

	MaxSchedules = 20 // that are enabled
)

var (
	workflowID = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,127}$`)
	reducer    = regexp.MustCompile(`^(replace|append|merge|counter|votes|feedback|message|vendor\.[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*)$`)
)

// gated names the capability a reserved type needs where the host has no such
// type (spec v2 runs.md §Refusals).
var gated = map[string]string{
	"core.conversationGate":        "conversationPrimitive",
	"core.orchestrator.supervisor": "multiAgent.executionModel",
	"core.dispatch":                "agents.dispatch",
	"core.ai.callPrompt":           "aiProviders",
	"core.ai.structuredOutput":     "aiProviders",
	"core.a2a.invoke":              "a2a",
	"core.conformance.a2a-invoke":  "a2a",
	"core.conformance.mcp-invoke":  "mcp",
	"core.conformance.mock-agent":  "agents",

	// Nodes of the protocol's own workflows, for models, secrets and packs.
	"local.sample.demo.mock-ai":                "aiProviders",
	"conformance.modelCapability.insufficient": "modelCapabilities",
	"conformance.cost.emit":                    "providerUsage",
	"conformance.secret.echo":                  "secrets",
	"vendor.openwop.rust-hello.greet":          "nodePackRuntimes",
	"vendor.openwop.misbehaving.memory-bomb":   "nodePackRuntimes",
}

type compiler struct {
	w      *Workflow
	cat    Catalog
	raw    jsontext.Value
	strict bool // somebody hands the definition in: nothing has been read past before
	issues Issues
}

func (c *compiler) fail(field, format string, args ...any) {
	c.issues = append(c.issues, Issue{Field: field, Message: fmt.Sprintf(format, args...)})
}

func oneOf(v string, allowed ...string) bool { return slices.Contains(allowed, v) }

func (c *compiler) definition() {
	d := c.w.Def
	if !workflowID.MatchString(d.ID) {
		c.fail("id", "%q is not a workflow id: want 1 to 128 of a-z 0-9 _ -, starting with a letter", d.ID)
	}
	if d.Name == "" || len(d.Name) > 256 {
		c.fail("name", "want 1 to 256 characters")
	}
	if d.Version == "" || len(d.Version) > 128 {
		c.fail("version", "want 1 to 128 characters")
	}
	if d.Status != "" && !oneOf(d.Status, "active", "inactive", "draft", "archived") {
		c.fail("status", "%q is not one of active, inactive, draft, archived", d.Status)
	}
	if len(d.Nodes) == 0 {
		c.fail("nodes", "a workflow needs at least one node")
	}
	c.variables()
	c.channels()
	c.triggers()
	c.settings()
	if len(d.ConfigurableSchema) > 0 {
		sch, err := jsonschema.Compile(d.ConfigurableSchema)
		if err != nil {
			c.fail("configurableSchema", "%v", err)
		}
		c.w.configurable = sch
	}
}

func (c *compiler) settings() {
	d := c.w.Def
	s := d.Settings
	if s.Timeout < 0 {
		c.fail("settings.timeout", "must not be negative")
	}
	if s.MaxRetries < 0 || s.MaxRetries > 100 {
		c.fail("settings.maxRetries", "want 0 to 100")
	}
	if s.MaxLoopbackIterations < 0 {
		c.fail("settings.maxLoopbackIterations", "must be at least 1")
	}
	if s.LogLevel != "" && !oneOf(s.LogLevel, "debug", "info", "warn", "error") {
		c.fail("settings.logLevel", "%q is not one of debug, info, warn, error", s.LogLevel)
	}
	c.policy()
	if m := d.Metadata.ComplianceConfig; m != nil && m.MaskingMode != "" &&
		!oneOf(m.MaskingMode, "mask", "omit", "hash", "passthrough") {
		c.fail("metadata.complianceConfig.maskingMode", "%q is not one of mask, omit, hash, passthrough", m.MaskingMode)
	}
}

func (c *compiler) variables() {
	for i := range c.w.Def.Variables {
		v := &c.w.Def.Variables[i]
		field := "variables[" + strconv.Itoa(i) + "]"
		if v.Name == "" {
			c.fail(field+".name", "must not be empty")
		}
		if _, dup := c.w.variables[v.Name]; dup {
			c.fail(field+".name", "variable %q is declared twice", v.Name)
		}
		if !oneOf(v.Type, "string", "number", "boolean", "object", "array") {
			c.fail(field+".type", "%q is not one of string, number, boolean, object, array", v.Type)
		} else if len(v.DefaultValue) > 0 && !v.Accepts(v.DefaultValue) {
			c.fail(field+".defaultValue", "is not of type %s", v.Type)
		}
		c.w.variables[v.Name] = v
	}
}

// Accepts reports whether a JSON value has the variable's type. Null stands
// for "no value" and is accepted.
func (v *Variable) Accepts(value jsontext.Value) bool {
	k := value.Kind()
	switch v.Type {
	case "string":
		return k == '"' || k == 'n'
	case "number":
		return k == '0' || k == 'n'
	case "boolean":
		return k == 't' || k == 'f' || k == 'n'
	case "object":
		return k == '{' || k == 'n'
	case "array":
		return k == '[' || k == 'n'
	}
	return false
}

func (c *compiler) channels() {
	names := make([]string, 0, len(c.w.Def.Channels))
	for name := range c.w.Def.Channels {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		ch := c.w.Def.Channels[name]
		field := "channels." + name
		if name == "" || len(name) > 256 {
			c.fail(field, "a channel's name has 1 to 256 characters")
		}
		if !reducer.MatchString(ch.Reducer) {
			c.fail(field+".reducer", "%q is not replace, append, merge, counter, votes, feedback, message or vendor.<org>.<name>", ch.Reducer)
		}
		if ch.MaxSize < 0 || ch.TTLMs < 0 || ch.TTLMs > 31536000000 {
			c.fail(field, "maxSize must be positive and ttlMs between 1 and one year")
		}
		if len(ch.Schema) > 0 {
			sch, err := jsonschema.Compile(ch.Schema)
			if err != nil {
				c.fail(field+".schema", "%v", err)
			}
			if c.w.channels == nil {
				c.w.channels = map[string]*jsonschema.Schema{}
			}
			c.w.channels[name] = sch
		}
		if _, clash := c.w.variables[name]; clash {
			c.fail(field, "a variable has the same name")
		}
		if _, err := ParseAccess(ch.Access); err != nil {
			c.fail(field+".access", "%v", err)
		}
	}
}

func (c *compiler) triggers() {
	seen := map[string]bool{}
	for i := range c.w.Def.Triggers {
		t := &c.w.Def.Triggers[i]
		field := "triggers[" + strconv.Itoa(i) + "]"
		if t.ID == "" || seen[t.ID] {
			c.fail(field+".id", "must be present and unique")
		}
		seen[t.ID] = true
		if !oneOf(t.Type, "manual", "schedule", "webhook", "event", "artifact", "canvas", "envelope", "command", "chat-message", "channel-write") {
			c.fail(field+".type", "unknown trigger type %q", t.Type)
		}
		if t.Type == "schedule" && c.strict {
			c.schedule(field, t)
		}
	}
}

func (c *compiler) steps() {
	w := c.w
	w.Steps = make([]Step, len(w.Def.Nodes))
	for i := range w.Def.Nodes {
		n := &w.Def.Nodes[i]
		field := "nodes[" + strconv.Itoa(i) + "]"
		if !ids.ValidAuthored(n.ID) {
			c.fail(field+".id", "%q is not a node id: want 1 to 128 of A-Z a-z 0-9 . _ ~ : -", n.ID)
		}
		if _, dup := w.byID[n.ID]; dup {
			c.fail(field+".id", "node %q is defined twice", n.ID)
		}
		w.byID[n.ID] = i
		w.Steps[i] = Step{Index: i, Node: n, Rule: AllSuccess}
		c.nodeSettings(field, &w.Steps[i])
		c.nodeType(field, &w.Steps[i])
		if n.OutputRole != "" && !oneOf(n.OutputRole, "primary", "secondary") {
			c.fail(field+".outputRole", "%q is not primary or secondary", n.OutputRole)
		}
	}
	for i := range w.Steps { // a mapping may name any node
		c.inverse("nodes["+strconv.Itoa(i)+"]", &w.Steps[i])
	}
}

func (c *compiler) nodeSettings(field string, s *Step) {
	if len(s.Node.Settings) == 0 {
		return
	}
	if err := json.Unmarshal(s.Node.Settings, &s.Settings); err != nil {
		c.fail(field+".settings", "%v", decodeIssue(s.Node.Settings, err))
		return
	}
	x := s.Settings
	if x.MaxRetries != nil && (*x.MaxRetries < 0 || *x.MaxRetries > 100) {
		c.fail(field+".settings.maxRetries", "want 0 to 100")
	}
	if x.RetryDelayMs < 0 || x.RetryMaxDelayMs < 0 || x.TimeoutMs < 0 || x.RetryBackoff < 0 || x.RetryBackoff > 100 {
		c.fail(field+".settings", "retryDelayMs, retryMaxDelayMs, timeoutMs and retryBackoff must not be negative (retryBackoff at most 100)")
	}
}

func (c *compiler) nodeType(field string, s *Step) {
	id := s.Node.TypeID
	if !ids.ValidTypeID(id) {
		c.fail(field+".typeId", "%q is not a type id: want dotted segments such as core.noop", id)
		return
	}
	t, ok := c.cat.Type(id)
	if !ok {
		issue := Issue{Field: field + ".typeId", Message: fmt.Sprintf("unknown node type %q", id)}
		if cap, reserved := gated[id]; reserved {
			issue.Capability, issue.TypeID, issue.NodeID = cap, id, s.Node.ID
			issue.Message = fmt.Sprintf("node type %q needs the capability %s, which this host does not provide", id, cap)
		}
		c.issues = append(c.issues, issue)
		return
	}
	s.Type = t
	c.sensitivity(s)
	if k := s.Node.Config.Kind(); k != '{' {
		c.fail(field+".config", "must be an object")
		return
	}
	if len(t.ConfigSchema) > 0 {
		sch, err := jsonschema.Compile(t.ConfigSchema)
		if err != nil {
			c.fail(field+".config", "the node type's own schema is invalid: %v", err)
		} else if v := sch.Validate(s.Node.Config); v != nil {
			c.fail(join(field+".config", v.Path), "%s", v.Message)
			return
		}
	}
	if t.Check != nil {
		err := t.Check(node.CheckContext{Config: []byte(s.Node.Config), Expression: checkExpression})
		if err != nil {
			c.fail(field+".config", "%s", configMessage(err))
			return
		}
	}
	if t.Expect != nil {
		if ask, ok := t.Expect([]byte(s.Node.Config)); ok {
			if member, err := AnswerSchemas(ask.Kind, jsontext.Value(ask.ResumeSchema), jsontext.Value(ask.Data)); err != nil {
				c.fail(field+".config", "%s %v", member, err)
			}
		}
	}
}

func (c *compiler) sensitivity(s *Step) {
	s.sensitive = map[string]bool{}
	for _, port := range s.Type.Sensitive {
		s.sensitive[port] = true
	}
	for port, on := range s.Node.OutputSensitivity {
		if on {
			s.sensitive[port] = true
		} else {
			delete(s.sensitive, port)
		}
	}
}

func configMessage(err error) string {
	if e, ok := err.(*node.Error); ok {
		return e.Message
	}
	return err.Error()
}

func checkExpression(source string, extra ...string) error {
	_, err := expr.Compile(source, extra...)
	return err
}

func join(field, path string) string {
	if field == "" || path == "" {
		return field + path
	}
	if path[0] == '[' {
		return field + path
	}
	return field + "." + path
}

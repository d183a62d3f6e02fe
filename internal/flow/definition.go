package flow

import "github.com/go-json-experiment/json/jsontext"

// Definition is a workflow definition as its author wrote it. The object is
// closed: a member that is not listed here is refused.
type Definition struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description,omitzero"`
	Version     string     `json:"version"`
	Type        string     `json:"type,omitzero"`
	IsActive    *bool      `json:"isActive,omitzero"`
	Status      string     `json:"status,omitzero"`
	TenantID    string     `json:"tenantId,omitzero"`
	ScopeID     string     `json:"scopeId,omitzero"`
	Slug        string     `json:"slug,omitzero"`
	Nodes       []Node     `json:"nodes"`
	Edges       []Edge     `json:"edges"`
	Triggers    []Trigger  `json:"triggers"`
	Variables   []Variable `json:"variables"`
	Groups      []Group    `json:"groups,omitzero"`

	Channels                  map[string]Channel `json:"channels,omitzero"`
	ConfigurableSchema        jsontext.Value     `json:"configurableSchema,omitzero"`
	Defaults                  jsontext.Value     `json:"defaults,omitzero"`
	Metadata                  Metadata           `json:"metadata"`
	Settings                  Settings           `json:"settings"`
	AcceptsInheritedArtifacts []jsontext.Value   `json:"acceptsInheritedArtifacts,omitzero"`
	CreatedAt                 string             `json:"createdAt,omitzero"`
	UpdatedAt                 string             `json:"updatedAt,omitzero"`
}

// Node is one step of a workflow.
type Node struct {
	ID       string               `json:"id"`
	TypeID   string               `json:"typeId"`
	Name     string               `json:"name"`
	Position Position             `json:"position"`
	Config   jsontext.Value       `json:"config"`
	Inputs   map[string]PortValue `json:"inputs"`

	CredentialsRef     string          `json:"credentialsRef,omitzero"`
	Settings           jsontext.Value  `json:"settings,omitzero"`
	OutputRole         string          `json:"outputRole,omitzero"`
	Disabled           bool            `json:"disabled,omitzero"`
	Notes              string          `json:"notes,omitzero"`
	GroupID            string          `json:"groupId,omitzero"`
	Agent              jsontext.Value  `json:"agent,omitzero"`
	EnvelopeContract   jsontext.Value  `json:"envelopeContract,omitzero"`
	ArtifactType       string          `json:"artifactType,omitzero"`
	CardType           string          `json:"cardType,omitzero"`
	OutputSensitivity  map[string]bool `json:"outputSensitivity,omitzero"`
	Compensation       jsontext.Value  `json:"compensation,omitzero"`
	IrreversibleEffect bool            `json:"irreversibleEffect,omitzero"`
}

// Position places a node on an editor's canvas.
type Position struct {
	X jsontext.Value `json:"x"`
	Y jsontext.Value `json:"y"`
}

// PortValue says where an input port's value comes from: a constant, an
// expression, another node's output, or a variable.
type PortValue struct {
	Type         string         `json:"type"`
	Value        jsontext.Value `json:"value,omitzero"`
	Expression   string         `json:"expression,omitzero"`
	NodeID       string         `json:"nodeId,omitzero"`
	OutputKey    string         `json:"outputKey,omitzero"`
	VariableName string         `json:"variableName,omitzero"`
	Optional     bool           `json:"optional,omitzero"`
}

// Edge leads from one node to another.
type Edge struct {
	ID           string     `json:"id"`
	SourceNodeID string     `json:"sourceNodeId"`
	SourceOutput string     `json:"sourceOutput,omitzero"`
	TargetNodeID string     `json:"targetNodeId"`
	TargetInput  string     `json:"targetInput,omitzero"`
	Condition    *Condition `json:"condition,omitzero"`
	Label        string     `json:"label,omitzero"`
	TriggerRule  string     `json:"triggerRule,omitzero"`
}

// Condition decides whether an edge contributes.
type Condition struct {
	Type       string         `json:"type,omitzero"`
	Left       string         `json:"left,omitzero"`
	Right      jsontext.Value `json:"right,omitzero"`
	Expression string         `json:"expression,omitzero"`
}

// Trigger says what may start the workflow.
type Trigger struct {
	ID          string         `json:"id"`
	Type        string         `json:"type"`
	Name        string         `json:"name,omitzero"`
	Description string         `json:"description,omitzero"`
	Config      jsontext.Value `json:"config,omitzero"`
	Enabled     *bool          `json:"enabled,omitzero"`
	NodeID      string         `json:"nodeId,omitzero"`
	EventType   string         `json:"eventType,omitzero"`
}

// Variable is one of the run's variables; run inputs overlay the defaults.
type Variable struct {
	Name         string         `json:"name"`
	Type         string         `json:"type"`
	Description  string         `json:"description,omitzero"`
	Required     bool           `json:"required,omitzero"`
	DefaultValue jsontext.Value `json:"defaultValue,omitzero"`
	Sensitive    bool           `json:"sensitive,omitzero"`
	Format       string         `json:"format,omitzero"`
}

// Group collects nodes on an editor's canvas and has no effect on execution.
type Group struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Color     string   `json:"color,omitzero"`
	Collapsed bool     `json:"collapsed,omitzero"`
	NodeIDs   []string `json:"nodeIds"`
	Position  Position `json:"position"`
	Size      Size     `json:"size"`
}

// Size is a group's extent on the canvas.
type Size struct {
	Width  jsontext.Value `json:"width"`
	Height jsontext.Value `json:"height"`
}

// Channel declares a typed state channel.
type Channel struct {
	Reducer        string         `json:"reducer"`
	Schema         jsontext.Value `json:"schema,omitzero"`
	Default        jsontext.Value `json:"default,omitzero"`
	MaxSize        int            `json:"maxSize,omitzero"`
	TTLMs          int64          `json:"ttlMs,omitzero"`
	Options        jsontext.Value `json:"options,omitzero"`
	Access         jsontext.Value `json:"access,omitzero"`
	SchemaVersion  int            `json:"schemaVersion,omitzero"`
	CompatibleWith []int          `json:"compatibleWith,omitzero"`
	Sensitive      bool           `json:"sensitive,omitzero"`
}

// Metadata is the authoring record of a workflow.
type Metadata struct {
	CreatedBy        string         `json:"createdBy,omitzero"`
	CreatedAt        string         `json:"createdAt,omitzero"`
	UpdatedBy        string         `json:"updatedBy,omitzero"`
	UpdatedAt        string         `json:"updatedAt,omitzero"`
	Tags             []string       `json:"tags,omitzero"`
	Category         string         `json:"category,omitzero"`
	Author           string         `json:"author,omitzero"`
	CodeVersion      string         `json:"codeVersion,omitzero"`
	CustomizedAt     string         `json:"customizedAt,omitzero"`
	CustomizedBy     string         `json:"customizedBy,omitzero"`
	ForkedFrom       string         `json:"forkedFrom,omitzero"`
	ClonedFrom       string         `json:"clonedFrom,omitzero"`
	ClonedAt         string         `json:"clonedAt,omitzero"`
	CustomProperties jsontext.Value `json:"customProperties,omitzero"`
	ComplianceClass  string         `json:"complianceClass,omitzero"`
	ComplianceConfig *Compliance    `json:"complianceConfig,omitzero"`

	// other collects members this schema does not know. Version 1 of the
	// protocol left the object open; see UnmarshalJSONFrom.
	other jsontext.Value
}

// Compliance overrides how sensitive values are masked.
type Compliance struct {
	MaskingMode string `json:"maskingMode,omitzero"`
}

// Settings are the workflow's own bounds.
type Settings struct {
	Timeout               int64          `json:"timeout,omitzero"` // milliseconds; 0 for none
	MaxRetries            int            `json:"maxRetries,omitzero"`
	LogLevel              string         `json:"logLevel,omitzero"`
	MaxLoopbackIterations int            `json:"maxLoopbackIterations,omitzero"`
	Compensation          jsontext.Value `json:"compensation,omitzero"`
}

// NodeSettings are the members of a node's open settings object that fermata
// understands; others are carried unread.
type NodeSettings struct {
	MaxRetries      *int    `json:"maxRetries,omitzero"`
	RetryDelayMs    int64   `json:"retryDelayMs,omitzero"`    // wait before the first repeat, default 1000
	RetryBackoff    float64 `json:"retryBackoff,omitzero"`    // factor from one wait to the next, default 2
	RetryMaxDelayMs int64   `json:"retryMaxDelayMs,omitzero"` // longest wait, default 300000
	TimeoutMs       int64   `json:"timeoutMs,omitzero"`       // bound of one attempt; 0 for none
}

package v1

import (
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// facts are what this major's discovery document says and v1 has a word for. It is
// the one source of both documents: what is wired is said once. A family that the
// host does not have is nil.
type facts struct {
	Implementation jsontext.Value `json:"implementation"`
	EngineVersion  int            `json:"engineVersion"`
	Versions       []string       `json:"protocolVersions"`
	Preferred      string         `json:"preferredVersion"`
	Extensions     jsontext.Value `json:"extensions"`

	Limits struct {
		MaxNodeExecutions   int64 `json:"maxNodeExecutions"`
		MaxRunDurationMs    int64 `json:"maxRunDurationMs"`
		MaxLoopIterations   int64 `json:"maxLoopIterations"`
		MaxRequestBodyBytes int64 `json:"maxRequestBodyBytes"`
	} `json:"limits"`

	Interrupt struct {
		RefKinds []string `json:"refKinds"`
	} `json:"interrupt"`

	Authorization *struct {
		Roles []identity.Role `json:"roles"`
	} `json:"authorization"`

	Replay *struct {
		Modes []string `json:"modes"`
	} `json:"replay"`

	Idempotency *struct {
		CrossRegion string `json:"crossRegion"`
	} `json:"idempotency"`

	Webhooks *struct{} `json:"webhooks"`

	Audit *struct {
		Algorithm string `json:"checkpointSignatureAlgorithm"`
		Key       string `json:"checkpointPublicKey"`
		Entries   int    `json:"checkpointIntervalEntries"`
		Seconds   int    `json:"checkpointIntervalSeconds"`
	} `json:"auditLogIntegrity"`

	Credentials *struct {
		Scopes   []string `json:"scopes"`
		AtRest   bool     `json:"encryptionAtRest"`
		Rotation string   `json:"rotation"`
		Sharing  bool     `json:"sharing"`
	} `json:"credentials"`

	Auth *struct {
		Lanes []identity.Facet `json:"lanes"`
	} `json:"auth"`

	MultiAgent *struct {
		ExecutionModel struct {
			Causation *struct {
				HostID   string `json:"hostId"`
				Ancestry bool   `json:"ancestryEndpointSupported"`
			} `json:"crossHostCausation"`
		} `json:"executionModel"`
	} `json:"multiAgent"`

	SubWorkflow *struct {
		InputMapping bool `json:"inputMapping"`
	} `json:"subWorkflow"`
}

func (a *API) facts() (facts, error) {
	doc, _ := a.host.Capabilities()
	var f facts
	err := json.Unmarshal(doc, &f)
	return f, err
}

// serves reports whether this wire has an operation.
func (a *API) serves(id string) bool {
	for i := range a.server.Table().Routes {
		if a.server.Table().Routes[i].ID == id {
			return true
		}
	}
	return false
}

package v1

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// facts are the members of this major's discovery document that v1 has a word for.
// They are the one source of both documents: what is wired is said once.
type facts struct {
	Implementation jsontext.Value `json:"implementation"`
	EngineVersion  int            `json:"engineVersion"`
	Versions       []string       `json:"protocolVersions"`
	Preferred      string         `json:"preferredVersion"`

	Limits struct {
		MaxNodeExecutions   int64 `json:"maxNodeExecutions"`
		MaxRunDurationMs    int64 `json:"maxRunDurationMs"`
		MaxLoopIterations   int64 `json:"maxLoopIterations"`
		MaxRequestBodyBytes int64 `json:"maxRequestBodyBytes"`
	} `json:"limits"`
}

func (a *API) facts() (facts, error) {
	doc, _ := a.host.Capabilities()
	var f facts
	err := json.Unmarshal(doc, &f)
	return f, err
}

// logEra is the eventLogSchemaVersion that v1 clients know.
const logEra = 2

// capabilities is the discovery document of v1 with its validator (v1
// capabilities.md), assembled from what the host says of itself.
func (a *API) capabilities() (doc []byte, etag string, err error) {
	f, err := a.facts()
	if err != nil {
		return nil, "", err
	}
	root := map[string]any{
		"protocolVersion": Version, "protocolVersions": f.Versions, "preferredVersion": f.Preferred,
		"implementation": f.Implementation, "engineVersion": f.EngineVersion, "eventLogSchemaVersion": logEra,
		"supportedEnvelopes": []string{}, "schemaVersions": map[string]int{}, "supportedTransports": []string{"rest"},
		"limits": map[string]any{
			"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0,
			"maxNodeExecutions": f.Limits.MaxNodeExecutions, "maxRunDurationMs": f.Limits.MaxRunDurationMs,
			"maxLoopIterations": f.Limits.MaxLoopIterations, "maxRequestBodyBytes": f.Limits.MaxRequestBodyBytes,
		},
	}
	if doc, err = json.Marshal(root, json.Deterministic(true)); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(doc)
	return doc, `"` + hex.EncodeToString(sum[:16]) + `"`, nil
}

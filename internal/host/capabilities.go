package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/token"
	"github.com/go-json-experiment/json"
)

// SeamsPath is where the effect-seam manifest is served.
const SeamsPath = "/host/effect-seams"

// ProtocolVersion is the version of the protocol this host serves.
const ProtocolVersion = "2.0"

// Capabilities is the discovery document with its validator (spec v2
// capabilities.md). It is assembled from what is wired: a family is present
// exactly when this host serves it.
func (h *Host) Capabilities() (doc []byte, etag string) {
	lim := h.engine.Limits()
	record := func(witness string, facets map[string]any) map[string]any {
		m := map[string]any{"status": "stable", "since": ProtocolVersion, "witness": witness}
		for k, v := range facets {
			m[k] = v
		}
		return m
	}
	root := map[string]any{
		"protocolVersion":       ProtocolVersion,
		"protocolVersions":      []string{ProtocolVersion},
		"preferredVersion":      ProtocolVersion,
		"implementation":        map[string]any{"name": "fermata", "version": h.cfg.Version, "vendor": "fermata"},
		"engineVersion":         event.EngineVersion,
		"eventLogSchemaVersion": event.LogEra,
		"limits": record("witnessable-gated", map[string]any{
			// No envelope-producing node is wired yet, so none may be emitted.
			"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0,
			"maxNodeExecutions":   lim.MaxNodeExecutions,
			"maxRunDurationMs":    lim.MaxRunDurationMs,
			"maxLoopIterations":   lim.MaxLoopIterations,
			"maxRequestBodyBytes": h.cfg.Limits.MaxBodyBytes,
		}),
		"eventLog": record("claims-check", nil),
		// Groups and roles are not resolved here, so neither kind is claimed; nor
		// is anything delivered to a callback.
		"interrupt": record("witnessable-gated", map[string]any{
			"tokenAlgs": []string{token.HS256}, "refKinds": []string{"principal"},
		}),
		"runList": record("witnessable-gated", map[string]any{
			"maxPageSize": h.cfg.Limits.MaxPageSize, "filters": []string{"workflowId", "status"},
		}),
		"extensions": map[string]any{
			"fermata.host": map[string]any{"path": "/host/fermata/"},
		},
	}
	// The family idempotency is absent although every mutating operation honours a
	// key: advertising it binds effect identity and its ledger, which are not wired
	// (spec v2 idempotency.md §Layer 2; ADR 10).
	if len(h.cfg.Seams.All()) > 0 {
		// A runtime without a way out has nothing to suppress, and no manifest.
		root["replay"] = record("witnessable-gated", map[string]any{
			"modes": []string{run.ModeReplay, run.ModeBranch}, "effectSeamsManifest": SeamsPath,
		})
	}
	if id, err := h.HostID(context.Background()); err == nil {
		// Of the execution model nothing is claimed but who dispatched a run.
		root["multiAgent"] = record("claims-check", map[string]any{"executionModel": map[string]any{
			"crossHostCausation": map[string]any{"hostId": id, "ancestryEndpointSupported": true},
		}})
	}
	if _, ok := h.cfg.Catalog.Type("core.subWorkflow"); ok {
		root["subWorkflow"] = record("claims-check", map[string]any{"inputMapping": true})
	}
	doc, err := json.Marshal(root, json.Deterministic(true))
	if err != nil {
		panic("host: the discovery document does not encode: " + err.Error())
	}
	sum := sha256.Sum256(doc)
	return doc, `"` + hex.EncodeToString(sum[:16]) + `"`
}

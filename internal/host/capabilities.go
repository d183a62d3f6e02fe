package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/token"
	"github.com/go-json-experiment/json"
)

// SeamsPath is where the effect-seam manifest is served.
const SeamsPath = "/host/effect-seams"

// ProtocolVersion is the version of the protocol this host serves.
const ProtocolVersion = "2.0"

// ProtocolVersions are the versions of the protocol this host serves, the oldest
// first (spec v2 versioning.md §1.1).
func (h *Host) ProtocolVersions() []string {
	if h.cfg.Older == "" {
		return []string{ProtocolVersion}
	}
	return []string{h.cfg.Older, ProtocolVersion}
}

// implementation is this host's name.
const implementation = "fermata"

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
		"protocolVersions":      h.ProtocolVersions(),
		"preferredVersion":      h.ProtocolVersions()[0], // through an overlap the older (versioning.md §1.1)
		"implementation":        map[string]any{"name": implementation, "version": h.cfg.Version, "vendor": implementation},
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
		"interrupt": record("witnessable-gated", map[string]any{
			"tokenAlgs": []string{token.HS256}, "refKinds": h.refKinds(),
		}),
		"runList": record("witnessable-gated", map[string]any{
			"maxPageSize": h.cfg.Limits.MaxPageSize, "filters": []string{"workflowId", "status"},
		}),
		"compensation": record("witnessable-gated", map[string]any{
			"profileVersion": flow.CompensationProfile, "orderingModels": []string{flow.ReverseCompletion}, "manualIntervention": true,
		}),
		"extensions": map[string]any{
			"fermata.host":   map[string]any{"path": "/host/fermata/"},
			"fermata.limits": h.limitFacets(),
		},
	}
	root["authorization"] = record("witnessable-gated", map[string]any{"failClosed": true, "roles": identity.Catalogue()})
	if h.cfg.ConformanceSeams {
		root["conformance"] = map[string]any{"seamsProfile": SeamsProfile}
	}
	if len(h.cfg.SigningKeys) > 0 {
		root["signingKeys"] = h.cfg.SigningKeys
	}
	// The family idempotency binds effect identity and its ledger beside the keys of
	// requests (spec v2 idempotency.md §Layer 2): nodes have effects if there are ways
	// out. A runtime without one has nothing to suppress in a replay, and no manifest.
	if len(h.cfg.Seams.All()) > 0 {
		root["idempotency"] = record("witnessable-gated", map[string]any{"crossRegion": "single-region"})
		facets := map[string]any{"modes": []string{run.ModeReplay, run.ModeBranch}, "effectSeamsManifest": SeamsPath}
		if days, known := h.RetentionDays(); known {
			facets["retention"] = map[string]any{"days": days}
		}
		root["replay"] = record("witnessable-gated", facets)
	}
	if h.ServesCredentials() {
		root["credentials"] = record("witnessable-gated", map[string]any{
			"scopes": h.credentialScopes(), "encryptionAtRest": true, "rotation": credentialRotation, "sharing": true,
		})
	}
	if s, ok := h.auditKeys.signer(); ok {
		root["auditLogIntegrity"] = record("witnessable-gated", map[string]any{
			"checkpointSignatureAlgorithm": audit.Algorithm, "checkpointPublicKey": s.Public(),
			"checkpointIntervalEntries": h.cfg.Audit.Entries, "checkpointIntervalSeconds": int((h.cfg.Audit.Interval + time.Second - 1) / time.Second),
		})
	}
	// The family binds on being advertised (spec v2 security-defaults.md §Auth
	// lanes): what is not wired has no lane here.
	if len(h.cfg.Lanes) > 0 {
		root["auth"] = record("witnessable-gated", map[string]any{"lanes": h.cfg.Lanes})
	}
	if h.cfg.Webhooks.Worker != nil {
		root["webhooks"] = record("witnessable-gated", h.webhookFacets())
		root["interrupt"].(map[string]any)["callbackDelivery"] = true
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

// refKinds are the kinds of references this host can resolve. Without a source of
// memberships it cannot say who is in a group, and claims neither kind; its gates
// that name one open to nobody for it all the same (interrupt.md §Approver
// enforcement).
func (h *Host) refKinds() []string {
	if h.cfg.Keys == nil && h.cfg.Directory == nil {
		return []string{"principal"}
	}
	return []string{"principal", "group", "role"}
}

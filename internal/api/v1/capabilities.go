package v1

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/identity"
	"github.com/go-json-experiment/json"
)

// logEra is the eventLogSchemaVersion that v1 clients know.
const logEra = 2

type block = map[string]any

// capabilities is the discovery document of v1 with its validator (v1
// capabilities.md). Every family stands at the root.
func (a *API) capabilities(ctx context.Context) (doc []byte, etag string, err error) {
	f, err := a.facts()
	if err != nil {
		return nil, "", err
	}
	root := block{
		"protocolVersion": Version, "protocolVersions": f.Versions, "preferredVersion": f.Preferred,
		"implementation": f.Implementation, "engineVersion": f.EngineVersion, "eventLogSchemaVersion": logEra,
		"supportedTransports": []string{"rest"}, "extensions": f.Extensions,
		"debugBundle": block{"supported": a.serves("getDebugBundle")}, "feedback": block{"supported": false},
		"runs": block{"pauseResume": block{"supported": true, "drainPolicies": []string{"drain-current-node", "immediate"}}},
		// What is gated, and not here: both spellings that clients read.
		"agents":                block{"supported": false, "orchestrator": false, "dispatch": false},
		"orchestrator":          block{"supported": false},
		"dispatch":              block{"supported": false},
		"conversationPrimitive": false,
	}
	a.envelopes(root, &f)
	if err := a.interrupts(root, &f); err != nil {
		return nil, "", err
	}
	a.families(root, &f)
	root["auth"] = a.auth(&f)
	if list, err := a.host.Fixtures(ctx); err != nil {
		return nil, "", err
	} else if list != nil {
		root["fixtures"] = list
	}
	if doc, err = json.Marshal(root, json.Deterministic(true)); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(doc)
	return doc, `"` + hex.EncodeToString(sum[:16]) + `"`, nil
}

// envelopes are what a run may ask of people and models. A clarification is a node's
// question; it is asked once a visit.
func (a *API) envelopes(root block, f *facts) {
	limits := block{
		"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0,
		"maxNodeExecutions": f.Limits.MaxNodeExecutions, "maxRunDurationMs": f.Limits.MaxRunDurationMs,
		"maxLoopIterations": f.Limits.MaxLoopIterations, "maxRequestBodyBytes": f.Limits.MaxRequestBodyBytes,
	}
	kinds, versions := []string{}, map[string]int{}
	if a.serves("resolveInterruptByRun") {
		const asks = "clarification.request"
		kinds, versions[asks], limits["clarificationRounds"] = append(kinds, asks), 1, 1
		refs := slices.DeleteFunc(slices.Clone(f.Interrupt.RefKinds), func(k string) bool { return k != "group" && k != "role" })
		if len(refs) > 0 {
			root["interrupt"] = block{"approverRouting": block{"supported": true, "refKinds": refs, "audience": true}}
		}
	}
	root["supportedEnvelopes"], root["schemaVersions"], root["limits"] = kinds, versions, limits
}

func (a *API) families(root block, f *facts) {
	root["replay"] = block{"supported": f.Replay != nil}
	if f.Replay != nil {
		// What a source has done outside is taken from its record, never done again.
		root["replay"] = block{"supported": true, "modes": f.Replay.Modes, "sideEffectSuppression": "recorded-outcome"}
	}
	region := "single-region"
	if f.Idempotency != nil {
		region = f.Idempotency.CrossRegion
	}
	root["idempotency"] = block{
		"supported": true, "crossRegion": region, "layer1RetentionSeconds": int64(a.host.Limits().KeyRetention / time.Second),
	}
	if f.Authorization != nil {
		root["authorization"] = block{"supported": true, "failClosed": true, "roles": f.Authorization.Roles}
	}
	if f.Webhooks != nil && a.serves("registerWebhook") {
		// Deliveries are kept and tried again, but durable says more in v1: that they are
		// those of its bridge of triggers (trigger-bridge.md).
		root["webhooks"] = block{"supported": true, "signatureAlgorithms": []string{"v1"}, "durable": false}
	}
	if c := f.Credentials; c != nil {
		scopes := slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return s != "user" && s != "workspace" && s != "tenant" })
		root["credentials"] = block{
			"supported": true, "scopes": scopes, "encryptionAtRest": c.AtRest, "rotation": c.Rotation, "sharing": c.Sharing,
		}
	}
	if m := f.MultiAgent; m != nil && m.ExecutionModel.Causation != nil {
		// Of the execution model nothing is claimed but who dispatched a run.
		root["multiAgent"] = block{"executionModel": block{"supported": false, "version": 1, "crossHostCausation": block{
			"supported": true, "hostId": m.ExecutionModel.Causation.HostID, "ancestryEndpointSupported": m.ExecutionModel.Causation.Ancestry,
		}}}
	}
	if f.SubWorkflow != nil {
		root["subWorkflow"] = block{"inputMapping": f.SubWorkflow.InputMapping}
	}
}

// auth names the ways in by v1's profiles.
func (a *API) auth(f *facts) block {
	out, profiles := block{}, []string{}
	if f.Auth != nil {
		for _, l := range f.Auth.Lanes {
			switch l.Lane {
			case identity.LaneAPIKey:
				profiles = append(profiles, "openwop-auth-api-key-rotation")
				out["rotation"] = block{"supported": true, "minGraceSeconds": 0}
			case identity.LaneOAuth2:
				profiles = append(profiles, "openwop-auth-oauth2-client-credentials")
				out["oauth2"] = block{"supported": true}
			case identity.LaneOIDC:
				profiles = append(profiles, "openwop-auth-oidc-user-bearer")
				oidc := block{"supported": true}
				if len(l.Issuers) > 0 {
					oidc["issuers"] = l.Issuers
				}
				out["oidc"] = oidc
			case identity.LaneMTLS:
				profiles = append(profiles, "openwop-auth-mtls")
				out["mtls"] = block{"supported": true}
			}
		}
	}
	if f.Audit != nil {
		profiles = append(profiles, "openwop-audit-log-integrity")
		out["auditLogIntegrity"] = block{
			"supported": true, "checkpointSignatureAlgorithm": f.Audit.Algorithm, "checkpointPublicKey": f.Audit.Key,
			"checkpointIntervalEntries": f.Audit.Entries, "checkpointIntervalSeconds": f.Audit.Seconds,
		}
	}
	out["profiles"] = profiles
	return out
}

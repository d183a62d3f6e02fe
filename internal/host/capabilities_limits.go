package host

import (
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/limit"
)

// limitFacets are the bounds for which the protocol's own family has no member. A
// bound that is not set is not there. Names and units: docs/limits.md.
func (h *Host) limitFacets() map[string]any {
	lim, edge := h.cfg.Limits, h.cfg.Limits.Edge
	m := map[string]any{
		"maxBodyDepth": event.MaxDepth, "maxPageSize": lim.MaxPageSize, "maxBulkRuns": lim.MaxBulk,
		"maxTags": maxTags, "maxMetadataBytes": maxMetadataBytes,
	}
	for name, n := range map[string]int{
		"maxCalls": edge.MaxCalls, "maxStreams": edge.MaxStreams, "tenantMaxCalls": edge.TenantMaxCalls,
		"tenantMaxStreams": edge.TenantMaxStreams, "runMaxStreams": edge.RunMaxStreams,
		"tenantMaxActiveRuns": lim.TenantActiveRuns, "requestTimeoutMs": int(edge.RequestTimeout / time.Millisecond),
	} {
		if n > 0 {
			m[name] = n
		}
	}
	for name, r := range map[string]limit.Rate{
		"tenantRate": edge.TenantRate, "keyRate": edge.KeyRate, "authFailures": edge.AuthFailures,
	} {
		if !r.None() {
			m[name] = map[string]any{"requests": r.Count, "perSeconds": int(r.Per / time.Second), "burst": r.Burst}
		}
	}
	return m
}

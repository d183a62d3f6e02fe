package v1

import (
	"maps"
	"net/http"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/problem"
)

// word is a code as v1 writes it.
type word struct {
	code   problem.Code
	status int // the code's own if 0
}

// dictionary holds the codes that v1 does not have, or has at another status. What is
// not in it is the same in both majors.
var dictionary = map[problem.Code]word{
	// 400
	problem.IdempotencyKeyInvalid:      {problem.ValidationError, http.StatusBadRequest},
	problem.UnsupportedMediaType:       {problem.ValidationError, http.StatusBadRequest},
	problem.NodeConfigInvalid:          {problem.ValidationError, http.StatusBadRequest},
	problem.ForkPointInvalid:           {problem.ValidationError, http.StatusUnprocessableEntity},
	problem.CredentialScopeUnsupported: {problem.ValidationError, http.StatusBadRequest},
	problem.WebhookEndpointUnverified:  {problem.WebhookURLRejected, http.StatusBadRequest},

	// 401: v1 knows that a key is expired or revoked, and of other lanes nothing.
	problem.CredentialRevoked:          {problem.KeyRevoked, http.StatusUnauthorized},
	problem.AudienceMismatch:           {problem.Unauthenticated, http.StatusUnauthorized},
	problem.CredentialLifetimeExceeded: {problem.Unauthenticated, http.StatusUnauthorized},
	problem.DelegationExpired:          {problem.Unauthenticated, http.StatusUnauthorized},
	problem.DelegationChainTooLong:     {problem.Unauthenticated, http.StatusUnauthorized},
	problem.DelegationChainCyclic:      {problem.Unauthenticated, http.StatusUnauthorized},
	problem.IdentityUnresolvable:       {problem.Unauthenticated, http.StatusUnauthorized},
	problem.InterruptTokenInvalid:      {problem.Unauthenticated, http.StatusUnauthorized},
	problem.IdentityUnverified:         {problem.Unauthenticated, http.StatusUnauthorized},
	problem.SenderConstraintMissing:    {problem.Unauthenticated, http.StatusUnauthorized},

	// 403
	problem.IDTenantMismatch:         {problem.RunForbidden, http.StatusForbidden},
	problem.WorkspaceMemberRequired:  {problem.Forbidden, http.StatusForbidden},
	problem.DelegationScopeAmplified: {problem.Forbidden, http.StatusForbidden},

	// 404 and 410: what retention has taken was there.
	problem.RunExpired: {problem.NotFound, http.StatusGone},

	// An interrupt that its run took along is there no more, and v1 says so at another
	// status than this major.
	problem.InterruptCancelled: {problem.InterruptCancelled, http.StatusUnprocessableEntity},

	// 422: v1 answers a missing capability at creation so (rest-endpoints.md).
	problem.CapabilityRequired: {problem.CapabilityRequired, http.StatusUnprocessableEntity},

	// 5xx: v1 has a status for what a host does not do.
	problem.CapabilityNotProvided: {problem.CapabilityNotProvided, http.StatusNotImplemented},
	problem.EventTypeUnmapped:     {problem.InternalError, http.StatusInternalServerError},
	problem.PayloadUnprojectable:  {problem.InternalError, http.StatusInternalServerError},
}

// words writes a refusal as v1 does. The envelope is the same, closed; when to come
// again is in details beside the header.
func words(e *problem.Error) api.Refusal {
	r := api.Plain(e)
	if w, ok := dictionary[e.Code]; ok {
		r.Error = string(w.code)
		if w.status != 0 {
			r.Status = w.status
		}
	}
	interruptWords(e, &r)
	r.Details = details(e)
	if e.Code == problem.Unauthenticated && r.Details["reason"] == "key-expired" {
		r.Error = "key_expired"
	}
	if e.RetryAfter <= 0 {
		return r
	}
	if r.Details == nil {
		r.Details = map[string]any{}
	}
	switch e.Code {
	case problem.RateLimited:
		r.Details["retryAfterMs"] = api.RetrySeconds(e) * 1000
		r.Details["scope"] = scopeOf(e)
	default:
		r.Details["retryAfter"] = api.RetrySeconds(e)
	}
	return r
}

// scopeOf says whose bound a request is over, in v1's four words.
func scopeOf(e *problem.Error) string {
	switch e.Details["limit"] {
	case "key-rate":
		return "key"
	case "tenant-rate", "tenant-max-calls", "tenant-max-streams", "tenant-max-active-runs":
		return "tenant"
	case "run-max-streams":
		return "route"
	}
	return "global"
}

// details are a refusal's, with ids as v1 shows them and under v1's names.
func details(e *problem.Error) map[string]any {
	d := maps.Clone(e.Details)
	for k, v := range d {
		if id, ok := v.(string); ok && (k == "runId" || strings.HasSuffix(k, "RunId")) {
			d[k] = bare(id)
		}
	}
	if scope, ok := d["requiredScope"]; ok {
		d["scopeRequired"] = scope
	}
	if id, ok := d["runId"]; ok && e.Code == problem.RunAlreadyActive {
		d["activeRunId"], d["activeHost"] = id, "cloud"
		delete(d, "runId")
	}
	return d
}

package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
)

// resourceRoutes are the host's description of itself as a protected resource, on
// hosts that take tokens.
func (a *API) resourceRoutes() []api.Route {
	if a.resource == nil {
		return nil
	}
	return []api.Route{{
		Method: "GET", Pattern: a.resource.Path(), ID: "getProtectedResourceMetadata", Spec: "identity.md §2.5",
		Summary: "Which authorization servers this host trusts (RFC 9728).",
		Returns: map[int]api.Response{200: {Description: "The metadata.", Schema: `{"type":"object"}`}},
		Handle: func(w http.ResponseWriter, _ *api.Request) error {
			w.Header().Set("Cache-Control", "public, max-age=300")
			return api.JSON(w, http.StatusOK, a.resource.Metadata)
		},
	}}
}

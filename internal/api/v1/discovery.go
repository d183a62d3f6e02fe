package v1

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

func (a *API) getCapabilities(w http.ResponseWriter, r *api.Request) error {
	doc, etag, err := a.capabilities(r.Context())
	if err != nil {
		return problem.Internal(err)
	}
	h := w.Header()
	h.Set("Capabilities-Etag", etag) // the older name of the same
	h.Set("Cache-Control", "public, max-age=300")
	api.Varies(h)
	return api.Tagged(w, r, etag, doc)
}

func (a *API) getOpenAPI(w http.ResponseWriter, _ *api.Request) error {
	doc, err := a.openapi()
	if err != nil {
		return problem.Internal(err)
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	return api.JSON(w, http.StatusOK, jsontext.Value(doc))
}

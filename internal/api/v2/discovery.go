package v2

import (
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/go-json-experiment/json/jsontext"
)

func (a *API) getCapabilities(w http.ResponseWriter, r *api.Request) error {
	doc, etag := a.host.Capabilities()
	h := w.Header()
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

func (a *API) getHost(w http.ResponseWriter, _ *api.Request, c identity.Caller) error {
	about, err := a.host.About(c)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, about)
}

func (a *API) live(w http.ResponseWriter, _ *api.Request) error {
	return api.JSON(w, http.StatusOK, map[string]bool{"live": true})
}

func (a *API) ready(w http.ResponseWriter, r *api.Request) error {
	if err := a.host.Ready(r.Context()); err != nil {
		p := problem.New(problem.ServiceUnavailable, "the host cannot take on work now")
		p.Cause, p.RetryAfter = err, time.Second
		return p
	}
	return api.JSON(w, http.StatusOK, map[string]bool{"ready": true})
}

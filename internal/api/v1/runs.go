package v1

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
)

func (a *API) runRoutes() []api.Route {
	return []api.Route{
		{
			Method: "POST", Pattern: "/v1/runs", ID: "createRun", Spec: "rest-endpoints.md", Scope: identity.RunsCreate,
			Summary: "Start a run.", Body: &api.Body{Schema: object},
			Returns: map[int]api.Response{201: {Description: "The run is durable and under way.", Schema: object}},
			Errors:  []int{409, 413, 422, 501, 503}, Handle: a.as(a.createRun),
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}", ID: "getRun", Spec: "rest-endpoints.md", Scope: identity.RunsRead,
			Summary: "A run's snapshot.", Returns: map[int]api.Response{
				200: {Description: "The run as it stands.", Schema: object}, 304: {Description: "Unchanged."},
			}, Handle: a.as(a.getRun),
		},
	}
}

func (a *API) getRun(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := a.run(r, c)
	if err != nil {
		return err
	}
	offers := a.offers(c)
	if r.Header.Get("If-None-Match") != "" {
		row, err := a.host.Head(r.Context(), c, id)
		if err != nil {
			return err
		}
		if tag := etagOf(row.ID, row.Seq, row.Status, offers); api.Matches(r.Header, tag) {
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	d, err := a.host.RunDetail(r.Context(), c, id)
	if err != nil {
		return err
	}
	s, err := a.read(r.Context(), c, &d)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etagOf(id, d.Seq, d.Status, offers))
	return api.JSON(w, http.StatusOK, s)
}

// etagOf is the validator of a snapshot. It is not that of this major's document of the
// same run: how a caller may answer is in it, too, with a token of his own that changes in
// time.
func etagOf(id ids.Run, seq int64, status, offers string) string {
	tag := "v1-" + id.Opaque + "-" + strconv.FormatInt(seq, 10)
	if strings.HasPrefix(status, "waiting-") {
		tag += "-" + offers
	}
	return `"` + tag + `"`
}

// offers names what of a caller's snapshots changes while nothing happens in the log: whom
// the token in them speaks for, how far, and until when.
func (a *API) offers(c identity.Caller) string {
	f := fnv.New64a()
	fmt.Fprintf(f, "%d %q %q %t", a.host.OfferPeriod(c.Expires), c.Subject.Issuer, c.Subject.SubjectID, c.Holds(identity.ApprovalsRespond))
	return strconv.FormatUint(f.Sum64(), 36)
}

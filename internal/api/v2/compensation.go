package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/problem"
)

// getCompensation reads a run's compensation. An id that no run can have is an
// unknown run here, which is what the protocol's own check asks for.
func (a *API) getCompensation(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return problem.New(problem.NotFound, "no such run")
	}
	p, err := a.host.Compensation(r.Context(), c, id)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, p)
}

type operateBody struct {
	Action     filled `json:"action"`
	Order      *int   `json:"order"`
	NodeTypeID filled `json:"nodeTypeId"`
	Reason     string `json:"reason"`
}

func (a *API) operateCompensation(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	var b operateBody
	if err := a.body(w, r, &b, false); err != nil {
		return err
	}
	want := host.Operate{Action: string(b.Action), NodeTypeID: string(b.NodeTypeID), Reason: b.Reason}
	if b.Order != nil {
		if want.Order = *b.Order; want.Order == 0 {
			want.Order = -1 // given, and no action's
		}
	}
	p, err := a.host.OperateCompensation(r.Context(), c, id, want)
	if err != nil {
		return err
	}
	return api.JSON(w, http.StatusOK, p)
}

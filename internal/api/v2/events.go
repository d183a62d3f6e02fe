package v2

import (
	"net/http"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/api/stream"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type pollBody struct {
	RunID        string           `json:"runId"`
	Events       []jsontext.Value `json:"events"`
	LastSequence int64            `json:"lastSequence"`
	Status       string           `json:"status"`
	IsTerminal   bool             `json:"isTerminal"`
}

func (a *API) pollEvents(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	after, err := r.QueryInt("afterSequence", 0, 1<<53-1, -1)
	if err != nil {
		return err
	}
	timeout, err := r.QueryInt("timeout", 1, 60, 30)
	if err != nil {
		return err
	}
	page, err := a.host.Poll(r.Context(), c, id, after, c.AtMost(time.Duration(timeout)*time.Second, a.host.Now()))
	if err != nil {
		return err
	}
	b := pollBody{RunID: id.String(), Events: make([]jsontext.Value, len(page.Events)), LastSequence: page.LastSequence, Status: page.Status, IsTerminal: page.IsTerminal}
	for i := range page.Events {
		b.Events[i] = page.Events[i].Doc()
	}
	return api.JSON(a.door.Shown(w, c.Tenant()), http.StatusOK, b)
}

func (a *API) streamEvents(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	ask, err := stream.Read(r)
	if err != nil {
		return err
	}
	return stream.Serve(a.host, w, r, c, id, ask, stream.Wire{
		Wire: sse.Current, Snapshot: snapshotDoc, Follows: event.Type.InUpdates,
		Clean: a.door.Clean(c.Tenant()),
	})
}

func snapshotDoc(s *run.State) ([]byte, error) {
	return json.Marshal(s.Snapshot(), jsontext.PreserveRawStrings(true))
}

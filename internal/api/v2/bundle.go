package v2

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/bundle"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json/jsontext"
)

// getDebugBundle is an operation of the host's own: v2 has the document and no
// operation that reads it.
func (a *API) getDebugBundle(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	return bundle.Serve(a.host, w, r, c, id, bundle.Wire{Version: "2", Run: bundledRun, Event: bundledEvent, Clean: a.door.Clean(c.Tenant())})
}

func bundledRun(d *host.RunDetail) (bundle.Run, error) {
	out := bundle.RunOf(d)
	out.RunID, out.NodeStates = d.RunID, d.NodeStates
	if len(d.Error) > 0 {
		e, err := event.Read[bundledError](d.Error)
		if err != nil {
			return out, err
		}
		out.Error = event.Encode(e)
	}
	return out, nil
}

// bundledError is closed to these two.
type bundledError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// entry is an event in a bundle of v2, which is closed.
type entry struct {
	Sequence  int64          `json:"sequence"`
	Type      event.Type     `json:"type"`
	Timestamp string         `json:"timestamp"`
	NodeID    string         `json:"nodeId,omitzero"`
	Data      jsontext.Value `json:"data"`
}

func bundledEvent(e *event.Event) []byte {
	return event.Encode(entry{e.Seq, e.Type, run.Stamp(e.Time), e.NodeID, e.Payload})
}

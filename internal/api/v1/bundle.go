package v1

import (
	"net/http"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/bundle"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/event/v1wire"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/go-json-experiment/json/jsontext"
)

// bundleVersion has the dot that the schema demands; the prose writes it without.
const bundleVersion = "1.0"

func (a *API) getDebugBundle(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := a.run(r, c)
	if err != nil {
		return err
	}
	return bundle.Serve(a.host, w, r, c, id, bundle.Wire{
		Version: bundleVersion, Run: bundledRun, Event: v1wire.AliasedDoc, Clean: a.door.Clean(c.Tenant()),
	})
}

// bundledRun is the snapshot in the form of a bundle, which is older than it.
func bundledRun(d *host.RunDetail) (bundle.Run, error) {
	s, err := project(d)
	if err != nil {
		return bundle.Run{}, err
	}
	out := bundle.RunOf(d)
	out.RunID, out.Variables = s.RunID, s.Variables
	if s.Error != nil {
		out.Error = event.Encode(s.Error)
	}
	if s.NodeStates != nil {
		out.NodeStates = jsontext.Value(event.Encode(s.NodeStates))
	}
	return out, nil
}

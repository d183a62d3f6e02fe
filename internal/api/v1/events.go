package v1

import (
	"net/http"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/bundle"
	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/api/stream"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/event/v1wire"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func (a *API) eventRoutes() []api.Route {
	cursor := `{"type":"integer","minimum":0}`
	return []api.Route{
		{
			Method: "GET", Pattern: "/v1/runs/{runId}/events", ID: "streamRunEvents", Spec: "stream-modes.md", Scope: identity.RunsRead, Stream: true,
			Summary: "Follow a run's events, or read what there is of them.", Query: append(slices.Clone(stream.Query), pageQuery...),
			Headers: []api.Param{stream.Resume, {Name: "Accept", Schema: text, Description: "application/json reads what there is as one document."}},
			Returns: map[int]api.Response{200: {Description: "Server-sent events until the run ends.", Schema: text, ContentType: eventStream}},
			Handle:  a.as(a.streamEvents),
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}/events/poll", ID: "pollRunEvents", Spec: "rest-endpoints.md", Scope: identity.RunsRead, Stream: true,
			Summary: "Wait for a run's next events.", Query: []api.Param{
				{Name: "lastSequence", Description: "Only events behind this sequence; 0 leaves the first event out.", Schema: cursor},
				{Name: "since", Description: "Another name of lastSequence.", Schema: cursor},
				{Name: "timeout", Description: "Seconds to wait.", Schema: `{"type":"integer","minimum":1,"maximum":60,"default":30}`},
			},
			Returns: ok(object, "What there is behind the cursor."), Handle: a.as(a.pollEvents),
		},
		{
			Method: "GET", Pattern: "/v1/runs/{runId}/debug-bundle", ID: "getDebugBundle", Spec: "debug-bundle.md", Scope: identity.RunsRead,
			Summary: "What there is to know of a run, in one document that can be handed on.", Query: []api.Param{bundle.MaxEvents},
			Returns: ok(object, "The bundle."), Handle: a.as(a.getDebugBundle),
		},
	}
}

const eventStream = "text/event-stream"

// frames are named by the event's type, in combined modes as well: that is what
// clients of v1 listen for (stream-modes.md §Mixed mode).
var frames = &sse.Wire{
	Name: v1wire.Name, Doc: v1wire.Doc, InUpdates: v1wire.InUpdates,
	Payload: func(e *event.Event) []byte { return v1wire.Payload(e) },
}

func (a *API) streamEvents(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	// What is asked for is looked at before what the answer shall look like
	// (stream-modes.md §Content negotiation).
	ask, err := stream.Read(r)
	if err != nil {
		return err
	}
	id, err := a.run(r, c)
	if err != nil {
		return err
	}
	cut, paged, err := readCut(r)
	if err != nil {
		return err
	}
	if paged || wantsJSON(r.Header) {
		return a.readEvents(w, r, c, id, ask, cut)
	}
	return stream.Serve(a.host, w, r, c, id, ask, stream.Wire{
		Wire: frames, Snapshot: valuesDoc, Follows: v1wire.InValues, Clean: a.door.Clean(c.Tenant()),
	})
}

// valuesDoc is a state as the values mode shows it: the snapshot, without the means to
// answer an interrupt, which are for the caller of getRun alone.
func valuesDoc(s *run.State) ([]byte, error) {
	d, err := host.DetailOf(s)
	if err != nil {
		return nil, err
	}
	doc, err := project(&d)
	if err != nil {
		return nil, err
	}
	return json.Marshal(doc, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

// pollBody is what hosts of v1 have answered with, all of it: a client was built
// against one or the other (rest-endpoints.md; api/openapi.yaml).
type pollBody struct {
	RunID        string           `json:"runId"`
	Events       []jsontext.Value `json:"events"`
	IsComplete   bool             `json:"isComplete"`
	IsTerminal   bool             `json:"isTerminal"`
	RunStatus    string           `json:"runStatus"`
	LastEventSeq int64            `json:"lastEventSeq"`
}

// readEvents answers with what there is of the log behind the cursor, at once. Only a
// mode that was named leaves anything out, and values, whose frames are no events, does
// not even then.
func (a *API) readEvents(w http.ResponseWriter, r *api.Request, c identity.Caller, id ids.Run, ask stream.Ask, cut cut) error {
	if _, err := a.host.Head(r.Context(), c, id); err != nil {
		return err
	}
	after, _, err := stream.LastEventID(r)
	if err != nil {
		return err
	}
	page, err := a.host.Poll(r.Context(), c, id, max(after, cut.from-1), 0)
	if err != nil {
		return err
	}
	if n := cut.most; n < int64(len(page.Events)) {
		page.Events, page.IsTerminal = page.Events[:n], false
	}
	shown := func(*event.Event) bool { return true }
	if ask.Given && !ask.Mode.Values {
		shown = func(e *event.Event) bool { return ask.Mode.Shows(frames, e.Type) }
	}
	return a.writeEvents(w, c, id.Opaque, &page, shown)
}

func (a *API) pollEvents(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	after, err := pollCursor(r)
	if err != nil {
		return err
	}
	timeout, err := r.QueryInt("timeout", 1, 60, 30)
	if err != nil {
		return err
	}
	id, err := a.run(r, c)
	if err != nil {
		return err
	}
	page, err := a.host.Poll(r.Context(), c, id, after, c.AtMost(time.Duration(timeout)*time.Second, a.host.Now()))
	if err != nil {
		return err
	}
	return a.writeEvents(w, c, id.Opaque, &page, func(*event.Event) bool { return true })
}

func (a *API) writeEvents(w http.ResponseWriter, c identity.Caller, id string, page *host.Page, shown func(*event.Event) bool) error {
	b := pollBody{
		RunID: id, Events: make([]jsontext.Value, 0, len(page.Events)), IsComplete: page.IsTerminal, IsTerminal: page.IsTerminal,
		RunStatus: page.Status, LastEventSeq: page.LastSequence,
	}
	if n := len(page.Events); n > 0 {
		// Whoever goes on behind it misses nothing, though the log is longer.
		b.LastEventSeq = page.Events[n-1].Seq
	}
	for i := range page.Events {
		if e := &page.Events[i]; shown(e) {
			b.Events = append(b.Events, v1wire.Doc(e))
		}
	}
	return api.JSON(a.door.Shown(w, c.Tenant()), http.StatusOK, b)
}

// pollCursor reads where a poll begins: behind a sequence, so that 0 leaves the first
// event out, and before all of them if none is given.
func pollCursor(r *api.Request) (int64, error) {
	after, err := r.QueryInt("lastSequence", 0, 1<<53-1, -1)
	if err != nil {
		return 0, err
	}
	since, err := r.QueryInt("since", 0, 1<<53-1, -1)
	if err != nil {
		return 0, err
	}
	switch {
	case since < 0:
		return after, nil
	case after >= 0 && after != since:
		return 0, problem.Invalid("since", "is another name of lastSequence, and says something else")
	}
	return since, nil
}

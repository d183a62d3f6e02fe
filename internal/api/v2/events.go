package v2

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/fermata-run/fermata/internal/api"
	"github.com/fermata-run/fermata/internal/api/sse"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
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
	return api.JSON(&shown{ResponseWriter: w, r: a.redact, tenant: c.Tenant()}, http.StatusOK, b)
}

func (a *API) streamEvents(w http.ResponseWriter, r *api.Request, c identity.Caller) error {
	id, err := r.RunID("runId")
	if err != nil {
		return err
	}
	m, given, err := r.QueryOne("streamMode")
	if err != nil {
		return err
	}
	mode, err := sse.ParseMode(m, given)
	if err != nil {
		return err
	}
	buffer, err := r.QueryInt("bufferMs", 0, 5000, 0)
	if err != nil {
		return err
	}
	// The cursor is looked at only once the caller may read the run, so that it
	// never changes the answer for one he may not.
	if _, err := a.host.Head(r.Context(), c, id); err != nil {
		return err
	}
	after, resumed, err := lastEventID(r)
	if err != nil {
		return err
	}
	log, err := a.host.OpenLog(r.Context(), c, id, after)
	if err != nil {
		return err
	}
	defer log.Close()
	out, err := sse.Begin(w, mode)
	if err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	out.Clean = func(b []byte) []byte { return a.redact.KnownJSON(c.Tenant(), b) }
	s := stream{log: log, out: out, buffer: time.Duration(buffer) * time.Millisecond}
	if mode.Values {
		if s.fold, err = a.folder(r.Context(), id, after, resumed, out); err != nil {
			if errors.Is(log.Cause(err), host.ErrShutdown) {
				return nil
			}
			return err
		}
	}
	// What the credential allowed when the stream began ends with it. A follower
	// comes back with a fresh one, and goes on behind what it has read.
	ctx, stop := r.Context(), func() {}
	if !c.Expires.IsZero() {
		ctx, stop = context.WithTimeout(ctx, c.Expires.Sub(a.host.Now()))
	}
	defer stop()
	return s.run(ctx)
}

// lastEventID reads the cursor of a resumed stream. It is exclusive, and may lie
// beyond the end of the log (spec v2 events.md §SSE frames).
func lastEventID(r *api.Request) (after int64, resumed bool, err error) {
	v := r.Header.Get("Last-Event-ID")
	if v == "" {
		return -1, false, nil
	}
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return 0, false, problem.Invalid("Last-Event-ID", "is not the sequence of an event")
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n > beyondAnyLog {
		n = beyondAnyLog // digits alone: so large a number that no log comes there
	}
	return n, true, nil
}

// beyondAnyLog leaves room to count on.
const beyondAnyLog = math.MaxInt64 - 1

// stream sends one run's log to one subscriber.
type stream struct {
	log    *host.Log
	out    *sse.Writer
	buffer time.Duration
	fold   func(*event.Event) error // values mode
	held   []event.Event            // waiting to be sent as a batch
	size   int                      // of what is held, in bytes
	due    <-chan time.Time         // when they must be
}

// run sends until the run's last event is written, the client goes, or the host
// stops. It returns an error only for what the connection must be cut for.
func (s *stream) run(ctx context.Context) error {
	for {
		alive := time.NewTimer(sse.Keepalive)
		wait := alive.C
		if s.due != nil {
			wait = s.due
		}
		events, err := s.log.Next(ctx, wait)
		alive.Stop()
		switch {
		case errors.Is(err, host.ErrEnded), errors.Is(err, host.ErrShutdown):
			return s.release()
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		over, err := s.send(events)
		if err != nil || over {
			return quiet(err)
		}
	}
}

// quiet drops a write error: it means that the client has gone.
func quiet(err error) error {
	var p *problem.Error
	if errors.As(err, &p) {
		return err
	}
	return nil
}

func (s *stream) send(events []event.Event) (over bool, err error) {
	if len(events) == 0 {
		if s.due != nil {
			return false, s.release()
		}
		return false, s.out.Comment("alive")
	}
	for i := range events {
		if events[i].Type.Terminal() {
			// The stream ends here (spec v2 events.md §SSE frames). Who wants to see
			// the run undone resumes behind this event.
			events, over = events[:i+1], true
			break
		}
	}
	if s.buffer > 0 && s.fold == nil {
		return over, s.hold(events, over)
	}
	for i := range events {
		if s.fold != nil {
			if err := s.fold(&events[i]); err != nil {
				return false, err
			}
			continue
		}
		s.out.Add(&events[i])
	}
	return over, s.out.Flush()
}

// A batch is sent before its time once it holds this much.
const (
	maxHeld      = 1000
	maxHeldBytes = 1 << 20
)

// hold keeps events for a batch; an event that somebody waits for flushes it.
func (s *stream) hold(events []event.Event, over bool) error {
	flush := over
	for i := range events {
		if !s.out.Admits(&events[i]) {
			continue
		}
		s.held = append(s.held, events[i])
		s.size += len(events[i].Doc())
		flush = flush || events[i].Type == event.NodeSuspended
	}
	if flush || len(s.held) >= maxHeld || s.size >= maxHeldBytes {
		return s.release()
	}
	if s.due == nil && len(s.held) > 0 {
		s.due = time.After(s.buffer)
	}
	return nil
}

func (s *stream) release() error {
	if len(s.held) > 0 {
		s.out.Batch(s.held)
	}
	s.held, s.size, s.due = nil, 0, nil
	return quiet(s.out.Flush())
}

// folder makes the function that turns events into snapshots for the values
// mode: one after each change the updates mode would show, and one first for a
// subscriber who resumes.
func (a *API) folder(ctx context.Context, id ids.Run, after int64, resumed bool, out *sse.Writer) (func(*event.Event) error, error) {
	s, err := a.host.FoldUpTo(ctx, id, after)
	if err != nil {
		return nil, err
	}
	show := func(seq int64) error {
		b, err := json.Marshal(s.Snapshot(), jsontext.PreserveRawStrings(true))
		if err != nil {
			return problem.Internal(err)
		}
		out.Snapshot(seq, b)
		return nil
	}
	if resumed && s.Seq >= 0 {
		if err := show(-1); err != nil {
			return nil, err
		}
	}
	return func(e *event.Event) error {
		if e.Seq <= s.Seq {
			return nil
		}
		if e.Seq > s.Seq+1 { // the cursor lay ahead of the log
			if s, err = a.host.FoldUpTo(ctx, id, e.Seq-1); err != nil {
				return err
			}
		}
		if err := s.Fold(e); err != nil {
			return problem.Internal(err)
		}
		if e.Type.InUpdates() {
			return show(e.Seq)
		}
		return nil
	}, nil
}

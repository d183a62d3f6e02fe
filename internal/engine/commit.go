package engine

import (
	"context"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// commit makes a turn durable. On failure nothing of it is.
func (a *actor) commit(t *turn, settled []store.Settled) error {
	ctx := context.Background() // a step that was decided is not abandoned half-way
	if len(t.events) == 0 && len(t.todo) == 0 && a.rowIsRight(t) {
		if len(settled) == 0 {
			return nil
		}
		return a.e.store.Runs().Settle(ctx, settled)
	}
	ctx = store.Audited(ctx, t.drafts...)
	ap := t.append()
	ap.Settled = settled
	ap.Epoch, ap.ExpectedSeq = a.row.Epoch, a.row.Seq
	if t.guest {
		ap.Tell = a.row.Instance
	}
	a.checkpoint(t, ap)
	for _, c := range t.children {
		c.reserve()
	}
	if err := a.e.store.Runs().Append(ctx, ap); err != nil {
		for _, c := range t.children {
			c.giveUp()
		}
		return err
	}
	a.e.sent(ap)
	a.row = ap.Row
	return nil
}

// sent tells the outbox that a step is durable.
func (e *Engine) sent(ap *store.Append) {
	if e.cfg.Outbox != nil {
		e.cfg.Outbox.Sent(ap)
	}
}

// rowIsRight reports whether the stored row already says what it should.
func (a *actor) rowIsRight(t *turn) bool {
	want := t.rowAfter()
	return want.Status == a.row.Status && want.Compensation == a.row.Compensation &&
		want.Instance == a.row.Instance && want.WakeAt.Equal(a.row.WakeAt)
}

// checkpoint adds a checkpoint once the log behind the last one has outgrown
// it, so that the cost of checkpoints stays in proportion to the log, and what
// must be read to fold a run in proportion to its state.
func (a *actor) checkpoint(t *turn, ap *store.Append) {
	for i := range t.events {
		a.sinceCheck += len(t.events[i].Doc())
	}
	if a.sinceCheck < max(checkpointFloor, a.checkSize) {
		return
	}
	b, err := t.s.Encode()
	if err != nil {
		a.e.log.Warn("a checkpoint could not be made", "run", a.id.String(), "err", err)
		return
	}
	if len(b) <= store.MaxValue { // else the log alone will do
		ap.Checkpoint = &store.Checkpoint{Seq: t.s.Seq, State: b}
	}
	a.sinceCheck, a.checkSize = 0, len(b)
}

// append is the turn as the store takes it, child runs included.
func (t *turn) append() *store.Append {
	t.written = t.rowAfter()
	ap := &store.Append{Row: t.written, Events: t.events, Staged: t.staged}
	opened, closed := t.s.TakeInbox()
	gone := map[string]bool{}
	for _, id := range closed {
		gone[id.Opaque] = true
	}
	fresh := map[string]bool{}
	for _, i := range opened {
		fresh[i.ID.Opaque] = true
		if gone[i.ID.Opaque] {
			continue // opened and closed within the turn
		}
		ap.Opened = append(ap.Opened, store.Interrupt{
			ID: i.ID.Opaque, Run: t.s.ID, NodeID: i.NodeID, Kind: i.Request.Kind, Key: i.Request.Key,
			Data: event.Encode(i.Request), CreatedAt: i.OpenedAt, ExpiresAt: i.ExpiresAt,
		})
	}
	for _, id := range closed {
		if !fresh[id.Opaque] {
			ap.Closed = append(ap.Closed, id.Opaque)
		}
	}
	for _, c := range t.children {
		also := c.append()
		also.Create = true
		ap.Also = append(ap.Also, also)
	}
	if t.e.cfg.Outbox != nil {
		t.e.cfg.Outbox.Fill(t.s, ap)
	}
	return ap
}

// rowAfter is the run's row as the turn leaves it.
func (t *turn) rowAfter() store.Run {
	s, row := t.s, t.row
	before := row.Status
	if row.ID.IsZero() {
		row = t.newRow()
	}
	row.Status, row.Seq = s.Status(), s.Seq
	row.StartedAt, row.CompletedAt, row.CurrentNode = s.StartedAt, s.CompletedAt, s.CurrentNode()
	row.WakeAt = s.NextWake(t.e.cfg.Limits)
	if row.Compensation = s.CompensationStatus(); row.Compensation == run.UndoNone {
		row.Compensation = ""
	}
	row.Error = nil
	if s.Error != nil {
		row.Error = event.Encode(s.Error)
	}
	owner := ""
	if !s.Parked() || len(t.todo) > 0 {
		owner = t.e.Instance()
	}
	if t.guest && owner != "" {
		owner = row.Instance
	}
	if owner != "" && row.Instance != owner {
		row.Epoch++ // the run changes hands
	}
	row.Instance = owner
	if s.Parent != nil && t.parent == nil && tellsParent(before, row.Status) {
		row.Notify = true
	}
	return row
}

func (t *turn) newRow() store.Run {
	s := t.s
	row := store.Run{
		ID: s.ID, WorkflowID: s.WorkflowID, WorkflowVersion: s.WorkflowVersion,
		CreatedAt: s.StartedAt, Owner: event.Encode(s.Owner), Workspace: s.Owner.Workspace,
	}
	if s.Tags != nil {
		row.Tags = event.Encode(s.Tags)
	}
	if f := s.Fork; f != nil {
		row.CreatedAt = f.At
		row.ForkMode, row.ForkSource, row.ForkSeq = f.Mode, f.Source, f.Seq
		if !f.Options.IsZero() {
			row.ForkOptions = event.Encode(f.Options)
		}
	}
	if s.Parent != nil {
		if id, err := parseRun(s.Parent.RunID); err == nil {
			row.Parent, row.ParentNode = id, s.Parent.NodeID
		}
	}
	return row
}

// after does what a durable turn calls for: tells watchers, interrupts calls
// that are not wanted, makes new ones, and passes news between parent and child.
func (a *actor) after(t *turn) {
	for _, x := range t.aborts {
		a.cut(x)
	}
	a.e.feed.publish(a.id, t.events)
	for _, x := range t.cancels {
		if c := t.byID[x.RunID.String()]; c != nil && c.s.Ended == "" {
			c.later, c.todo = nil, nil // begun and called off in one go
		}
	}
	for _, c := range t.children {
		a.e.takeOver(c)
	}
	if a.guest {
		t.later, t.todo = nil, nil // the owner's
	}
	a.dispatch(t)
	if a.row.Notify {
		a.e.tellParent(a.row)
	}
	if a.guest {
		a.forget() // the owner goes on without a word
		return
	}
	if a.s.Settled() && len(a.calls) == 0 {
		if a.checkSize == 0 {
			a.e.ended.keep(t, a.row, a.sinceCheck)
		}
		a.s = nil // nothing more can happen to it
	}
}

// dispatch makes the calls a turn asks for and passes a run's end on.
func (a *actor) dispatch(t *turn) {
	for _, x := range t.later {
		a.launch(x)
	}
	if len(t.todo) > 0 || t.unfinished {
		a.e.actors.deliver(a.e, a.id, message{pending: t.todo})
	}
	for _, x := range t.cancels {
		a.e.cancelChild(a.id, x)
	}
	a.arm(t.ticked)
}

// arm sees to the run's next timer: the store's index serves parked runs, the
// engine's own list those it works on.
func (a *actor) arm(ticked bool) {
	at := a.row.WakeAt
	switch {
	case at.IsZero():
		a.e.timers.drop(a.id)
	case a.row.Instance == "":
		a.e.timers.drop(a.id)
		a.e.timers.poke(at)
	default:
		if now := a.e.clock.Now(); ticked && !at.After(now) {
			at = now.Add(a.e.cfg.ReconcileEvery) // due, yet not to be had at the moment
		}
		a.e.timers.set(a.id, at)
	}
}

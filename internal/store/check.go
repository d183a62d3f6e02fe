package store

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxValue bounds one stored value, in bytes: a document, a checkpoint, a
// definition. What a host accepts is far below; this keeps a mistake from
// exhausting the memory of a backend.
const MaxValue = 16 << 20

// ErrTooLarge: a value is larger than MaxValue. Nothing was written.
var ErrTooLarge = fmt.Errorf("store: a value is larger than %d bytes", MaxValue)

// Check refuses a step that could be written but would leave a log that cannot
// be read back: better to fail one step than to lose its run. A backend calls it
// before it writes; the steps in Also are not looked at.
func (a *Append) Check() error {
	r := &a.Row
	if !ids.ValidTenant(r.ID.Tenant) || !ids.ValidOpaque(r.ID.Opaque) {
		return fmt.Errorf("run id %q: %w", r.ID, ids.ErrGrammar)
	}
	if len(r.Tags)+len(r.Owner)+len(r.Error)+len(r.ForkOptions) > MaxValue {
		return ErrTooLarge
	}
	for i := range a.Opened {
		if len(a.Opened[i].Data) > MaxValue {
			return fmt.Errorf("interrupt %s: %w", a.Opened[i].ID, ErrTooLarge)
		}
	}
	for i := range a.Queued {
		if err := a.Queued[i].Check(); err != nil {
			return err
		}
	}
	if p := a.Checkpoint; p != nil {
		if p.Seq > r.Seq {
			return fmt.Errorf("checkpoint at %d is beyond the log's end at %d", p.Seq, r.Seq)
		}
		if len(p.State) > MaxValue {
			return fmt.Errorf("checkpoint: %w", ErrTooLarge)
		}
	}
	return a.checkLog()
}

// checkLog holds a step to a log without gaps, whose end is in the row, and to
// documents that can be decoded.
func (a *Append) checkLog() error {
	last := a.ExpectedSeq
	if a.Create {
		last = a.Row.Seq - int64(len(a.Events))
	}
	for i := range a.Events {
		e := &a.Events[i]
		if last++; e.Seq != last {
			return fmt.Errorf("event with sequence %d in place of %d", e.Seq, last)
		}
		if e.Run != a.Row.ID {
			return fmt.Errorf("event %d belongs to run %s", e.Seq, e.Run)
		}
		if err := checkEvent(e); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	if a.Create && !a.Staged && a.Row.Seq >= 0 && len(a.Events) > 0 && a.Events[0].Seq > 0 {
		return fmt.Errorf("a log that begins at sequence %d", a.Events[0].Seq)
	}
	if a.Row.Seq != last {
		return fmt.Errorf("row at sequence %d, log at %d", a.Row.Seq, last)
	}
	return nil
}

// CheckStaged refuses a stretch of a log that would not read back.
func CheckStaged(id ids.Run, events []event.Event) error {
	if !ids.ValidTenant(id.Tenant) || !ids.ValidOpaque(id.Opaque) {
		return fmt.Errorf("run id %q: %w", id, ids.ErrGrammar)
	}
	for i := range events {
		e := &events[i]
		if e.Run != id || e.Seq != events[0].Seq+int64(i) || e.Seq < 0 {
			return fmt.Errorf("event %d of run %s is out of place", e.Seq, e.Run)
		}
		if err := checkEvent(e); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	return nil
}

func checkEvent(e *event.Event) error {
	doc := e.Doc()
	switch {
	case len(doc) > MaxValue || len(e.Sealed) > MaxValue:
		return ErrTooLarge
	case bytes.IndexByte(doc, '\n') >= 0: // it separates documents
		return errors.New("its document has more than one line")
	case !jsontext.Value(doc).IsValid():
		return errors.New("its document is no valid JSON")
	case e.Sealed != nil && !e.Sealed.IsValid():
		return errors.New("its sealed payload is no valid JSON")
	}
	return nil
}

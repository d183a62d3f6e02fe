package sqlite

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// maxValue bounds one stored value (a document, a checkpoint, a definition).
// What a host accepts is far below; this keeps a mistake from exhausting the
// memory of a connection, which has room for a row of two such values.
const maxValue = 16 << 20

var errTooLarge = fmt.Errorf("a value is larger than %d bytes", maxValue)

// check refuses a step that could be written but would leave a log that cannot
// be read back: better to fail one step than to lose its run.
func check(a *store.Append) error {
	r := &a.Row
	if !ids.ValidTenant(r.ID.Tenant) || !ids.ValidOpaque(r.ID.Opaque) {
		return fmt.Errorf("run id %q: %w", r.ID, ids.ErrGrammar)
	}
	if len(r.Tags)+len(r.Owner)+len(r.Error) > maxValue {
		return errTooLarge
	}
	for i := range a.Opened {
		if len(a.Opened[i].Data) > maxValue {
			return fmt.Errorf("interrupt %s: %w", a.Opened[i].ID, errTooLarge)
		}
	}
	if p := a.Checkpoint; p != nil {
		if p.Seq > r.Seq {
			return fmt.Errorf("checkpoint at %d is beyond the log's end at %d", p.Seq, r.Seq)
		}
		if len(p.State) > maxValue {
			return fmt.Errorf("checkpoint: %w", errTooLarge)
		}
	}
	return checkLog(a)
}

// checkLog holds a step to a log without gaps, whose end is in the row, and to
// documents that can be decoded.
func checkLog(a *store.Append) error {
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
	if a.Row.Seq != last {
		return fmt.Errorf("row at sequence %d, log at %d", a.Row.Seq, last)
	}
	return nil
}

func checkEvent(e *event.Event) error {
	doc := e.Doc()
	switch {
	case len(doc) > maxValue || len(e.Sealed) > maxValue:
		return errTooLarge
	case bytes.IndexByte(doc, '\n') >= 0: // it separates documents
		return errors.New("its document has more than one line")
	case !jsontext.Value(doc).IsValid():
		return errors.New("its document is no valid JSON")
	case e.Sealed != nil && !e.Sealed.IsValid():
		return errors.New("its sealed payload is no valid JSON")
	}
	return nil
}

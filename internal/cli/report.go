package cli

import (
	"encoding/json"

	"github.com/fermata-run/fermata/client"
)

// outcome is how a run ended.
type outcome struct {
	event client.Event
}

// report prints how a run ended and turns it into the command's result. Outputs
// go to the standard output, unless the events there say it all.
func (a *app) report(o outcome, asJSON bool) error {
	switch o.event.Type {
	case "run.completed":
		var p struct {
			Outputs json.RawMessage `json:"outputs"`
		}
		if err := o.event.Decode(&p); err != nil {
			return err
		}
		if asJSON || len(p.Outputs) == 0 {
			return nil
		}
		return a.document(p.Outputs)
	case "run.failed":
		var p struct {
			Error        client.RunError `json:"error"`
			FailedNodeID string          `json:"failedNodeId"`
		}
		if err := o.event.Decode(&p); err != nil {
			return err
		}
		text := p.Error.Error()
		var d struct {
			Field string `json:"field"`
		}
		if json.Unmarshal(p.Error.Details, &d) == nil && d.Field != "" {
			text = d.Field + ": " + text
		}
		a.note("error: %s", plain(text))
		if p.FailedNodeID != "" {
			a.note("  node: %s", plain(p.FailedNodeID))
		}
	default:
		var d details
		_ = o.event.Decode(&d) // a reason is not required
		if d.Reason != "" {
			a.note("error: the run was cancelled: %s", plain(d.Reason))
		} else {
			a.note("error: the run was cancelled")
		}
	}
	return told{ExitFailed}
}

package flow

import (
	"errors"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/schedule"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Schedule is a trigger that starts runs by time.
type Schedule struct {
	Trigger string // its id
	Config  jsontext.Value
	Spec    *schedule.Spec
}

// Schedules lists the schedule triggers that are enabled. Only those of a definition
// that somebody hands in are read: one that is stored already has its own in the store.
func (w *Workflow) Schedules() []Schedule { return w.schedules }

// schedule checks a schedule trigger, whether it is enabled or not: who switches it on
// finds it in order.
func (c *compiler) schedule(field string, t *Trigger) {
	enabled := t.Enabled == nil || *t.Enabled
	if !ids.ValidAuthored(t.ID) {
		c.fail(field+".id", "%q is not an id of a schedule: want 1 to 128 of A-Z a-z 0-9 . _ ~ : -", t.ID)
	}
	spec, err := schedule.Parse(t.Config)
	var bad *schedule.Fault
	if errors.As(err, &bad) {
		c.fail(join(field+".config", bad.Field), "%s", bad.Message)
		return
	}
	if t.NodeID != "" {
		c.fail(field+".nodeId", "a schedule starts the workflow, and not a node of it")
	}
	if len(spec.Inputs) > 0 {
		in := map[string]jsontext.Value{}
		if err := json.Unmarshal(spec.Inputs, &in); err != nil {
			c.fail(field+".config.inputs", "%v", err)
			return
		}
		if name, reason := c.w.CheckInputs(in); reason != "" {
			c.fail(field+".config.inputs."+name, "%s", reason)
		}
	} else if name, reason := c.w.CheckInputs(nil); reason != "" {
		c.fail(field+".config.inputs."+name, "%s", reason)
	}
	if !enabled {
		return
	}
	if len(c.w.schedules) == MaxSchedules {
		c.fail(field, "at most %d schedules are allowed", MaxSchedules)
		return
	}
	c.w.schedules = append(c.w.schedules, Schedule{Trigger: t.ID, Config: t.Config, Spec: spec})
}

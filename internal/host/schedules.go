package host

import (
	"context"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/flow"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/schedule"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/go-json-experiment/json"
)

// ScheduleInfo describes a schedule. Inputs are not shown: they are the definition's.
type ScheduleInfo struct {
	WorkflowID string `json:"workflowId"`
	Version    string `json:"version"` // of the definition whose trigger it is
	TriggerID  string `json:"triggerId"`
	Cron       string `json:"cron,omitzero"`
	Every      string `json:"every,omitzero"` // a duration such as 15m0s
	Timezone   string `json:"timezone,omitzero"`
	CatchUp    string `json:"catchUp"`
	Overlap    string `json:"overlap"`
	NextTick   string `json:"nextTick,omitzero"` // absent if none comes any more
	LastTick   string `json:"lastTick,omitzero"` // absent until a run came of one
	LastRunID  string `json:"lastRunId,omitzero"`
}

// SchedulePage is one page of schedules, by workflow and trigger.
type SchedulePage struct {
	Schedules  []ScheduleInfo `json:"schedules"`
	NextCursor string         `json:"nextCursor,omitzero"`
}

// ListSchedules reads a page of the schedules of the caller's workflows.
func (h *Host) ListSchedules(ctx context.Context, c identity.Caller, cursor string, limit int) (SchedulePage, error) {
	if err := h.allow(c, identity.ManifestRead); err != nil {
		return SchedulePage{}, err
	}
	key, workflow, trigger := "schedules\x00"+c.Tenant(), "", ""
	if cursor != "" {
		after, ok := readCursor(cursor, key)
		if !ok {
			return SchedulePage{}, problem.Invalid("cursor", "is not a cursor of this list")
		}
		workflow, trigger, _ = strings.Cut(after, "\x00") // no workflow's id has one
	}
	if limit == 0 {
		limit = defaultPage
	}
	limit = min(limit, h.cfg.Limits.MaxPageSize)
	rows, err := h.store.Schedules().List(ctx, c.Tenant(), workflow, trigger, limit+1)
	if err != nil {
		return SchedulePage{}, err
	}
	page := SchedulePage{Schedules: []ScheduleInfo{}}
	if len(rows) > limit {
		rows = rows[:limit]
		page.NextCursor = makeCursor(rows[limit-1].Workflow+"\x00"+rows[limit-1].Trigger, key)
	}
	for i := range rows {
		page.Schedules = append(page.Schedules, scheduleInfo(&rows[i]))
	}
	return page, nil
}

func scheduleInfo(s *store.Schedule) ScheduleInfo {
	out := ScheduleInfo{WorkflowID: s.Workflow, Version: s.Version, TriggerID: s.Trigger}
	if spec, err := schedule.Parse(s.Spec); err == nil {
		out.Cron, out.CatchUp, out.Overlap = spec.Cron, spec.CatchUp, spec.Overlap
		if spec.Every > 0 {
			out.Every = spec.Every.String()
		} else {
			out.Timezone = spec.Timezone
		}
	}
	stamp := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return run.Stamp(t)
	}
	out.NextTick, out.LastTick = stamp(s.NextAt), stamp(s.LastAt)
	if s.LastRun != "" {
		out.LastRunID = ids.Run{Tenant: s.Tenant, Opaque: s.LastRun}.String()
	}
	return out
}

// schedules are what registering a workflow makes of its triggers. Who registers them
// starts their runs, and must be allowed to. A workflow that may not be started has none.
func (h *Host) schedules(c identity.Caller, wf *flow.Workflow) ([]store.Schedule, error) {
	list := wf.Schedules()
	if len(list) == 0 || startable(wf) != nil {
		return nil, nil
	}
	if err := h.allow(c, identity.RunsCreate); err != nil {
		return nil, err
	}
	owner, err := json.Marshal(c.Owner(), json.Deterministic(true))
	if err != nil {
		return nil, problem.Internal(err)
	}
	now, out := h.clock.Now(), make([]store.Schedule, 0, len(list))
	for _, x := range list {
		next := x.Spec.Next(now)
		out = append(out, store.Schedule{
			Tenant: c.Tenant(), Workflow: wf.Def.ID, Trigger: x.Trigger, Version: wf.Def.Version,
			Spec: x.Config, Owner: owner, NextAt: next, DueAt: next,
		})
	}
	return out, nil
}

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Schedule is a trigger of a workflow's latest version that starts runs by time. It has
// either Cron, with Timezone, or Every, a duration such as 15m0s.
type Schedule struct {
	WorkflowID string    `json:"workflowId"`
	Version    string    `json:"version"` // of the definition whose trigger it is
	TriggerID  string    `json:"triggerId"`
	Cron       string    `json:"cron,omitempty"`
	Every      string    `json:"every,omitempty"`
	Timezone   string    `json:"timezone,omitempty"`
	CatchUp    string    `json:"catchUp"`             // last, none or all
	Overlap    string    `json:"overlap"`             // allow or skip
	NextTick   time.Time `json:"nextTick,omitzero"`   // zero if none comes any more
	LastTick   time.Time `json:"lastTick,omitzero"`   // zero until a run came of one
	LastRunID  string    `json:"lastRunId,omitempty"` // of that run
}

// SchedulePage is one page of schedules, by workflow and trigger.
type SchedulePage struct {
	Schedules  []Schedule `json:"schedules"`
	NextCursor string     `json:"nextCursor,omitempty"` // empty on the last page

	Raw json.RawMessage `json:"-"`
}

// ListSchedules reads one page of the schedules of the caller's workflows.
func (c *Client) ListSchedules(ctx context.Context, o PageOptions) (*SchedulePage, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: hostPath + "/schedules", query: o.query(), again: true})
	if err != nil {
		return nil, err
	}
	var out SchedulePage
	out.Raw, err = a.into(&out)
	return &out, err
}

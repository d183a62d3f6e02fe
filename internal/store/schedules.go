package store

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// Schedule is a trigger of a workflow's latest version that starts runs by time.
type Schedule struct {
	Tenant   string
	Workflow string
	Trigger  string // its id in the definition

	Version string // of the definition
	Spec    []byte // the trigger's configuration, as it was registered
	Owner   []byte // JSON owner block of the runs: who registered the version

	NextAt  time.Time // the oldest tick nothing has come of yet; zero if none comes any more
	DueAt   time.Time // when to look at it: NextAt, or later if it had to wait; zero for never
	LastAt  time.Time // the newest tick that a run came of; zero for none
	LastRun string    // opaque segment of that run's id; empty for none

	Revision int64 // raised by every change
}

// Schedules keeps schedules. Workflows.Put and Workflows.Delete say which there are.
type Schedules interface {
	// Claim gives out up to limit schedules with a DueAt not after now, and puts their
	// DueAt off until then: whoever claimed them says by Move what came of them, or is
	// gone, and they are due again. If there are more than limit, tenants take turns. No
	// two claims give out the same schedule before until, by the clock of their now.
	Claim(ctx context.Context, now, until time.Time, limit int) ([]Schedule, error)
	// NextDue is the earliest DueAt; zero for none.
	NextDue(ctx context.Context) (time.Time, error)
	// Move writes NextAt, DueAt, LastAt and LastRun of a schedule that is at s.Revision.
	// ErrStale if it is at another or not there.
	Move(ctx context.Context, s Schedule) error
	// List reads schedules of one tenant by workflow and trigger, after the given ones.
	List(ctx context.Context, tenant, workflow, trigger string, limit int) ([]Schedule, error)
}

// SchedulePlan is what Workflows.Put does to the schedules of a workflow.
type SchedulePlan struct{ Drop, Adopt, Insert []Schedule }

// PlanSchedules compares the schedules of a version with those that are there.
func PlanSchedules(w *Workflow, there []Schedule) (p SchedulePlan) {
	old := map[string]Schedule{}
	for _, x := range there {
		old[x.Trigger] = x
	}
	for _, x := range w.Schedules {
		was, known := old[x.Trigger]
		delete(old, x.Trigger)
		same := known && bytes.Equal(was.Spec, x.Spec)
		switch {
		case !known:
			p.Insert = append(p.Insert, x)
		case same && was.Version == w.Version:
		case same:
			x.NextAt, x.DueAt = was.NextAt, was.DueAt
			p.Adopt = append(p.Adopt, x)
		default:
			p.Adopt = append(p.Adopt, x)
		}
	}
	for _, x := range there {
		if _, gone := old[x.Trigger]; gone {
			p.Drop = append(p.Drop, x)
		}
	}
	return p
}

// mostProbes bounds how many tenants one round looks at.
const mostProbes = 1024

// Round remembers whose turn comes next where more is due than one claim takes.
type Round struct {
	mu   sync.Mutex
	last string
}

// Tenants lists up to limit tenants that are ready, from behind the one served last,
// once round. next finds the first tenant after another one, and whether it is ready.
func (r *Round) Tenants(limit int, next func(after string) (tenant string, ready, found bool, err error)) (out []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.last
	after, wrapped := from, from == ""
	for probes := 0; probes < mostProbes && len(out) < limit; probes++ {
		tenant, ready, found, err := next(after)
		switch {
		case err != nil:
			return nil, err
		case !found && wrapped, found && wrapped && from != "" && tenant > from:
			r.last = from
			return out, nil
		case !found:
			after, wrapped = "", true
			continue
		}
		if after = tenant; ready {
			out = append(out, tenant)
		}
	}
	r.last = after
	return out, nil
}

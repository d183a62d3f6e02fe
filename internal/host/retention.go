package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
)

// Retention says how long runs that are over are kept (spec v2 replay.md
// §Retention). A tenant's own bounds hold for it in place of the default ones.
type Retention struct {
	Default Bounds
	Tenants map[string]Bounds

	// Tombstones is how long it is remembered of a run that it has expired: its
	// routes answer run_expired, and not_found after that. Zero means two years.
	Tombstones time.Duration
}

// Check refuses bounds that could take a run from under its reader.
func (r Retention) Check() error {
	if r.Tombstones < 0 {
		return errors.New("a negative time for Tombstones")
	}
	if err := r.Default.check(); err != nil {
		return err
	}
	for tenant, b := range r.Tenants {
		if !ids.ValidTenant(tenant) {
			return fmt.Errorf("%q is no tenant", tenant)
		}
		if err := b.check(); err != nil {
			return fmt.Errorf("tenant %s: %w", tenant, err)
		}
	}
	return nil
}

func (b Bounds) check() error {
	if b.MaxAge != 0 && b.MaxAge < Smallest {
		return fmt.Errorf("a MaxAge of %v, and not 0 or at least %v", b.MaxAge, Smallest)
	}
	if b.MaxRuns < 0 {
		return errors.New("a negative number of MaxRuns")
	}
	return nil
}

// Bounds of one tenant's runs that are over. Either is enough to let go of one.
type Bounds struct {
	MaxAge  time.Duration // since its end; zero for any
	MaxRuns int           // how many are kept, the newest by their end; zero for any
}

// Smallest is the least bound that may be configured, and what a run is safe for
// however many come after it: whoever started it has this long to read its
// outcome, and the answer that named it is replayed for no shorter time (spec v2
// idempotency.md §Layer 1).
const Smallest = 24 * time.Hour

const defaultTombstones = 2 * 365 * 24 * time.Hour

// DefaultRetention keeps every run for a year after its end.
func DefaultRetention() Retention {
	return Retention{Default: Bounds{MaxAge: 365 * 24 * time.Hour}, Tombstones: defaultTombstones}
}

// of is what holds for a tenant.
func (r Retention) of(tenant string) Bounds {
	if b, ok := r.Tenants[tenant]; ok {
		return b
	}
	return r.Default
}

// Days is the window that discovery may name: for so many whole days after its
// end every run is there. It is not known where runs go by their number.
func (r Retention) Days() (days int, known bool) {
	least := time.Duration(0)
	for _, b := range append(values(r.Tenants), r.Default) {
		if b.MaxRuns > 0 {
			return 0, false
		}
		if b.MaxAge > 0 && (least == 0 || b.MaxAge < least) {
			least = b.MaxAge
		}
	}
	return int(least / (24 * time.Hour)), least >= 24*time.Hour
}

func values(m map[string]Bounds) []Bounds {
	out := make([]Bounds, 0, len(m)+1)
	for _, b := range m {
		out = append(out, b)
	}
	return out
}

// RetentionDays is what the family replay advertises as retention.days; false if
// there is nothing to promise.
func (h *Host) RetentionDays() (days int, known bool) { return h.cfg.Retention.Days() }

// mayExpire is the one place that knows which runs the host still works on
// although they are over. What the database itself knows (children, parents,
// queues) the store judges in the transaction that lets go of the run
// (store.Retention.Needed). A row that changes meanwhile is not let go of.
func mayExpire(r *store.Run) bool {
	return run.Terminal(r.Status) && r.Instance == "" && r.WakeAt.IsZero() && !r.Notify
}

// cut is the place in the order of a tenant's ends up to which runs are let go
// of. end is where the bound of the number lies; zero if it holds.
func (b Bounds) cut(now time.Time, end store.Ending) store.Ending {
	var out store.Ending
	if b.MaxAge > 0 {
		out = store.Ending{At: now.Add(-b.MaxAge), ID: lastID}
	}
	safe := store.Ending{At: now.Add(-Smallest), ID: lastID}
	if safe.Before(end) {
		end = safe
	}
	if out.Before(end) {
		out = end
	}
	return out
}

// lastID sorts behind every opaque segment.
const lastID = "\x7f"

// clockHold is how long a clock that has jumped forward must go on before it is
// believed, and how far it may go in one step without being doubted.
const clockHold = 24 * time.Hour

// believe judges what the clock says. It returns the time that may be used to
// call runs old, zero for none, and what is to be remembered.
//
// Deleting is the one thing here that cannot be made good, and a clock may be
// wrong: a machine without its battery, a restored snapshot, a slip by hand. A
// step back is believed at once, for it only makes runs younger; a leap forward
// only after a day of it. A host that was off for months waits that day, too:
// nobody can tell the two apart.
func believe(c store.Clock, now time.Time) (time.Time, store.Clock) {
	switch {
	case !c.Trusted.IsZero() && now.Sub(c.Trusted) <= clockHold,
		!c.Since.IsZero() && now.Sub(c.Since) >= clockHold:
		return now, store.Clock{Trusted: now}
	case c.Since.IsZero() || now.Before(c.Since):
		c.Since = now
	}
	return c.Trusted, c
}

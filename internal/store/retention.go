package store

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// Retention lets go of runs that are over. A run goes in two steps. Expire, in one
// transaction, puts a tombstone in the place of its row: from then on no list
// shows it and every method of Runs that names it fails with Expired. Clear then
// removes, piece by piece, what it has left behind. A process may die in between:
// the tombstone knows what is still there.
type Retention interface {
	// Tenants reads the names of tenants that have runs, in byte order, after the
	// given one.
	Tenants(ctx context.Context, after string, limit int) ([]string, error)

	// Ended reads rows of one tenant's runs that are over, the one that ended
	// first first.
	Ended(ctx context.Context, q EndedQuery) ([]Run, error)

	// EndOf finds the end of the newest of a tenant's runs that are over, not
	// counting the newest keep of them. It is zero if there are no more than that.
	EndOf(ctx context.Context, tenant string, keep int) (Ending, error)

	// Needed reports whether something in the database still needs a run that is
	// over: it has not told its parent, its parent is not over and may read its
	// outcome, or one of its own children is not over or has not told it.
	Needed(ctx context.Context, id ids.Run) (bool, error)

	// Expire puts tombstones in the place of those of runs that are over, in
	// nobody's hands, still at the epoch and the sequence of their rows here, and
	// not Needed. It returns which.
	Expire(ctx context.Context, at time.Time, runs []Run) ([]ids.Run, error)

	// Clear removes about limit rows or maxBytes of what expired runs have left
	// behind (at least one row, if there is one): events, checkpoint, interrupts.
	// It reports whether there may be more.
	Clear(ctx context.Context, limit, maxBytes int) (more bool, err error)

	// Forget removes up to limit tombstones that are not younger than until and
	// have nothing left to clear, the oldest first, and says how many there were.
	// Nothing remembers such a run any more.
	Forget(ctx context.Context, until time.Time, limit int) (int, error)

	// Reclaim gives a piece of the room that was cleared back to the system, if
	// the backend can and there is enough to be worth it. It reports whether
	// there is more.
	Reclaim(ctx context.Context) (more bool, err error)

	// Clock reads the time retention trusts; zero if none was ever set.
	Clock(ctx context.Context) (Clock, error)
	// SetClock replaces a clock by another. It fails with ErrStale if the clock
	// is not the given old one any more.
	SetClock(ctx context.Context, old, new Clock) error
}

// Ending is a place in the order in which a tenant's runs have ended: by time,
// then by id.
type Ending struct {
	At time.Time
	ID string // opaque segment; empty before all ids
}

// Before reports whether e lies before f.
func (e Ending) Before(f Ending) bool {
	return e.At.Before(f.At) || e.At.Equal(f.At) && e.ID < f.ID
}

// EndedQuery selects runs of one tenant that are over.
type EndedQuery struct {
	Tenant string
	After  Ending // what is read lies behind it
	Until  Ending // and not behind this
	Limit  int
}

// Clock is what retention knows of the time. It belongs to the host and to no
// tenant.
type Clock struct {
	Trusted time.Time // zero before the first time
	Since   time.Time // since when another time is seen, which is not trusted yet; zero for none
}

// Expired is the failure of a method that names a run which has been let go of.
// It is a kind of ErrNotFound.
type Expired struct {
	Run ids.Run
	At  time.Time
}

// Error implements error.
func (e Expired) Error() string { return "store: run " + e.Run.String() + " has expired" }

// Is implements the interface of errors.Is.
func (e Expired) Is(target error) bool { return target == ErrNotFound }

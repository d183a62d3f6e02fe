package store

import (
	"context"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// Replicas is what a Store offers whose database several processes share. A Store
// that does not implement it belongs to one process.
//
// A step of a run may be made by an instance that does not own it: one to which a
// request about the run has come. It keeps the run's epoch and owner, is refused like
// any other if the run has moved on, and names the owner in Append.Tell.
type Replicas interface {
	// Told takes up to limit runs of which somebody else has made a step that names
	// instance. Each is handed out once.
	Told(ctx context.Context, instance string, limit int) ([]ids.Run, error)
	// Ends reads the sequences of the last events of runs. Runs that are not there
	// are left out.
	Ends(ctx context.Context, runs []ids.Run) (map[ids.Run]int64, error)
	// Hints says what others may have done, some of it, and perhaps late, twice or
	// wrongly: it only saves waiting for the next look. Nil if nothing is heard.
	Hints() <-chan Hint
	// Now is the database's time.
	Now(ctx context.Context) (time.Time, error)
}

// Hint is one thing that another instance may have done.
type Hint struct {
	Run      ids.Run // has new events
	Instance string  // has something to take with Told
	Work     bool    // there may be something to claim
	All      bool    // anything: nothing was heard for a while
}

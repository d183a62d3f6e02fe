package store

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/ids"
)

// Sentinels. A backend returns these (possibly wrapped) and nothing else that a
// caller is expected to tell apart.
var (
	// ErrNotFound: no such row for this tenant. Of a run that has been let go of,
	// Expired says so.
	ErrNotFound = errors.New("store: not found")
	// ErrStale: the run moved on since the caller read it (another epoch or
	// another last sequence). Nothing was written.
	ErrStale = errors.New("store: stale epoch or sequence")
	// ErrExists: a row with this key is there already. Nothing was written.
	ErrExists = errors.New("store: already exists")
	// ErrUnavailable: the database cannot be had at the moment, or lets nobody
	// write. It may pass by itself. If a write fails with it, the write may have
	// happened all the same.
	ErrUnavailable = errors.New("store: the database is not available")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("store: closed")
)

// Store is a backend. All of its methods are safe for concurrent use. What it
// returns may be shared: callers do not modify the bytes. A limit of zero or less
// means no bound. Runs whose status is completed, failed or cancelled are over: they
// are never claimed and have no timer, unless their Compensation is pending or
// running; then they have owners and timers like any other run.
type Store interface {
	Runs() Runs
	Ownership() Ownership
	Workflows() Workflows
	Keys() Keys
	Tenants() Tenants
	Members() Members
	Secrets() Secrets
	Credentials() Credentials
	Vault() Vault
	Audit() Audit
	Idempotency() Idempotency
	Effects() Effects
	Webhooks() Webhooks
	Deliveries() Deliveries
	Retention() Retention
	Schedules() Schedules
	// Ping says whether the database answers a read and, as far as is known from the
	// last writes, takes them. It fails with ErrUnavailable until they go well again.
	Ping(ctx context.Context) error
	Close() error
}

// Runs keeps runs and their logs.
type Runs interface {
	// Append writes one step of one run in one transaction: events, the run's
	// row, interrupts opened and closed, and a checkpoint. It returns only when
	// all of it is durable. It fails with ErrStale if the run is not at
	// a.Epoch and a.ExpectedSeq, with ErrNotFound if it is not there, and with
	// ErrExists if a.Create names a run that is there or has expired, or
	// a.Opened an interrupt that ever was. A step that Check refuses is not written.
	Append(ctx context.Context, a *Append) error

	// Get reads a run's row without its log.
	Get(ctx context.Context, id ids.Run) (Run, error)

	// Load reads what it takes to fold a run: its row, the newest checkpoint if
	// any, and the events after it, as of one moment.
	Load(ctx context.Context, id ids.Run) (Loaded, error)

	// Events reads events with a sequence above after, in order, until limit
	// events or about maxBytes are read (at least one event, if there is one).
	// It also returns the row as of the same moment.
	Events(ctx context.Context, id ids.Run, after int64, limit, maxBytes int) (Run, []event.Event, error)

	// List reads rows of one tenant, newest first, below the cursor. Newest
	// first is descending byte order of the ids, which are minted in order.
	List(ctx context.Context, q ListQuery) ([]Run, error)

	// CountActive counts the runs of one tenant that have no parent and a status
	// that is not final, until there are most of them.
	CountActive(ctx context.Context, tenant string, most int) (int, error)

	// Children reads the rows of a run's child runs, oldest first.
	Children(ctx context.Context, parent ids.Run) ([]Run, error)

	// OpenInterrupts reads unresolved interrupts of one tenant, oldest first,
	// after the given interrupt id (empty for the first page). A cursor whose
	// interrupt has been closed meanwhile still works; one that never was is
	// ErrNotFound.
	OpenInterrupts(ctx context.Context, tenant, after string, limit int) ([]Interrupt, error)

	// Settle clears the Notify mark of child runs whose news have been taken
	// into account by their parent, if they are still at the given sequence.
	Settle(ctx context.Context, settled []Settled) error

	// Stage writes a stretch of the log of a run that is yet to be created, which
	// nobody sees before: a log too long for one step. Stretches come in order; one
	// that starts at sequence 0 takes the place of whatever was staged for the run.
	// A step with Create and Staged makes the run of them. It fails with ErrExists
	// if the run is there or has expired, and with ErrStale if the stretch does not continue what
	// is staged.
	Stage(ctx context.Context, id ids.Run, at time.Time, events []event.Event) error

	// Unstage removes up to limit events or more of logs staged before a time that
	// no run came of, and returns how many logs it has dealt with.
	Unstage(ctx context.Context, before time.Time, limit int) (int, error)
}

// Run is a run's row: enough to list, filter and own it without its log.
type Run struct {
	ID              ids.Run
	WorkflowID      string
	WorkflowVersion string // empty for a run in the words of v1, which knew none
	Status          string // a run status of spec v2 runs.md §Snapshot
	Seq             int64  // sequence of the last event
	Epoch           int64  // increases whenever the run changes hands
	Instance        string // the instance that executes it now; empty for a parked run
	CreatedAt       time.Time
	StartedAt       time.Time // zero until run.started
	CompletedAt     time.Time // zero until terminal
	WakeAt          time.Time // earliest timer of the run; zero for none
	CurrentNode     string
	Parent          ids.Run // zero for a top-level run
	ParentNode      string
	Compensation    string // how far its effects have been undone: a compensationStatus; empty for none
	Notify          bool   // the parent has not taken the newest status into account
	Tags            []byte // JSON array or nil
	Owner           []byte // JSON owner block
	Workspace       string // of the owner block; empty for none
	Error           []byte // JSON error object or nil

	// Of a fork; empty and zero for a run that is none. A run with the mode replay
	// says again what another has said: nothing of it may reach the outside.
	ForkMode    string  // replay or branch
	ForkSource  ids.Run // the run it was forked from, which may be gone
	ForkSeq     int64   // below it the log is the source's
	ForkOptions []byte  // JSON, or nil: run options in place of the source's
}

// Replay reports whether the run says again what another has said, so that
// nothing of it may reach the outside (spec v2 replay.md §Suppression).
func (r *Run) Replay() bool { return r.ForkMode == "replay" }

// History reports whether the event at seq is nothing to tell anybody outside: the
// run has inherited it, or says it again.
func (r *Run) History(seq int64) bool { return r.Replay() || r.ForkMode != "" && seq < r.ForkSeq }

// Append is one step of one run.
type Append struct {
	Create      bool  // insert the run; Epoch and ExpectedSeq are then ignored
	Epoch       int64 // the epoch the caller read
	ExpectedSeq int64 // the last sequence the caller read

	// Scope, when creating, is the caller's name for what the run is about; empty
	// for none. With Alone the step is refused with an Active error while another
	// run of the tenant has this scope and a status that is not final.
	Scope string
	Alone bool

	// Staged, when creating, says that the log begins with what Stage has written.
	Staged bool

	// Row is the run's row after the step: all of it when creating, else its
	// changing part (Status, Seq, Epoch, Instance, StartedAt, CompletedAt,
	// WakeAt, CurrentNode, Compensation, Notify, Error).
	Row Run

	Events     []event.Event // may be empty: a step may change the row alone
	Opened     []Interrupt
	Closed     []string // interrupt ids (opaque segments) no longer open
	Checkpoint *Checkpoint
	Settled    []Settled // children whose news this step takes into account

	// Queued is what goes out because of this step, and Matcher says what else
	// does: it is asked about the tenant's subscriptions. Nil for nobody.
	Queued  []Queued
	Matcher Matcher

	// Tell names the run's owner if somebody else makes this step (see Replicas).
	Tell string

	// Also holds steps of other runs that belong to the same transaction: the
	// child runs this step starts. If one of them cannot be written, nothing is.
	Also []*Append
}

// Active refuses a step that wants its scope alone: another run of it has a status that is not final.
// Nothing was written.
type Active struct{ Run ids.Run }

// Error implements error.
func (a Active) Error() string { return "store: run " + a.Run.String() + " of this scope is active" }

// Settled names a child run's news by the child's sequence.
type Settled struct {
	Child ids.Run
	Seq   int64
}

// Checkpoint is a fold of the log up to and including Seq. It only saves
// reading: the log stays the truth.
type Checkpoint struct {
	Seq   int64
	State []byte
}

// Loaded is what Load returns.
type Loaded struct {
	Run        Run
	Checkpoint *Checkpoint
	Tail       []event.Event
}

// Interrupt is an open interrupt as an inbox lists it.
type Interrupt struct {
	ID        string // opaque segment
	Run       ids.Run
	NodeID    string
	Kind      string
	Key       string
	Data      []byte // the InterruptPayload
	CreatedAt time.Time
	ExpiresAt time.Time // zero for none
}

// ListQuery selects rows of one tenant.
type ListQuery struct {
	Tenant     string
	Before     string // opaque segment to continue below; empty for the newest
	Limit      int
	WorkflowID string // exact match, empty for any
	Status     string // exact match, empty for any
	Workspace  string // exact match, empty for any
}

// Ownership says which instance executes which run.
type Ownership interface {
	// Register makes instance known and alive. A backend whose database belongs
	// to one process declares every other instance lost.
	Register(ctx context.Context, instance string) error
	// Heartbeat keeps instance alive for ttl by the database's clock. It
	// returns ErrNotFound if the instance has been declared lost.
	Heartbeat(ctx context.Context, instance string, ttl time.Duration) error
	// Claim gives instance up to limit runs that nobody alive executes and that
	// have something to do: runs of lost instances, and runs whose WakeAt is not
	// after now. If there are more than limit, tenants take turns, so that one run of
	// a tenant is among the first however many another one has; of many tenants, those
	// that have had no turn come first in a later claim. Runs of tenants in skip stay
	// where they are. Each claim raises the run's epoch; only runs whose update took
	// effect are returned. An instance that is not registered gets ErrNotFound.
	Claim(ctx context.Context, instance string, now time.Time, limit int, skip ...string) ([]Run, error)
	// NextWake is the earliest WakeAt of runs nobody executes; zero for none.
	NextWake(ctx context.Context) (time.Time, error)
	// Unsettled lists child runs whose news their parents have not taken into
	// account, oldest first.
	Unsettled(ctx context.Context, limit int) ([]Run, error)
	// Deregister forgets instance, so that its runs can be claimed. To forget
	// one that is not there is no failure.
	Deregister(ctx context.Context, instance string) error
}

// Workflow is one immutable version of a workflow definition.
type Workflow struct {
	Tenant     string
	ID         string
	Version    string
	Digest     string // of the canonical definition
	Definition []byte
	CreatedAt  time.Time
	Latest     bool

	// Schedules are what Put keeps of the version's triggers. They are not read back
	// with it: see Schedules.
	Schedules []Schedule
}

// Workflows keeps workflow definitions.
type Workflows interface {
	// Put adds a version and makes it the latest. Putting the same digest again
	// changes nothing but which version is the latest and returns false; another
	// digest under a version that exists is ErrExists. In the same transaction the
	// workflow's schedules become those of w. One that is there with the same version
	// and Spec stays as it is; with another version, it goes on where it is, as w's;
	// with another Spec, it begins at w's NextAt; one that w does not name is removed.
	Put(ctx context.Context, w Workflow) (bool, error)
	// Get reads a version, or the latest one if version is empty.
	Get(ctx context.Context, tenant, id, version string) (Workflow, error)
	// List reads the latest version of each workflow, by id, after the given id.
	List(ctx context.Context, tenant, after string, limit int) ([]Workflow, error)
	// Versions reads every version of one workflow, newest first, without
	// definitions, hidden or not; ErrNotFound if there never was one.
	Versions(ctx context.Context, tenant, id string) ([]Workflow, error)
	// Delete hides a workflow from Get without version and from List. Versions
	// that runs started with stay readable by version, and putting one again
	// brings the workflow back. Its schedules are removed. ErrNotFound if it is hidden
	// or unknown.
	Delete(ctx context.Context, tenant, id string) error
}

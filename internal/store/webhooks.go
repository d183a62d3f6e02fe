package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// ErrFull: the tenant has as many rows of this kind as it may. Nothing was
// written.
var ErrFull = errors.New("store: the tenant has as many as it may")

// Webhooks keeps subscriptions and what could not be delivered to them (spec v2
// webhooks.md). What is due is in Deliveries.
type Webhooks interface {
	// Add fails with ErrExists if the tenant has a subscription of this id, and
	// with ErrFull if it has most of them already.
	Add(ctx context.Context, s Subscription, most int) error
	// Get reads a subscription with its secrets, or fails with ErrNotFound.
	Get(ctx context.Context, tenant, id string) (Subscription, error)
	// List reads a tenant's subscriptions in order of their ids, after one of them
	// (empty for the first page). Secrets are left out.
	List(ctx context.Context, tenant, after string, limit int) ([]Subscription, error)
	// Remove forgets a subscription, what is due for it and its dead letters. It
	// fails with ErrNotFound if it is not there. Once it returns, a claim that
	// was taken before can be settled no more.
	Remove(ctx context.Context, tenant, id string) error

	// Rotate makes secret the subscription's secret, and what was it until now the
	// previous one, up to and without until.
	Rotate(ctx context.Context, tenant, id, secret string, at, until time.Time) error
	// Enable makes a subscription active whatever it was, and what is due for it
	// due at once.
	Enable(ctx context.Context, tenant, id string, now time.Time) error

	// DeadLetters reads the dead letters of a subscription, the newest first,
	// behind the one named (zero for the first page), whose end is after now.
	DeadLetters(ctx context.Context, q DeadLetterQuery) ([]DeadLetter, error)
	// PurgeDeadLetters removes up to limit dead letters whose end is not after
	// now, the earliest first, and says how many there were.
	PurgeDeadLetters(ctx context.Context, now time.Time, limit int) (int, error)
}

// Subscription is a URL that wants to hear of events.
type Subscription struct {
	Tenant     string
	ID         string // opaque segment
	URL        string
	Events     []string // types; never empty
	Tags       []string // of the runs wanted; none means every run
	Algorithms []string // signature schemes, as the subscriber asked for them; none if it did not

	// Secret signs. Previous is the one before, which counts up to PreviousUntil
	// and without it.
	Secret        string
	Previous      string
	RotatedAt     time.Time // zero if never
	PreviousUntil time.Time

	DisabledAt time.Time // zero while active
	Reason     string    // why it was disabled; for people
	CreatedAt  time.Time

	// Major is the protocol's major under which it was registered, whose form its
	// deliveries keep; 0 is this one.
	Major int
}

// Check refuses a subscription that could not be found or delivered to. A
// backend calls it before it writes.
func (s *Subscription) Check() error {
	switch {
	case !ids.ValidTenant(s.Tenant) || !ids.ValidOpaque(s.ID):
		return fmt.Errorf("subscription %s/%s: %w", s.Tenant, s.ID, ids.ErrGrammar)
	case s.URL == "" || len(s.Events) == 0 || s.Secret == "":
		return errors.New("a subscription needs a URL, events and a secret")
	case s.Major < 0:
		return errors.New("a subscription of no major")
	}
	return nil
}

// DeadLetter names a delivery that was given up. It holds nothing of what was
// sent or answered (spec v2 webhooks.md §Dead letters).
type DeadLetter struct {
	Tenant       string
	Subscription string // opaque segment
	ID           string // opaque segment of the delivery
	Run          ids.Run
	EventID      string
	EventType    string
	Attempts     int
	Reason       string // retries_exhausted or payload_unprojectable
	LastStatus   int    // the last HTTP status; 0 if no answer came
	At           time.Time
	ExpiresAt    time.Time
}

// DeadLetterQuery selects dead letters of one subscription.
type DeadLetterQuery struct {
	Tenant       string
	Subscription string
	Now          time.Time
	BeforeAt     time.Time // with BeforeID the dead letter to go on behind
	BeforeID     string
	Limit        int
}

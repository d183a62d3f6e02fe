package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// Deliveries is the queue of what is to be sent out because of events. An entry
// is a stretch of one run's log for one target, not a copy of it: however many
// events a run has, a target has one entry for it, which is why they leave in
// their order. Entries are written by Append, within the step that they follow
// from.
//
// A taken entry belongs to its taker until the time given; then it is due again
// by itself. A claim is settled with a compare-and-set, so that of two takers the
// late one changes nothing.
type Deliveries interface {
	// Due lists the targets that have something due, the earliest first, leaving
	// out tenants in skip.
	Due(ctx context.Context, now time.Time, skip []string, limit int) ([]Target, error)
	// NextDue is the earliest time at which a target has something due; zero for
	// none.
	NextDue(ctx context.Context) (time.Time, error)
	// Take gives q.Instance up to q.Quotas[i].Limit due entries of each target that is
	// due, the earliest due first.
	Take(ctx context.Context, q TakeQuery) ([]Delivery, error)
	// Settle says what became of a claim. It fails with ErrStale if the entry is
	// not in that claim any more; nothing is written then.
	Settle(ctx context.Context, s Settlement) error
	// Recover makes everything due at now that instances which are lost, or not
	// known, have taken. It returns how many entries there were.
	Recover(ctx context.Context, instance string, now time.Time) (int, error)
}

// Target is where entries go: a subscription, or a URL of its own.
type Target struct {
	Tenant   string
	ID       string // a subscription's opaque segment, or a name of the caller's for a URL
	URL      string // empty for a subscription
	DueAt    time.Time
	Failures int // attempts in a row that failed, whichever entry they were for
}

// Queued is an entry as a step adds it. Where the target has an entry of this
// run already, that one grows to Last.
type Queued struct {
	Target string
	URL    string // makes the target if it is not there; empty for a subscription
	First  int64  // sequences of the run's events
	Last   int64
	At     time.Time // due
}

// Check refuses an entry that says nothing.
func (q *Queued) Check() error {
	if q.Target == "" || q.First < 0 || q.Last < q.First || q.At.IsZero() {
		return fmt.Errorf("an entry for target %q from %d to %d", q.Target, q.First, q.Last)
	}
	return nil
}

// Matcher says which subscriptions want the events of a step. A backend asks it
// within the transaction, with the subscriptions of the run's tenant as they are
// there, and may ask more than once. It is not asked where there are none.
type Matcher interface {
	Match(subs []Subscription) []Queued
}

// Quota is how many entries of a target may be taken.
type Quota struct {
	Tenant string
	Target string
	Limit  int
}

// TakeQuery says who takes what until when.
type TakeQuery struct {
	Instance string
	Now      time.Time
	Until    time.Time
	Quotas   []Quota
}

// Delivery is an entry that has been taken.
type Delivery struct {
	Tenant    string
	Target    string
	URL       string // of the target, if it is no subscription
	Run       ids.Run
	Next      int64 // first sequence not settled yet
	Last      int64
	Attempts  int // for Next so far
	CreatedAt time.Time
	Claim     int64 // names this taking

	Failures     int       // of the target
	FailingSince time.Time // when the first of them was; zero for none
}

// Settlement says what became of a claim.
type Settlement struct {
	Delivery // Tenant, Target, Run, Claim, and Last as it was taken

	// Next and Attempts are where the entry stands now. Beyond Last it is done: it
	// goes, unless it has grown meanwhile; then it is due at Now, at Next.
	Next     int64
	Attempts int
	DueAt    time.Time
	Hold     bool // it stays in this claim until DueAt

	Letters []DeadLetter // for deliveries that were given up

	// Of the target: how many attempts in a row have failed, since when, and the
	// time before which nothing of it is due. A Disable makes the subscription
	// disabled.
	Failures     int
	FailingSince time.Time
	ResumeAt     time.Time
	Disable      string // the reason; empty to leave it as it is

	Now time.Time
}

// Check refuses a settlement that names no claim.
func (s *Settlement) Check() error {
	if s.Claim == 0 || s.Now.IsZero() || s.Next <= s.Last && s.DueAt.IsZero() {
		return errors.New("a settlement needs a claim, the time, and when its entry is due")
	}
	return nil
}

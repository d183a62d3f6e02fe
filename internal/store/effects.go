package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// States of an effect, and of one attempt at it (spec v2 idempotency.md §Witness).
const (
	EffectClaimed   = "claimed"   // somebody may be performing it
	EffectCompleted = "completed" // it has happened, and its outcome is known
	EffectReleased  = "released"  // it is known not to have happened
	EffectEscaped   = "escaped"   // nobody knows whether it has happened
)

// Effects is the ledger of what runs do to the world outside (spec v2
// idempotency.md §Layer 2). A record is found by its tenant and the identity of
// the effect; every attempt at it is listed with the run that made it.
type Effects interface {
	// Claim lets c.Instance perform the effect c names. It returns the effect as it
	// is afterwards, and whether it is c.Instance's to perform:
	//
	//   - There is none, or it is released: it is claimed, and an attempt is listed.
	//   - It is completed: its outcome is returned. An attempt of this outcome is
	//     listed unless the last one was by the same run, node and attempt number.
	//   - It is in doubt, which is to say escaped, or claimed by nobody alive or by
	//     c.Instance itself: it becomes escaped, and so does the attempt that claimed
	//     it. With c.Again it is then claimed, and another attempt is listed.
	//   - Another living instance holds it: it is returned as it is.
	//
	// Of any number of claims made at once by different instances one is granted. An
	// instance keeps its own claims apart by itself. One that is not registered gets
	// ErrNotFound.
	Claim(ctx context.Context, c EffectClaim) (Effect, bool, error)

	// Finish says what became of a claimed effect: State is completed, with an
	// outcome that may be empty, released or escaped. It fails with ErrStale if
	// e.Instance does not hold the effect in e.Claims.
	Finish(ctx context.Context, e Effect) error

	// Attempts reads the attempts a run has made, oldest first, behind the given
	// number.
	Attempts(ctx context.Context, run ids.Run, after int64, limit int) ([]EffectAttempt, error)

	// Purge removes up to limit effects and as many attempts whose end is not after
	// now, the earliest first, and says how many there were. What the last claim of
	// was made by a run that is not over stays, and so do the attempts of such a run.
	Purge(ctx context.Context, now time.Time, limit int) (int, error)
}

// Effect is one effect as the ledger knows it.
type Effect struct {
	Tenant string
	ID     string // opaque segment; the same for every attempt, whoever makes it

	State    string
	Instance string // who holds the claim; empty if nobody does
	Claims   int64  // how often it was claimed
	At       time.Time
	Outcome  []byte // of a completed effect; JSON, or empty

	// Of the last claim, granted or answered with the outcome.
	Run       ids.Run
	NodeID    string
	Attempt   int
	ExpiresAt time.Time
}

// EffectClaim is what somebody who wants to perform an effect says of it.
type EffectClaim struct {
	Tenant       string
	ID           string
	Run          ids.Run
	NodeID       string
	Attempt      int    // of the node
	Keying       string // business-identity or activity-recipe
	ProviderKey  string // what the other side is shown; fit for everybody who may see the run
	InvocationID string // optional
	Instance     string
	At           time.Time
	ExpiresAt    time.Time
	Again        bool // take it even if it may have happened already
}

// EffectAttempt is one attempt of a run at an effect.
type EffectAttempt struct {
	N            int64 // counts the attempts of a run, from 1
	EffectID     string
	NodeID       string
	Attempt      int
	Keying       string
	ProviderKey  string
	InvocationID string
	State        string
	At           time.Time // when it came into this state
}

// maxEffectText bounds what a claim says in words, in bytes.
const maxEffectText = 4096

// Check refuses a claim that could not be found again. A backend calls it before
// it writes.
func (c *EffectClaim) Check() error {
	switch {
	case !ids.ValidTenant(c.Tenant) || !ids.ValidOpaque(c.ID):
		return fmt.Errorf("effect %q of tenant %q: %w", c.ID, c.Tenant, ids.ErrGrammar)
	case c.Run.Tenant != c.Tenant || !ids.ValidOpaque(c.Run.Opaque):
		return fmt.Errorf("run %q of an effect of tenant %q: %w", c.Run, c.Tenant, ids.ErrGrammar)
	case c.NodeID == "" || c.Attempt < 0:
		return errors.New("a claim names the node and its attempt")
	case len(c.NodeID)+len(c.ProviderKey)+len(c.InvocationID) > maxEffectText:
		return ErrTooLarge
	case c.Keying != "business-identity" && c.Keying != "activity-recipe":
		return fmt.Errorf("there is no keying %q", c.Keying)
	case c.Instance == "":
		return errors.New("a claim needs a holder")
	case c.At.IsZero() || c.ExpiresAt.IsZero():
		return errors.New("a claim needs a time and an end")
	}
	return nil
}

// Check refuses an end of an effect that is none.
func (e *Effect) Check() error {
	switch {
	case e.State != EffectCompleted && e.State != EffectReleased && e.State != EffectEscaped:
		return fmt.Errorf("an effect does not end as %q", e.State)
	case e.State != EffectCompleted && len(e.Outcome) > 0:
		return errors.New("only a completed effect has an outcome")
	case len(e.Outcome) > MaxValue:
		return ErrTooLarge
	case e.At.IsZero() || e.ExpiresAt.IsZero():
		return errors.New("the end of an effect needs a time, and its record one too")
	}
	return nil
}

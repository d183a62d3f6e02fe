package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/fermata-run/fermata/internal/ids"
)

// Idempotency remembers what became of requests that carried an Idempotency-Key
// (spec v2 idempotency.md §Layer 1). A record is found by its tenant, endpoint
// and key.
type Idempotency interface {
	// Claim lets r.Instance have the request r to itself. It returns the record
	// as it is afterwards, and whether it is r.Instance's to work on:
	//
	//   - No record is there: r is written, as attempt 1.
	//   - There is one of the same digest, without an outcome, that nobody alive
	//     holds, or r.Instance itself: its holder becomes r.Instance, its attempt
	//     the next one, its end r.ExpiresAt. Run stays what it was.
	//   - Any other record is returned as it is.
	//
	// Of any number of claims made at once by different instances one is granted.
	// An instance keeps its own requests apart by itself. One that is not
	// registered gets ErrNotFound.
	Claim(ctx context.Context, r Record) (Record, bool, error)

	// Finish gives a claimed record its outcome and its end. It fails with
	// ErrStale, as Release and Forget do, if r.Instance does not hold the record
	// in r.Attempt.
	Finish(ctx context.Context, r Record) error
	// Release lets go of a claimed record; its next claim is granted.
	Release(ctx context.Context, r Record) error
	// Forget removes a claimed record.
	Forget(ctx context.Context, r Record) error

	// Purge removes up to limit records whose end is not after now, the earliest
	// first, and says how many there were.
	Purge(ctx context.Context, now time.Time, limit int) (int, error)
}

// Record is a request that carried an Idempotency-Key.
type Record struct {
	Tenant   string
	Endpoint string // the operation, with the ids in its path
	Key      []byte // SHA-256 of what the caller sent; itself it is not kept
	Digest   []byte // SHA-256 of the request

	Run       string // opaque segment for a run the request may create
	Instance  string // who holds the claim; empty for nobody
	Attempt   int64  // how often it was claimed
	CreatedAt time.Time
	ExpiresAt time.Time
	Outcome   *Outcome // nil until there is one
}

// Outcome is an answer that is given again, byte by byte.
type Outcome struct {
	Status int
	Header []byte // JSON object of arrays of strings
	Body   []byte
}

// maxEndpoint bounds an endpoint's name, in bytes.
const maxEndpoint = 1024

// Check refuses a record that could not be found again. A backend calls it
// before it writes.
func (r *Record) Check() error {
	switch {
	case !ids.ValidTenant(r.Tenant):
		return fmt.Errorf("tenant %q: %w", r.Tenant, ids.ErrGrammar)
	case r.Endpoint == "" || len(r.Endpoint) > maxEndpoint:
		return fmt.Errorf("an endpoint's name has 1 to %d bytes", maxEndpoint)
	case len(r.Key) != sha256.Size || len(r.Digest) != sha256.Size:
		return fmt.Errorf("the key and the digest of a record have %d bytes", sha256.Size)
	case r.Instance == "":
		return fmt.Errorf("a claim needs a holder")
	case r.ExpiresAt.IsZero():
		return fmt.Errorf("a record needs an end")
	case r.Outcome != nil && len(r.Outcome.Header)+len(r.Outcome.Body) > MaxValue:
		return ErrTooLarge
	}
	return nil
}

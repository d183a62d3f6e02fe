package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATEs that something follows from.
const (
	badEncoding   = "22021" // a name that no row can have
	notUnique     = "23505"
	readOnly      = "25006"
	serialization = "40001"
	deadlock      = "40P01"
	undefined     = "42P01"
	changedPlan   = "0A000" // a prepared plan that a migration has made void
	noStatement   = "26000"
)

// fault makes of what the driver says what the contract says. What is neither a
// refusal nor a defect means that the database cannot be had now.
func fault(ctx context.Context, err error) error {
	if err == nil || sentinel(err) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var p *pgconn.PgError
	if errors.As(err, &p) && !unavailable(p.Code) {
		if p.Code == badEncoding {
			return fmt.Errorf("%w: %w", store.ErrNotFound, err)
		}
		return err
	}
	if p == nil && !broken(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

func sentinel(err error) bool {
	for _, s := range []error{
		store.ErrNotFound, store.ErrStale, store.ErrExists, store.ErrClosed, store.ErrFull, store.ErrTooLarge, store.ErrUnavailable, store.ErrUsed, store.ErrInUse,
		errAgain, errSplit, ErrPartitions,
	} {
		if errors.Is(err, s) {
			return true
		}
	}
	return errors.As(err, &store.Active{})
}

// unavailable says whether a SQLSTATE is about the state of the server rather than
// about what it was asked: no connection, no room, no time, no right to write.
func unavailable(code string) bool {
	for _, class := range []string{"08", "53", "57", "58", "40", "55"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return code == readOnly || code == changedPlan || code == noStatement
}

// contested says that the transaction was given up because of another one, or of a
// plan that is void: nothing of it happened, and it may go well the next time.
func contested(err error) bool {
	var p *pgconn.PgError
	if !errors.As(err, &p) {
		return false
	}
	switch p.Code {
	case serialization, deadlock, changedPlan, noStatement:
		return true
	}
	return false
}

// broken says that the connection is gone, or never was there. If a commit was
// under way, nobody knows what became of it.
func broken(err error) bool {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		// The server ends the connection, or says that it will.
		return strings.HasPrefix(p.Code, "08") || strings.HasPrefix(p.Code, "57P")
	}
	return err != nil && !sentinel(err) && !errors.Is(err, pgx.ErrNoRows) && !isScan(err)
}

// isScan tells a row that could not be read from a connection that could not.
func isScan(err error) bool {
	var s pgx.ScanArgError
	var d damaged
	return errors.As(err, &s) || errors.As(err, &d)
}

// damaged marks what this package says of data that it cannot make sense of: it has
// nothing to do with the database being there.
type damaged struct{ error }

// Unwrap gives errors.Is and errors.As the cause.
func (d damaged) Unwrap() error { return d.error }

func damage(err error) error {
	if err == nil {
		return nil
	}
	return damaged{err}
}

// duplicate says that a row with this key is there.
func duplicate(err error) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && p.Code == notUnique
}

package postgres

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A network may swallow what is sent without a word, and a server may stand still: then
// nothing fails, and nothing comes. So everything that is asked has a time of its own,
// whatever its caller is ready to wait; when that is over, all connections at rest are
// let go of, for they may lead into the same hole.

// defaultTimeout is for one try of a transaction or of a read.
const defaultTimeout = 20 * time.Second

// timed asks with a context that ends in time in place of the caller's.
type timed struct {
	q   querier
	ctx context.Context
}

// Exec implements querier.
func (t timed) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.q.Exec(t.ctx, sql, args...)
}

// Query implements querier.
func (t timed) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.q.Query(t.ctx, sql, args...)
}

// QueryRow implements querier.
func (t timed) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	return t.q.QueryRow(t.ctx, sql, args...)
}

// SendBatch implements querier.
func (t timed) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.q.SendBatch(t.ctx, b)
}

// late says whether what has failed took too long, while its caller still waits; then
// no connection at rest is trusted any more.
func (s *Store) late(own, callers context.Context, err error) bool {
	if err == nil || callers.Err() != nil || !errors.Is(own.Err(), context.DeadlineExceeded) {
		return false
	}
	s.pool.Reset()
	return true
}

// dialer notices that nobody is there any more on a connection nothing is asked on.
var dialer = net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}

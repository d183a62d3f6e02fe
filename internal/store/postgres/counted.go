package postgres

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// counted counts the statements a store executes.
type counted struct {
	n atomic.Int64

	mu   sync.Mutex
	seen map[string]int64 // by their beginning; nil unless somebody wants to know
}

// Statements is how many statements the store has executed.
func (s *Store) Statements() int64 { return s.counted.n.Load() }

func (c *counted) count(sql string) {
	c.n.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen != nil {
		c.seen[strings.Join(strings.Fields(sql), " ")]++
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (c *counted) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	c.count(q.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (c *counted) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (c *counted) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (c *counted) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	c.count(q.SQL)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (c *counted) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

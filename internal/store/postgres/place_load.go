package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A second row of the schema's table says that somebody has begun to load the
// database. Hosts do not start while it is there. It goes with the transaction that
// brings everything, so that a load that is killed leaves nothing else.
const (
	beginLoad = `INSERT INTO fermata_schema (id, version, needs) VALUES (2, 0, 0) ON CONFLICT DO NOTHING`
	lockLoad  = `SELECT id FROM fermata_schema WHERE id = 2 FOR UPDATE`
	endLoad   = `DELETE FROM fermata_schema WHERE id = 2`
	isLoading = `SELECT id FROM fermata_schema WHERE id = 2`

	makeHashes = `INSERT INTO key_hashes (hash, tenant, id) SELECT hash, tenant, id FROM keys
		UNION ALL SELECT old_hash, tenant, id FROM keys WHERE old_hash IS NOT NULL`
	makeHookTurns = `INSERT INTO webhook_turns (tenant, turn) SELECT tenant, 1 FROM webhooks GROUP BY tenant`
	makeCounts    = `INSERT INTO effect_counts (tenant, run_id, n) SELECT tenant, run_id, max(n) FROM (
		SELECT tenant, run_id, n FROM effect_attempts UNION ALL SELECT tenant, run_id, n FROM effects) a GROUP BY tenant, run_id`
)

// Bounds of what is sent at once.
const (
	loadRows  = 2000
	loadBytes = 4 << 20
)

// unfinished refuses a database that somebody has begun to load.
func unfinished(ctx context.Context, q querier) error {
	var id int
	there, err := one(ctx, q, isLoading, nil, &id)
	if code(err) == undefined {
		return nil
	}
	if err == nil && there {
		err = damage(errors.New("a restore or a copy into this database is under way, or has not come to its end: wait for it, run it again, or begin with a new database"))
	}
	return err
}

// Load implements store.Place, in one transaction.
func (d database) Load(ctx context.Context, fill func(put store.Visit) error, check func(read func(store.Visit) error) error) error {
	begin := func(p *pgxpool.Pool) error {
		is, err := migrateUp(ctx, p, 0)
		if err == nil && is.Version > is.Newest {
			err = fmt.Errorf("%w: the database has schema version %d and this program knows up to %d", store.ErrUsed, is.Version, is.Newest)
		}
		if err == nil {
			err = unused(ctx, p)
		}
		if err == nil {
			_, err = p.Exec(ctx, beginLoad)
		}
		return err
	}
	if err := withPool(ctx, d.address, begin); err != nil {
		return wrap("write the database", fault(ctx, err))
	}
	err := d.with(ctx, func(c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return load(ctx, tx, fill, check) })
	})
	if err != nil {
		// Nothing has come of it, and everybody may know. On a connection of its own: the
		// other one may be gone. If the commit was what was lost, there is nothing to remove.
		end, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		err = errors.Join(err, d.with(end, func(c *pgx.Conn) error {
			_, err := c.Exec(end, endLoad)
			return err
		}))
	}
	return wrap("write the database", err)
}

// unused says that there is something in a database, or somebody.
func unused(ctx context.Context, q querier) error {
	for _, t := range store.Tables {
		var x int
		there, err := one(ctx, q, `SELECT 1 FROM `+t.Name+` LIMIT 1`, nil, &x)
		if err == nil && there {
			err = store.ErrUsed
		}
		if err != nil {
			return err
		}
	}
	return deserted(ctx, q)
}

// deserted fails if a host is registered, whether it beats or not.
func deserted(ctx context.Context, q querier) error {
	var id string
	there, err := one(ctx, q, anyHost, nil, &id)
	if err == nil && there {
		err = fmt.Errorf("%w: %s", store.ErrInUse, id)
	}
	return err
}

func load(ctx context.Context, tx pgx.Tx, fill func(put store.Visit) error, check func(read func(store.Visit) error) error) error {
	// Of two who load at once, one waits here until the other one is done.
	var id int
	there, err := one(ctx, tx, lockLoad, nil, &id)
	if err == nil && !there {
		err = fmt.Errorf("%w: somebody else was quicker", store.ErrUsed)
	}
	if err != nil {
		return err
	}
	in := &loading{ctx: ctx, tx: tx}
	if err := fill(in.put); err != nil {
		return damage(err)
	}
	if err := in.flush(); err != nil {
		return err
	}
	for _, sql := range []string{makeHashes, makeHookTurns, makeCounts} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	// It sees what others have committed meanwhile: a host that was about to start when
	// this began is found here.
	if err := check(func(visit store.Visit) error { return readTables(ctx, tx, visit) }); err != nil {
		return damage(err)
	}
	if err := deserted(ctx, tx); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, endLoad)
	return err
}

// loading collects rows of one table and sends them together.
type loading struct {
	ctx   context.Context
	tx    pgx.Tx
	t     *store.Table
	rows  [][]any
	bytes int
}

func (l *loading) put(t *store.Table, row []store.Value) error {
	if err := t.Check(row); err != nil {
		return err
	}
	if t != l.t || len(l.rows) == loadRows || l.bytes >= loadBytes {
		if err := l.flush(); err != nil {
			return err
		}
		l.t = t
	}
	out := make([]any, len(row), len(row)+1)
	for i, v := range row {
		out[i] = given(t.Columns[i].Kind, v)
		l.bytes += len(v.Bytes)
	}
	if t.Name == "events" {
		out = append(out, int64(0)) // no step has this mark
	}
	l.rows = append(l.rows, out)
	return nil
}

// given is a value as the driver takes it.
func given(k store.Kind, v store.Value) any {
	switch {
	case v.Null:
		return nil
	case k == store.Bool:
		return v.Int != 0
	case k == store.Int:
		return v.Int
	case k == store.Text:
		return string(v.Bytes)
	}
	return full(slices.Clone(v.Bytes))
}

func (l *loading) flush() error {
	if len(l.rows) == 0 {
		return nil
	}
	names := make([]string, 0, len(l.t.Columns)+1)
	for i := range l.t.Columns {
		names = append(names, l.t.Columns[i].Name)
	}
	if l.t.Name == "events" {
		names = append(names, "mark")
	}
	_, err := l.tx.CopyFrom(l.ctx, pgx.Identifier{l.t.Name}, names, pgx.CopyFromRows(l.rows))
	if err != nil {
		return fmt.Errorf("table %s: %w", l.t.Name, err)
	}
	clear(l.rows)
	l.rows, l.bytes = l.rows[:0], 0
	return nil
}

package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// database implements store.Place for the database of an address.
type database struct{ address string }

// At is the place of a database. Its schema is made by Load where it is not there.
func At(address string) store.Place { return database{address} }

// leftOut lists tables and columns that are not in store.Tables, with the reason.
var leftOut = map[string]string{
	"checkpoints":      "a cache of the log",
	"fermata_schema":   "of the database, and not of what is in it",
	"instances":        "of processes: nobody lives in a store that was loaded",
	"told":             "of processes",
	"scope_turns":      "rows to take turns by: they are made when they are wanted",
	"workflow_turns":   "rows to take turns by",
	"credential_turns": "rows to take turns by",
	"webhook_turns":    "made from webhooks",
	"key_hashes":       "made from keys",
	"effect_counts":    "made from effects and effect_attempts",
	"events.mark":      "of a writer that waits for the answer to its commit",
}

const (
	livingHosts = `SELECT id FROM instances WHERE lease_until > now() ORDER BY id`
	anyHost     = `SELECT id FROM instances ORDER BY id LIMIT 1`
)

// Backend implements store.Place.
func (d database) Backend() string { return "postgres" }

// Dump implements store.Place: one transaction that sees one moment and writes nothing.
func (d database) Dump(ctx context.Context, alone bool, visit store.Visit) error {
	return wrap("read the database", d.with(ctx, func(c *pgx.Conn) error {
		if alone {
			if err := nobody(ctx, c); err != nil {
				return err
			}
		}
		err := pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if err := current(ctx, tx); err != nil {
				return err
			}
			return readTables(ctx, tx, visit)
		})
		if err == nil && alone { // one may have been started meanwhile
			err = nobody(ctx, c)
		}
		return err
	}))
}

// with connects, once: whoever moves a store is told what is wrong.
func (d database) with(ctx context.Context, fn func(c *pgx.Conn) error) (err error) {
	cfg, err := parse(d.address, Options{Connections: 1})
	if err != nil {
		return err
	}
	unprepared(cfg.ConnConfig)
	c, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return fault(ctx, err)
	}
	defer func() {
		end, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		c.Close(end) //nolint:errcheck // what counts is committed, or is not
	}()
	return fault(ctx, fn(c))
}

// nobody fails if a host lives on a database.
func nobody(ctx context.Context, q querier) error {
	ids, err := list(ctx, q, pgx.RowTo[string], livingHosts)
	if code(err) == undefined {
		return nil
	}
	if err == nil && len(ids) > 0 {
		err = fmt.Errorf("%w: %s", store.ErrInUse, strings.Join(ids, ", "))
	}
	return err
}

// current says that the schema is not the one of this program.
func current(ctx context.Context, q querier) error {
	is, err := schemaOf(ctx, q)
	switch {
	case err != nil:
		return err
	case is.Version == 0:
		return fmt.Errorf("%w: there is no host's data", store.ErrNotFound)
	case is.Version > is.Newest:
		return damage(fmt.Errorf("the database has schema version %d and this program knows up to %d: use a newer program", is.Version, is.Newest))
	case is.Version < is.Newest:
		return damage(fmt.Errorf("the database has schema version %d and this program needs %d: use the program of its hosts, or run migrate up", is.Version, is.Newest))
	}
	return unfinished(ctx, q)
}

func columns(t *store.Table, n int) string {
	names := make([]string, n)
	for i := range n {
		names[i] = t.Columns[i].Name
	}
	return strings.Join(names, ", ")
}

// readTables visits all rows within a transaction.
func readTables(ctx context.Context, q querier, visit store.Visit) error {
	for _, t := range store.Tables {
		rows, err := q.Query(ctx, `SELECT `+columns(t, len(t.Columns))+` FROM `+t.Name+` ORDER BY `+columns(t, t.Key))
		if err == nil {
			err = readTable(rows, t, visit)
		}
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

func readTable(rows pgx.Rows, t *store.Table, visit store.Visit) error {
	defer rows.Close()
	out, into := make([]store.Value, len(t.Columns)), make([]any, len(t.Columns))
	for i := range out {
		into[i] = readInto(t.Columns[i].Kind, &out[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := visit(t, out); err != nil {
			return damage(err)
		}
	}
	return rows.Err()
}

// readInto reads a value of a kind as it travels. Each kind has a type of its own: of one
// that could read them all, the driver would choose the wrong side.
func readInto(k store.Kind, v *store.Value) any {
	switch k {
	case store.Int:
		return (*wholeCell)(v)
	case store.Bool:
		return (*boolCell)(v)
	case store.Text:
		return (*textCell)(v)
	}
	return (*bytesCell)(v)
}

type (
	wholeCell store.Value
	boolCell  store.Value
	textCell  store.Value
	bytesCell store.Value
)

// ScanInt64 implements pgtype.Int64Scanner.
func (c *wholeCell) ScanInt64(v pgtype.Int8) error {
	*c = wholeCell{Null: !v.Valid, Int: v.Int64}
	return nil
}

// ScanBool implements pgtype.BoolScanner.
func (c *boolCell) ScanBool(v pgtype.Bool) error {
	*c = boolCell{Null: !v.Valid}
	if v.Bool {
		c.Int = 1
	}
	return nil
}

// ScanText implements pgtype.TextScanner.
func (c *textCell) ScanText(v pgtype.Text) error {
	*c = textCell{Null: !v.Valid, Bytes: []byte(v.String)}
	return nil
}

// ScanBytes implements pgtype.BytesScanner.
func (c *bytesCell) ScanBytes(v []byte) error {
	*c = bytesCell{Null: v == nil, Bytes: v}
	return nil
}

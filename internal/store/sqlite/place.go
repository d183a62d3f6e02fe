package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/ncruces/go-sqlite3"
)

// folder implements store.Place for a database file.
type folder struct{ path string }

// At is the place of a database file, which need not be there.
func At(path string) store.Place { return folder{path} }

// leftOut lists what is not in store.Tables, with the reason.
var leftOut = map[string]string{
	"checkpoints": "a cache of the log",
}

// Backend implements store.Place.
func (p folder) Backend() string { return "sqlite" }

// Dump implements store.Place. It reads on a connection of its own in one
// transaction, beside the host: the folder's lock is the host's, and taken only if
// the reader is to be alone. While it reads, the write-ahead log cannot be reused.
func (p folder) Dump(ctx context.Context, alone bool, visit store.Visit) error {
	return wrap("read "+p.path, p.dump(ctx, alone, visit))
}

func (p folder) dump(ctx context.Context, alone bool, visit store.Visit) (err error) {
	path, err := filepath.Abs(p.path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no host's data", store.ErrNotFound)
	} else if err != nil {
		return err
	}
	if alone {
		unlock, err := lockFolder(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	c, err := openConn(path, "", writerCache)
	if err != nil {
		return err
	}
	defer c.close()
	c.db.SetInterrupt(ctx)
	if err := c.db.Exec(`PRAGMA query_only = ON; BEGIN`); err != nil {
		return err
	}
	if err := current(c); err != nil {
		return err
	}
	return interrupted(ctx, readTables(c, visit))
}

// current says that the schema is not the one of this program.
func current(c *conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	var have int64
	if _, err := c.prep(`PRAGMA user_version`).one(func(r *row) { have = r.int() }); err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	switch {
	case have > int64(len(files)):
		return fmt.Errorf("the database has schema version %d and this program knows up to %d: use a newer program", have, len(files))
	case have < int64(len(files)):
		return fmt.Errorf("the database has schema version %d and this program needs %d: use the program of its host, or start a host of this version on it once",
			have, len(files))
	}
	return nil
}

// lockFolder takes the lock of the folder of a database.
func lockFolder(path string) (unlock func() error, err error) {
	unlock, err = takeLock(filepath.Join(filepath.Dir(path), lockFile))
	if errors.Is(err, errInUse) {
		err = store.ErrInUse
	}
	return unlock, err
}

func interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func columns(t *store.Table, n int) string {
	names := make([]string, n)
	for i := range n {
		names[i] = t.Columns[i].Name
	}
	return strings.Join(names, ", ")
}

// readTables visits all rows within the transaction of a connection.
func readTables(c *conn, visit store.Visit) error {
	for _, t := range store.Tables {
		out := make([]store.Value, len(t.Columns))
		sql := `SELECT ` + columns(t, len(t.Columns)) + ` FROM ` + t.Name + ` ORDER BY ` + columns(t, t.Key)
		err := c.prep(sql).each(func(r *row) (bool, error) {
			for i := range out {
				out[i] = r.value(&t.Columns[i])
			}
			return true, visit(t, out)
		})
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

// value reads a column as it travels. A number that later migrations have added is
// NULL in older rows, and means 0.
func (r *row) value(c *store.Column) (v store.Value) {
	i := r.col()
	null := r.q.s.ColumnType(i) == sqlite3.NULL
	switch {
	case null && c.Null:
		v.Null = true
	case c.Kind.Whole():
		v.Int = r.q.s.ColumnInt64(i)
	default:
		v.Bytes = r.q.s.ColumnRawBlob(i)
	}
	return v
}

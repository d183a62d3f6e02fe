package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/fermata-run/fermata/internal/store"
)

const (
	// unfinished is what a database is called, behind its name, until all is in it. No
	// host starts beside one.
	unfinished = ".unfinished"
	loadCache  = 64 << 10 // KiB: indexes are written to in many places
)

// Load implements store.Place. The database gets its name once it is whole: one that
// was interrupted is found by the next host or restore under another name.
func (p folder) Load(ctx context.Context, fill func(put store.Visit) error, check func(read func(store.Visit) error) error) error {
	return wrap("write "+p.path, p.load(ctx, fill, check))
}

func (p folder) load(ctx context.Context, fill func(put store.Visit) error, check func(read func(store.Visit) error) error) (err error) {
	path, err := filepath.Abs(p.path)
	if err != nil {
		return err
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	unlock, err := lockFolder(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := unused(path); err != nil {
		return err
	}
	made := path + unfinished
	if err := discard(made); err != nil {
		return err
	}
	if err := build(ctx, made, fill, check); err != nil {
		return errors.Join(interrupted(ctx, err), discard(made))
	}
	// What is there is an empty database, closed in order.
	return errors.Join(discard(path), rename(made, path))
}

// discard removes a database and what belongs to it.
func discard(path string) error {
	var errs []error
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// rename gives a file that is whole its name, for good.
func rename(made, path string) error {
	f, err := os.OpenFile(made, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil || runtime.GOOS == "windows" {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// unused says that there is something in a database, if there is.
func unused(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := openConn(path, "", readerCache)
	if err != nil {
		return err
	}
	defer c.close()
	if err := current(c); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUsed, err)
	}
	for _, t := range store.Tables {
		there, err := c.prep(`SELECT 1 FROM ` + t.Name + ` LIMIT 1`).one(func(*row) {})
		if err != nil {
			return err
		}
		if there {
			return store.ErrUsed
		}
	}
	return nil
}

// build makes a database. Nothing of it need survive before it is whole, so that it
// is neither journalled nor synced on the way.
func build(ctx context.Context, path string, fill func(put store.Visit) error, check func(read func(store.Visit) error) error) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	c, err := openConn(path, "", loadCache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := migrate(c); err != nil {
		return err
	}
	if err := c.db.Exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN`); err != nil {
		return err
	}
	c.db.SetInterrupt(ctx)
	put, err := putter(c)
	if err == nil {
		err = fill(put)
	}
	if err == nil {
		err = check(func(visit store.Visit) error { return readTables(c, visit) })
	}
	if err == nil {
		err = c.db.Exec(`COMMIT`)
	}
	if err == nil {
		err = writeAheadLog(c)
	}
	return err
}

// putter puts rows within the transaction of a connection.
func putter(c *conn) (store.Visit, error) {
	texts, err := textColumns(c)
	inserts := map[*store.Table]string{}
	for _, t := range store.Tables {
		inserts[t] = `INSERT INTO ` + t.Name + ` (` + columns(t, len(t.Columns)) + `) VALUES (?` + strings.Repeat(`,?`, len(t.Columns)-1) + `)`
	}
	return func(t *store.Table, row []store.Value) error {
		if err := t.Check(row); err != nil {
			return err
		}
		q := c.prep(inserts[t])
		for i := range row {
			q.value(&t.Columns[i], row[i], texts[t.Name+"."+t.Columns[i].Name])
		}
		if err := q.run(); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		return nil
	}, err
}

// value binds a value that has travelled.
func (q *query) value(c *store.Column, v store.Value, text bool) {
	switch {
	case v.Null:
		q.null()
	case c.Kind.Whole():
		q.int(v.Int)
	case text:
		q.text(string(v.Bytes))
	default:
		q.blob(full(v.Bytes))
	}
}

// textColumns are the columns whose bytes this database calls text.
func textColumns(c *conn) (map[string]bool, error) {
	out := map[string]bool{}
	for _, t := range store.Tables {
		err := c.prep(`SELECT name, type FROM pragma_table_info(?)`).text(t.Name).each(func(r *row) (bool, error) {
			name := r.text()
			out[t.Name+"."+name] = r.text() == "TEXT"
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// leftUnfinished refuses a folder into which somebody has begun to write a database.
func leftUnfinished(path string) error {
	_, err := os.Stat(path + unfinished)
	switch {
	case err == nil:
		return fmt.Errorf("a restore or a copy into this folder has not come to its end: run it again, or remove %s to begin with nothing", path+unfinished)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

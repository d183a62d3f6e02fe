package sqlite

import (
	"embed"
	"fmt"
	"io/fs"
)

// incremental is the auto_vacuum with which free pages go back to the system when
// they are asked to.
const incremental = 2

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the database to the newest schema. user_version counts the
// migrations it has had; the files are numbered from 1 without a gap. A database
// that has had more of them is refused before anything in it is touched.
func migrate(c *conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql") // in order of name
	if err != nil {
		return err
	}
	var have int64
	if _, err := c.prep(`PRAGMA user_version`).one(func(r *row) { have = r.int() }); err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if have < 0 || have > int64(len(files)) {
		return fmt.Errorf("the database has schema version %d and this program knows up to %d: use a newer program",
			have, len(files))
	}
	if have == 0 {
		// It holds only if it comes before the first table.
		if err := c.db.Exec(fmt.Sprintf(`PRAGMA auto_vacuum = %d`, incremental)); err != nil {
			return fmt.Errorf("let free pages be given back: %w", err)
		}
	}
	if err := writeAheadLog(c); err != nil {
		return err
	}
	for i := int(have); i < len(files); i++ {
		sql, err := migrations.ReadFile(files[i])
		if err == nil {
			err = apply(c, string(sql), i+1)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", files[i], err)
		}
	}
	return nil
}

// apply runs one migration and counts it, in one transaction.
func apply(c *conn, sql string, version int) error {
	err := c.db.Exec(fmt.Sprintf("BEGIN IMMEDIATE;\n%s\n;PRAGMA user_version = %d; COMMIT;", sql, version))
	if err != nil {
		c.rollback()
	}
	return err
}

// writeAheadLog turns the write-ahead log on, for good: it is a property of the
// file. Some network file systems cannot have one.
func writeAheadLog(c *conn) error {
	var mode string
	_, err := c.prep(`PRAGMA journal_mode = WAL`).one(func(r *row) { mode = r.text() })
	if err != nil {
		return fmt.Errorf("turn the write-ahead log on: %w", err)
	}
	if mode != "wal" {
		return fmt.Errorf("the file system cannot hold a write-ahead log (journal mode is %q): use a local disk", mode)
	}
	return nil
}

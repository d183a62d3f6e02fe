package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/ncruces/go-sqlite3"
)

// heavy is the size of a value after which a connection is not kept as it is:
// the memory inside a connection grows but never shrinks.
const heavy = 2 << 20

// conn is one connection with its prepared statements. Not safe for concurrent
// use: the writer owns one, a reader borrows one from the pool.
type conn struct {
	db    *sqlite3.Conn
	stmts map[string]*query
	grown bool // a heavy value went through it
}

// openConn opens a database file that is there already. cacheKiB bounds the
// page cache of the connection.
func openConn(path, vfs string, cacheKiB int) (*conn, error) {
	name, flags := path, sqlite3.OPEN_READWRITE
	if vfs != "" {
		name = "file:" + url.PathEscape(path) + "?vfs=" + vfs
		flags |= sqlite3.OPEN_URI
	}
	db, err := sqlite3.OpenFlags(name, flags)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, stmts: map[string]*query{}}
	// FULL: a commit is on the disk before it is answered. Temporary files are
	// kept in memory, since a host may have no folder for them.
	err = db.Exec(fmt.Sprintf(`
		PRAGMA busy_timeout = 5000;
		PRAGMA synchronous = FULL;
		PRAGMA temp_store = MEMORY;
		PRAGMA journal_size_limit = 67108864;
		PRAGMA cache_size = -%d;`, cacheKiB))
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *conn) close() error {
	for _, q := range c.stmts {
		q.s.Close()
	}
	c.stmts = nil
	return c.db.Close()
}

// rollback ends the transaction, unless SQLite has ended it by itself. It works
// on a connection whose context is over, too.
func (c *conn) rollback() error {
	c.db.SetInterrupt(context.Background())
	if c.db.GetAutocommit() {
		return nil
	}
	return c.prep(`ROLLBACK`).run()
}

// prep returns the statement of sql, ready to bind its parameters in order.
// Statements are kept as long as the connection, so sql must be a constant.
func (c *conn) prep(sql string) *query {
	q := c.stmts[sql]
	if q == nil {
		s, _, err := c.db.Prepare(sql)
		if err != nil {
			return &query{err: fmt.Errorf("prepare: %w", err)}
		}
		q = &query{c: c, s: s}
		c.stmts[sql] = q
	}
	q.n, q.err, q.big = 0, nil, false
	return q
}

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/ncruces/go-sqlite3"
)

// Page cache sizes, in KiB. The writer touches the end of every table; readers
// mostly find what they want near it, and the system caches the file anyway.
const (
	writerCache = 4096
	readerCache = 1024
)

// Options tune a store. The zero value is a good choice.
type Options struct {
	// Readers bounds how many reads run at once, each on a connection of its
	// own that is opened when first needed. Zero means 4.
	Readers int

	vfs string // for tests: SQLite's name of a file system that fails
}

// Store is a SQLite backend. It implements store.Store.
type Store struct {
	unlock  func() error
	writer  *writer
	readers *readers
	hooks   *hooks // the writer's
	connect func() (*conn, error)

	keyCache      cache[string, store.Key]         // by hash
	standingCache cache[[2]string, store.Standing] // by tenant and member
	workflowCache cache[[2]string, store.Workflow] // latest versions, by tenant and id
	// live is the instance that registered last: the only one, since the
	// database belongs to one process. Nothing of it needs to outlive the
	// process: after a restart every instance is lost.
	live atomic.Pointer[string]

	// rota is whose turn was last where there are more tenants than one claim serves.
	// It is the writer's.
	rota     map[string]string
	punctual store.Round // the same of schedules

	closing  sync.Once
	closeErr error
}

var _ store.Store = (*Store)(nil)

// Open opens the database file at path, and makes it and its folder if they are
// not there. The folder is locked: it belongs to one open store at a time.
func Open(path string, opts Options) (*Store, error) {
	s, err := open(path, opts)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	return s, nil
}

func open(path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path) // also so that no name has a meaning to SQLite
	if err != nil {
		return nil, err
	}
	unlock, err := prepare(path)
	if err != nil {
		return nil, err
	}
	connect := func(cacheKiB int) func() (*conn, error) {
		return func() (*conn, error) { return openConn(path, opts.vfs, cacheKiB) }
	}
	c, err := connect(writerCache)()
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	var subscribed *hooks
	if err = ready(c, path); err == nil {
		subscribed, err = loadHooks(c)
	}
	if err != nil {
		return nil, errors.Join(err, c.close(), unlock())
	}
	if opts.Readers <= 0 {
		opts.Readers = 4
	}
	return &Store{
		keyCache:      cache[string, store.Key]{most: 4096},
		standingCache: cache[[2]string, store.Standing]{most: 16384},
		workflowCache: cache[[2]string, store.Workflow]{most: 512},
		unlock:        unlock,
		writer:        startWriter(c, connect(writerCache), subscribed.undone),
		hooks:         subscribed,
		connect:       connect(writerCache),
		readers:       newReaders(opts.Readers, connect(readerCache)),
	}, nil
}

// ready brings the database into the shape that the statements expect.
func ready(c *conn, path string) error {
	if err := migrate(c); err != nil {
		return err
	}
	return restrict(path)
}

// Runs implements store.Store.
func (s *Store) Runs() store.Runs { return runs{s} }

// Ownership implements store.Store.
func (s *Store) Ownership() store.Ownership { return ownership{s} }

// Workflows implements store.Store.
func (s *Store) Workflows() store.Workflows { return workflows{s} }

// Keys implements store.Store.
func (s *Store) Keys() store.Keys { return keys{s} }

// Idempotency implements store.Store.
func (s *Store) Idempotency() store.Idempotency { return idempotency{s} }

// Retention implements store.Store.
func (s *Store) Retention() store.Retention { return retention{s} }

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	err := s.readers.read(ctx, func(c *conn) error {
		_, err := c.prep(`SELECT 1 FROM runs LIMIT 1`).one(func(*row) {})
		return err
	})
	if err == nil {
		err = s.writer.probe(ctx)
	}
	return wrap("ping", err)
}

// Close finishes the writes and reads that are under way, then closes the
// database. Later calls fail with store.ErrClosed; closing again does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() {
		// The writer goes last: the last connection to close takes the
		// write-ahead log back into the database.
		s.closeErr = wrap("close", errors.Join(s.readers.close(), s.writer.close(), s.unlock()))
	})
	return s.closeErr
}

// away lists failures of the disk under the database, and not of what was asked: a
// disk that is full or broken, a folder that lets nobody write.
var away = []error{sqlite3.FULL, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.READONLY, sqlite3.BUSY}

func isAway(err error) bool {
	return slices.ContainsFunc(away, func(code error) bool { return errors.Is(err, code) })
}

// wrap says what failed; the sentinels stay recognizable.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if isAway(err) {
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrUnavailable, err)
	}
	return fmt.Errorf("sqlite: %s: %w", what, err)
}

package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// commits is what the driver and the disk alone have achieved.
type commits struct {
	latency      latencies // of each run
	took         time.Duration
	cpu          time.Duration // of this process, with the driver in it
	db           time.Duration // of the database's processes, if it has any
	transactions int
}

// join adds what was seen at another time.
func (c *commits) join(o commits) {
	c.latency = append(c.latency, o.latency...)
	c.took += o.took
	c.cpu += o.cpu
	c.db += o.db
	c.transactions += o.transactions
}

// floor is a database that takes the bytes of runs and knows nothing of them.
type floor interface {
	// serve commits whatever waits, until the queue is closed.
	serve(queue <-chan chan error, s *segment) (transactions int, err error)
	// cpu is the processor time of the database's own processes.
	cpu() (time.Duration, error)
	close() error
}

// segment is what a run writes: the bytes of its log, and of the columns of its
// row.
type segment struct {
	events int
	body   []byte
	owner  []byte
	id     string // of one run; others have ids as long

	snapshot []byte // that a client is sent in the end
}

// The floor's tables have the columns of the host's own, and its primary keys.
// They have none of its other indexes: those are a choice of the host.
const floorTables = `
	CREATE TABLE runs (
		tenant TEXT NOT NULL, run_id TEXT NOT NULL, workflow TEXT NOT NULL, workflow_version TEXT NOT NULL,
		status TEXT NOT NULL, seq INTEGER NOT NULL, epoch INTEGER NOT NULL, instance TEXT, wake_at INTEGER,
		created_at INTEGER, started_at INTEGER, completed_at INTEGER, current_node TEXT NOT NULL,
		parent_node TEXT NOT NULL, notify INTEGER NOT NULL, owner BLOB,
		PRIMARY KEY (tenant, run_id)) STRICT, WITHOUT ROWID;
	CREATE TABLE events (
		tenant TEXT NOT NULL, run_id TEXT NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, body BLOB NOT NULL,
		PRIMARY KEY (tenant, run_id, seq)) STRICT, WITHOUT ROWID;`

const (
	floorRun = `INSERT INTO runs VALUES ('default', ?, 'one', '1', 'completed', ?, 0, NULL, NULL, ?, ?, ?, '', '', 0, ?)`
	floorLog = `INSERT INTO events VALUES ('default', ?, 0, ?, ?)`
)

// floorDB is a database as the host sets its own up: a write-ahead log, synced
// on every commit.
type floorDB struct {
	dir      string
	db       *sqlite3.Conn
	run, log *sqlite3.Stmt
	n        int64
}

func openFloor(dir string) (floor, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	db, err := sqlite3.Open(filepath.Join(dir, "floor.db"))
	if err != nil {
		return nil, err
	}
	f := &floorDB{dir: dir, db: db}
	err = db.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
		PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -4096;` + floorTables)
	if err == nil {
		f.run, _, err = db.Prepare(floorRun)
	}
	if err == nil {
		f.log, _, err = db.Prepare(floorLog)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

func (f *floorDB) close() error {
	return errors.Join(f.run.Close(), f.log.Close(), f.db.Close(), os.RemoveAll(f.dir))
}

// cpu implements floor: the database is in this process.
func (f *floorDB) cpu() (time.Duration, error) { return 0, nil }

// insert writes one run: its row and the one segment of its log. Ids rise, as
// the host's do.
func (f *floorDB) insert(s *segment) error {
	f.n++
	id := fmt.Sprintf("%0*d", len(s.id), f.n)
	now := time.Now().UnixMilli()
	err := errors.Join(
		f.run.BindText(1, id), f.run.BindInt64(2, int64(s.events-1)),
		f.run.BindInt64(3, now), f.run.BindInt64(4, now), f.run.BindInt64(5, now), f.run.BindBlob(6, s.owner),
		f.log.BindText(1, id), f.log.BindInt64(2, int64(s.events)), f.log.BindBlob(3, s.body),
	)
	if err != nil {
		return err
	}
	if err := f.run.Exec(); err != nil {
		return err
	}
	return f.log.Exec()
}

// commit writes a number of runs in one transaction.
func (f *floorDB) commit(s *segment, n int) error {
	if err := f.db.Exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	for range n {
		if err := f.insert(s); err != nil {
			return errors.Join(err, f.db.Exec(`ROLLBACK`))
		}
	}
	return f.db.Exec(`COMMIT`)
}

// commitFloor has clients do nothing but wait for their run to be durable, one
// after the other. As in the host, all runs that wait at one moment share one
// commit.
func commitFloor(open func() (floor, error), s *segment, clients int, span time.Duration) (out commits, err error) {
	f, err := open()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	before, err := f.cpu()
	if err != nil {
		return out, err
	}
	queue := make(chan chan error, clients)
	var mu sync.Mutex
	var wg sync.WaitGroup
	cpu, begun := ownCPU(), time.Now()
	for range clients {
		wg.Go(func() {
			one := waitForCommits(queue, begun.Add(span))
			mu.Lock()
			defer mu.Unlock()
			out.latency = append(out.latency, one...)
		})
	}
	go func() {
		wg.Wait()
		close(queue)
	}()
	out.transactions, err = f.serve(queue, s)
	out.took, out.cpu = time.Since(begun), ownCPU()-cpu
	after, cpuErr := f.cpu()
	out.db = after - before
	return out, errors.Join(err, cpuErr)
}

func waitForCommits(queue chan<- chan error, until time.Time) (out latencies) {
	done := make(chan error, 1)
	for {
		begun := time.Now()
		if begun.After(until) {
			return out
		}
		queue <- done
		if <-done != nil {
			return out
		}
		out = append(out, time.Since(begun))
	}
}

// gather is first and everything that waits behind it.
func gather(batch []chan error, first chan error, queue <-chan chan error) []chan error {
	batch = append(batch[:0], first)
	for {
		select {
		case next, ok := <-queue:
			if !ok {
				return batch
			}
			batch = append(batch, next)
		default:
			return batch
		}
	}
}

// serve implements floor.
func (f *floorDB) serve(queue <-chan chan error, s *segment) (transactions int, err error) {
	var batch []chan error
	for first := range queue {
		batch = gather(batch, first, queue)
		one := f.commit(s, len(batch))
		err = errors.Join(err, one)
		transactions++
		for _, done := range batch {
			done <- one
		}
	}
	return transactions, err
}

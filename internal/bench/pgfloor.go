package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// The tables of the floor on PostgreSQL: the host's columns and primary keys, and none
// of its other indexes.
const pgFloorTables = `
	DROP TABLE IF EXISTS runs, events;
	CREATE TABLE runs (
		tenant text COLLATE "C" NOT NULL, run_id text COLLATE "C" NOT NULL, workflow bytea NOT NULL,
		workflow_version bytea NOT NULL, status text COLLATE "C" NOT NULL, seq bigint NOT NULL, epoch bigint NOT NULL,
		instance text COLLATE "C", wake_at bigint, created_at bigint, started_at bigint, completed_at bigint,
		current_node bytea NOT NULL, parent_node bytea NOT NULL, notify boolean NOT NULL, owner bytea,
		PRIMARY KEY (tenant, run_id));
	CREATE TABLE events (
		tenant text COLLATE "C" NOT NULL, run_id text COLLATE "C" NOT NULL, seq bigint NOT NULL, n bigint NOT NULL,
		body bytea NOT NULL, sealed bytea, mark bigint NOT NULL,
		PRIMARY KEY (tenant, run_id, seq))`

const (
	pgFloorRun = `INSERT INTO runs (tenant, run_id, workflow, workflow_version, status, seq, epoch, created_at, started_at, completed_at,
		current_node, parent_node, notify, owner) VALUES ('default', $1, 'one', '1', 'completed', $2, 0, $3, $3, $3, '', '', false, $4)`
	pgFloorLog = `INSERT INTO events (tenant, run_id, seq, n, body, sealed, mark) VALUES ('default', $1, 0, $2, $3, NULL, $4)`
)

// pgFloor writes the same rows through the same driver: over as many connections as a
// host has writers, each of which takes what waits, in one transaction and one round
// trip.
type pgFloor struct {
	conns []*pgx.Conn
	db    func() (time.Duration, error)
	n     atomic.Int64
}

// openPGFloor makes the floor's tables anew in a database that is there for that.
func openPGFloor(ctx context.Context, address string, conns int, db func() (time.Duration, error)) (floor, error) {
	f := &pgFloor{db: db}
	for range conns {
		c, err := pgx.Connect(ctx, address)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.conns = append(f.conns, c)
	}
	if _, err := f.conns[0].Exec(ctx, pgFloorTables); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *pgFloor) close() (err error) {
	for _, c := range f.conns {
		err = errors.Join(err, c.Close(context.Background()))
	}
	return err
}

func (f *pgFloor) cpu() (time.Duration, error) { return f.db() }

// serve implements floor.
func (f *pgFloor) serve(queue <-chan chan error, s *segment) (transactions int, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, c := range f.conns {
		wg.Go(func() {
			var batch []chan error
			for first := range queue {
				batch = gather(batch, first, queue)
				one := f.commit(c, s, len(batch))
				mu.Lock()
				err = errors.Join(err, one)
				transactions++
				mu.Unlock()
				for _, done := range batch {
					done <- one
				}
			}
		})
	}
	wg.Wait()
	return transactions, err
}

// commit writes a number of runs in one transaction.
func (f *pgFloor) commit(c *pgx.Conn, s *segment, n int) error {
	b := &pgx.Batch{}
	b.Queue(`BEGIN`)
	now := time.Now().UnixMilli()
	for range n {
		k := f.n.Add(1)
		id := fmt.Sprintf("%0*d", len(s.id), k)
		b.Queue(pgFloorRun, id, int64(s.events-1), now, s.owner)
		b.Queue(pgFloorLog, id, int64(s.events), s.body, k)
	}
	b.Queue(`COMMIT`)
	return c.SendBatch(context.Background(), b).Close()
}

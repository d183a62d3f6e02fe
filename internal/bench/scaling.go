package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// Scaling measures what a run costs a PostgreSQL database: statements, round trips,
// rows and bytes written, processor time on both sides; and what idle hosts cost it.
// docs/scaling.md says what follows from it.
func Scaling(o Options) (*Report, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	b, remove, err := newBench(o)
	if err != nil {
		return b.out, err
	}
	defer remove()
	d, err := b.newDatabase("scaling", "shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_planning=on")
	if errors.Is(err, pgtest.ErrAbsent) {
		b.out.skip("scaling", err.Error())
		return b.out, nil
	}
	if err == nil {
		err = d.exec("CREATE EXTENSION pg_stat_statements")
	}
	if err != nil {
		return b.out, err
	}
	for _, step := range []func(*database) error{b.costOfRuns, b.roundTrips, b.costOfIdling, b.sizes} {
		if err := step(d); err != nil {
			return b.out, err
		}
	}
	return b.out, nil
}

func (d *database) exec(sql string) error {
	return d.server.Exec(context.Background(), d.name, sql)
}

// number reads one number.
func (d *database) number(sql string) (float64, error) {
	rows, err := d.server.Query(context.Background(), d.name, sql)
	if err != nil || len(rows) != 1 {
		return 0, fmt.Errorf("%s: %d rows: %w", sql, len(rows), err)
	}
	return strconv.ParseFloat(rows[0], 64)
}

// settled forgets what a measurement before this one has left, once the statistics of
// that have come in. There is no checkpoint: the write-ahead log is counted without the
// whole pages that the first change after one adds.
func (d *database) settled() error {
	time.Sleep(time.Second)
	return d.exec("SELECT pg_stat_statements_reset()")
}

// counters are the sums of the database's statistics that are looked at.
var counters = []struct{ name, sql string }{
	{"statements", `SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE ` + ofHosts},
	{"plans made", `SELECT coalesce(sum(plans), 0) FROM pg_stat_statements WHERE ` + ofHosts},
	{"rows written", `SELECT coalesce(sum(rows), 0) FROM pg_stat_statements WHERE ` + ofHosts + ` AND query ~ '^(INSERT|UPDATE|DELETE)'`},
	{"planning and executing (ms)", `SELECT coalesce(sum(total_exec_time + total_plan_time), 0) FROM pg_stat_statements WHERE ` + ofHosts},
	{"write-ahead log (bytes)", `SELECT pg_current_wal_lsn() - '0/0'`},
}

const ofHosts = `query NOT ILIKE '%pg_stat%' AND query NOT ILIKE '%pg_current_wal%' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`

func (d *database) counted() ([]float64, error) {
	out := make([]float64, len(counters))
	for i, c := range counters {
		var err error
		if out[i], err = d.number(c.sql); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// costOfRuns drives one host and divides what the database has counted by the runs.
func (b *bench) costOfRuns(d *database) error {
	m, err := b.replicas(d, 1)
	if err != nil {
		return err
	}
	b.host = m.hosts[0]
	if err := register(b.host.Addr); err != nil {
		return errors.Join(err, m.stop())
	}
	for _, workflow := range []string{"one", "five", "gate"} {
		for _, clients := range []int{1, 16, 64} {
			if err == nil {
				err = b.costOf(m, d, workflow, clients)
			}
		}
	}
	return errors.Join(err, m.stop())
}

func (b *bench) costOf(m side, d *database, workflow string, clients int) error {
	span := time.Duration(b.pick(5000, 1000)) * time.Millisecond
	drive := drive
	if workflow == "gate" {
		drive = driveGates
	}
	if _, err := drive(m, createBody(workflow, ""), clients, span/4); err != nil {
		return err // warming up
	}
	if err := d.settled(); err != nil {
		return err
	}
	before, err := d.counted()
	if err != nil {
		return err
	}
	got, err := drive(m, createBody(workflow, ""), clients, span)
	if err != nil {
		return err
	}
	after, err := d.counted()
	if err != nil {
		return err
	}
	group := fmt.Sprintf("a run of %s, %d clients", workflow, clients)
	n := float64(max(got.runs, 1))
	for i, c := range counters {
		b.out.add(group, c.name, (after[i]-before[i])/n, "", 0)
	}
	b.out.add(group, "processor time, host", ms(got.host)/n, "ms", 0)
	b.out.add(group, "processor time, database", ms(got.db)/n, "ms", 0)
	b.out.add(group, "runs", perSecond(got.runs, got.took), "/s", 0)
	if clients != 16 {
		return nil
	}
	return b.statements(d, group, n)
}

// statements lists those that take most of the time, each with how often it comes.
func (b *bench) statements(d *database, group string, runs float64) error {
	rows, err := d.server.Query(context.Background(), d.name, `SELECT calls || '|' || plans || '|' || total_exec_time + total_plan_time || '|' ||
		left(regexp_replace(query, '\s+', ' ', 'g'), 34) || CASE WHEN query ILIKE '%skip locked%' THEN ' SKIP LOCKED' ELSE '' END
		FROM pg_stat_statements WHERE `+ofHosts+` ORDER BY total_exec_time + total_plan_time DESC LIMIT 14`)
	for _, row := range rows {
		part := strings.SplitN(row, "|", 4)
		calls, e1 := strconv.ParseFloat(part[0], 64)
		plans, e2 := strconv.ParseFloat(part[1], 64)
		took, e3 := strconv.ParseFloat(part[2], 64)
		err = errors.Join(err, e1, e2, e3)
		b.out.add(group+": statements", part[3], 1000*took/runs, "µs", 0)
		b.out.add(group+": statements", "  how often", calls/runs, "", 0)
		if plans > 0 {
			b.out.add(group+": statements", "  how often planned", plans/runs, "", 0)
		}
	}
	return err
}

// driveGates is drive for runs that wait for an answer, which comes at once.
func driveGates(m side, body []byte, clients int, span time.Duration) (sample, error) {
	host, db, err := m.cpu()
	if err != nil {
		return sample{}, err
	}
	begun := time.Now()
	counts := make([]int, clients)
	err = inParallel(clients, func(i int) error {
		c, err := Dial(m.hosts[i%len(m.hosts)].Addr)
		if err != nil {
			return err
		}
		defer c.Close()
		for ; time.Since(begun) < span; counts[i]++ {
			path, err := c.create(body)
			if err == nil {
				err = c.answer(path)
			}
			if err == nil {
				err = c.await(path)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	out := sample{took: time.Since(begun)}
	for _, n := range counts {
		out.runs += n
	}
	hostAfter, dbAfter, cpuErr := m.cpu()
	out.host, out.db = hostAfter-host, dbAfter-db
	return out, errors.Join(err, cpuErr)
}

// roundTrips puts something that counts between a host and its database.
func (b *bench) roundTrips(d *database) error {
	p, err := countTrips(d.server.Address(d.name))
	if err != nil {
		return err
	}
	defer p.close()
	m, err := b.replicas(d, 1, "FERMATA_STORE="+p.address)
	if err != nil {
		return err
	}
	for _, workflow := range []string{"one", "five"} {
		for _, clients := range []int{1, 64} {
			if _, e := drive(m, createBody(workflow, ""), clients, time.Second/2); err == nil {
				err = e
			}
			before, commits, sent, answered := p.trips.Load(), p.commits.Load(), p.out.Load(), p.in.Load()
			got, e := drive(m, createBody(workflow, ""), clients, 2*time.Second)
			if err == nil {
				err = e
			}
			n := float64(max(got.runs, 1))
			group := fmt.Sprintf("a run of %s, %d clients: the way to the database", workflow, clients)
			b.out.add(group, "round trips", float64(p.trips.Load()-before)/n, "", 0)
			b.out.add(group, "commits", float64(p.commits.Load()-commits)/n, "", 0)
			b.out.add(group, "bytes sent", float64(p.out.Load()-sent)/n, "", 0)
			b.out.add(group, "bytes answered", float64(p.in.Load()-answered)/n, "", 0)
		}
	}
	return errors.Join(err, m.stop())
}

// costOfIdling leaves hosts alone that have nothing to do.
func (b *bench) costOfIdling(d *database) error {
	for _, n := range []int{1, 3} {
		m, err := b.replicas(d, n)
		if err != nil {
			return err
		}
		span := time.Duration(b.pick(20, 5)) * time.Second
		time.Sleep(3 * time.Second)
		err = d.settled()
		var before, after []float64
		if err == nil {
			before, err = d.counted()
		}
		host, db, e := m.cpu()
		time.Sleep(span)
		hostAfter, dbAfter, e2 := m.cpu()
		if err = errors.Join(err, e, e2); err == nil {
			after, err = d.counted()
		}
		if err != nil {
			return errors.Join(err, m.stop())
		}
		group := fmt.Sprintf("%d idle replicas, a second", n)
		for i, c := range counters {
			b.out.add(group, c.name, (after[i]-before[i])/span.Seconds(), "", 0)
		}
		b.out.add(group, "processor time, hosts", ms(hostAfter-host)/span.Seconds(), "ms", 0)
		b.out.add(group, "processor time, database", ms(dbAfter-db)/span.Seconds(), "ms", 0)
		if err := m.stop(); err != nil {
			return err
		}
	}
	return nil
}

// sizes divides what the tables take by what is in them, after a vacuum.
func (b *bench) sizes(d *database) error {
	if err := d.exec("VACUUM ANALYZE"); err != nil {
		return err
	}
	runs, err := d.number(`SELECT count(*) FROM runs`)
	if err != nil {
		return err
	}
	events, err := d.number(`SELECT sum(n) FROM events`)
	if err != nil {
		return err
	}
	group := fmt.Sprintf("bytes on disk: %.0f runs of %.1f events", runs, events/runs)
	total := 0.0
	for _, table := range []string{"runs", "events", "checkpoints", "interrupts"} {
		heap, e1 := d.number(`SELECT pg_table_size('` + table + `')`)
		index, e2 := d.number(`SELECT pg_indexes_size('` + table + `')`)
		if err := errors.Join(e1, e2); err != nil {
			return err
		}
		b.out.add(group, table+", a run: rows", heap/runs, "bytes", 0)
		b.out.add(group, table+", a run: indexes", index/runs, "bytes", 0)
		total += heap + index
	}
	b.out.add(group, "all, a run", total/runs, "bytes", 0)
	b.out.add(group, "all, an event", total/events, "bytes", 0)
	body, err := d.number(`SELECT avg(octet_length(body))::float8 FROM events`)
	b.out.add(group, "documents of a segment", body, "bytes", 0)
	return err
}

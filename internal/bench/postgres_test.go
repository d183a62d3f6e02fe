package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// TestFloorOnPostgres: the floor writes what it says, over its connections, in commits
// that clients share.
func TestFloorOnPostgres(t *testing.T) {
	c := pgtest.New(t)
	d := &database{server: c, name: "postgres"}
	if err := c.Exec(t.Context(), "postgres", "CREATE DATABASE floor"); err != nil {
		t.Fatal(err)
	}
	s := &segment{events: 4, body: bytes.Repeat([]byte("b"), 1300), owner: []byte("{}"), id: strings.Repeat("0", 26), snapshot: []byte(`{"status":"completed"}`)}
	got, err := commitFloor(d.floor(1), s, 8, 50*time.Millisecond)
	if err != nil || len(got.latency) == 0 || got.transactions == 0 || got.transactions > len(got.latency) {
		t.Fatalf("%d runs in %d transactions: %v", len(got.latency), got.transactions, err)
	}
	rows, err := c.Query(t.Context(), "floor", `SELECT count(*) || ' ' || sum(n) || ' ' || min(octet_length(body)) FROM events JOIN runs USING (tenant, run_id)`)
	var n, events, size int
	if err == nil {
		_, err = fmt.Sscan(rows[0], &n, &events, &size)
	}
	if err != nil || n != len(got.latency) || events != 4*n || size != 1300 {
		t.Errorf("%d runs were waited for; in the database: %v, %v", len(got.latency), rows, err)
	}
	if rate, err := httpFloor(d.floor(2), s, 4, 50*time.Millisecond); err != nil || rate <= 0 {
		t.Errorf("%v runs/s over HTTP: %v", rate, err)
	}
	if used, err := d.cpu(); err != nil || used <= 0 && runtime.GOOS == "linux" {
		t.Errorf("the server has used %v: %v", used, err)
	}
}

// TestTrips: a pipeline is one round trip however much is in it, and what is not
// prepared yet takes one more.
func TestTrips(t *testing.T) {
	c := pgtest.New(t)
	p, err := countTrips(c.Address("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	conn, err := pgx.Connect(t.Context(), p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	batch := func() {
		b := &pgx.Batch{}
		b.Queue(`BEGIN`)
		for range 10 {
			b.Queue(`SELECT 1`)
		}
		b.Queue(`COMMIT`)
		if err := conn.SendBatch(t.Context(), b).Close(); err != nil {
			t.Fatal(err)
		}
	}
	batch() // prepares them
	trips, commits, sent := p.trips.Load(), p.commits.Load(), p.out.Load()
	for range 5 {
		batch()
	}
	if n, m := p.trips.Load()-trips, p.commits.Load()-commits; n != 5 || m != 5 {
		t.Errorf("5 transactions took %d round trips and %d commits", n, m)
	}
	if p.out.Load() == sent || p.in.Load() == 0 {
		t.Error("no bytes were counted")
	}
}

// TestPartsLeftOut: a report says which parts this machine lacks something for.
func TestPartsLeftOut(t *testing.T) {
	r := Report{progress: io.Discard}
	r.skip("postgres", pgtest.ErrAbsent.Error())
	var table bytes.Buffer
	r.Table(&table)
	if !strings.Contains(table.String(), "left out: postgres: ") {
		t.Error(table.String())
	}
}

package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/archive"
	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/storetest"
)

func TestPlaces(t *testing.T) {
	pgtest.Shared(t)
	for _, mode := range []string{"", "&default_query_exec_mode=cache_describe", "&default_query_exec_mode=simple_protocol"} {
		if mode != "" && testing.Short() {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			storetest.RunPlaces(t,
				func(t *testing.T, dir string) store.Store { return openTest(t, dir, mode, Options{}) },
				func(t *testing.T, dir string) store.Place { return At(pgtest.Database(t, dir) + mode) })
		})
	}
}

// TestPlacesInParts: a database whose tables were made in partitions is filled, read
// and refused as any other, and stays in partitions.
func TestPlacesInParts(t *testing.T) {
	pgtest.Shared(t)
	storetest.RunPlaces(t,
		func(t *testing.T, dir string) store.Store { return openParts(t, dir) },
		func(t *testing.T, dir string) store.Place {
			return inParts{At(pgtest.Database(t, dir)), pgtest.Database(t, dir)}
		})
}

// inParts is a database that is made in partitions before something is loaded into it.
type inParts struct {
	store.Place
	address string
}

func (p inParts) Load(ctx context.Context, fill func(put store.Visit) error, check func(read func(store.Visit) error) error) error {
	if _, err := Up(ctx, p.address, parts); err != nil {
		return err
	}
	return p.Place.Load(ctx, fill, check)
}

// TestLoadKeepsParts: what is loaded is spread over the partitions that are there.
func TestLoadKeepsParts(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	s := openTest(t, from, "", Options{})
	const runs = 40
	for i := range runs {
		if err := s.Runs().Append(t.Context(), newStep(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Up(t.Context(), pgtest.Database(t, to), parts); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Copy(t.Context(), At(pgtest.Database(t, from)), At(pgtest.Database(t, to)), true); err != nil {
		t.Fatal(err)
	}
	copied := openTest(t, to, "", Options{})
	used, err := copied.count(t, `SELECT count(DISTINCT tableoid) FROM events`)
	all, err2 := copied.count(t, `SELECT count(*) FROM events`)
	if errors.Join(err, err2) != nil || used < 2 || all < runs {
		t.Errorf("%d events in %d partitions: %v", all, used, errors.Join(err, err2))
	}
	if is, err := Up(t.Context(), pgtest.Database(t, to), 0); err != nil || is.Partitions != parts {
		t.Errorf("%+v: %v", is, err)
	}
}

// databaseOf is the name of the database of a folder.
func databaseOf(t *testing.T, dir string) string {
	t.Helper()
	at := strings.TrimSuffix(pgtest.Database(t, dir), "?sslmode=disable")
	return at[strings.LastIndexByte(at, '/')+1:]
}

// TestEveryTableMoves: what is in the database is in store.Tables or left out for a
// reason, column by column.
func TestEveryTableMoves(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, "", Options{})
	c, db := pgtest.Shared(t), databaseOf(t, dir)
	rows, err := c.Query(t.Context(), db, `SELECT table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable
		FROM information_schema.columns WHERE table_schema = 'public'`)
	if err != nil || len(rows) < 100 {
		t.Fatalf("%d columns: %v", len(rows), err)
	}
	types := map[store.Kind]string{store.Text: "text", store.Bytes: "bytea", store.Int: "bigint", store.Bool: "boolean"}
	there := map[string]bool{}
	for _, r := range rows {
		f := strings.Fields(r)
		table, column, kind, null := f[0], f[1], f[2], f[len(f)-1] == "YES"
		there[table], there[table+"."+column] = true, true
		if leftOut[table] != "" || leftOut[table+"."+column] != "" {
			continue
		}
		known := store.TableOf(table)
		if known == nil {
			t.Errorf("table %s is neither moved nor left out", table)
			continue
		}
		i := slices.IndexFunc(known.Columns, func(k store.Column) bool { return k.Name == column })
		if i < 0 {
			t.Errorf("column %s.%s is neither moved nor left out", table, column)
			continue
		}
		if k := known.Columns[i]; types[k.Kind] != kind || k.Null != null {
			t.Errorf("column %s.%s is %s (nullable %v) and moves as %s (%v)", table, column, kind, null, k.Kind, k.Null)
		}
	}
	for name := range leftOut {
		if !there[name] {
			t.Errorf("%s is left out and not there", name)
		}
	}
	keys, err := c.Query(t.Context(), db, `SELECT c.relname || ' ' || (SELECT string_agg(a.attname, ' ' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY k(at, n)
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.at) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND i.indisprimary`)
	if err != nil || len(keys) < len(store.Tables) {
		t.Fatalf("%d keys: %v", len(keys), err)
	}
	for _, k := range keys {
		name, columnsOfKey, _ := strings.Cut(k, " ")
		if t2 := store.TableOf(name); t2 != nil && columnsOfKey != strings.ReplaceAll(columns(t2, t2.Key), ",", "") {
			t.Errorf("the key of %s is %s", name, columnsOfKey)
		}
	}
}

func ignore(*store.Table, []store.Value) error { return nil }

func fine(func(store.Visit) error) error { return nil }

// TestDumpAlone: a host that lives is in the way of a reader who wants to be alone,
// and so is one that is started while he reads. One whose lease is over is not.
func TestDumpAlone(t *testing.T) {
	dir := t.TempDir()
	s, place := openTest(t, dir, "", Options{}), At(pgtest.Database(t, dir))
	o := s.Ownership()
	if err := place.Dump(t.Context(), true, ignore); err != nil {
		t.Errorf("nobody is there: %v", err)
	}
	if err := errors.Join(o.Register(t.Context(), "host-1"), o.Heartbeat(t.Context(), "host-1", time.Hour), s.Runs().Append(t.Context(), newStep(1))); err != nil {
		t.Fatal(err)
	}
	err := place.Dump(t.Context(), true, ignore)
	if !errors.Is(err, store.ErrInUse) || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "host-1") {
		t.Errorf("beside a host: %v", err)
	}
	if err := place.Dump(t.Context(), false, ignore); err != nil {
		t.Errorf("online: %v", err)
	}
	if err := pgtest.Shared(t).Exec(t.Context(), databaseOf(t, dir), `UPDATE instances SET lease_until = now() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	err = place.Dump(t.Context(), true, func(*store.Table, []store.Value) error { return o.Register(t.Context(), "host-2") })
	if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), "host-2") {
		t.Errorf("a host was started meanwhile: %v", err)
	}
}

// TestHostsAndLoads: no host starts on a database that is being loaded, or whose load
// was killed; one that was about to start is found out; the next load goes through.
func TestHostsAndLoads(t *testing.T) {
	dir := t.TempDir()
	address := pgtest.Database(t, dir)
	place, c, db := At(address), pgtest.Shared(t), databaseOf(t, dir)
	early := openTest(t, dir, "", Options{})
	refused := func() {
		t.Helper()
		s, err := Open(t.Context(), address, Options{Migrate: true})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "has not come to its end") || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a host starts: %v", err)
		}
		if err := place.Dump(t.Context(), false, ignore); err == nil || !strings.Contains(err.Error(), "has not come to its end") {
			t.Errorf("it is read: %v", err)
		}
	}
	err := place.Load(t.Context(), func(store.Visit) error { refused(); return nil }, fine)
	if err != nil {
		t.Fatal(err)
	}
	err = place.Load(t.Context(), func(store.Visit) error { return early.Ownership().Register(t.Context(), "early") }, fine)
	if !errors.Is(err, store.ErrInUse) {
		t.Errorf("a host has come meanwhile: %v", err)
	}
	if err := early.Ownership().Deregister(t.Context(), "early"); err != nil {
		t.Fatal(err)
	}

	// The server ends the connection, and with it the process: nobody removes the mark.
	ctx, cancel := context.WithCancel(t.Context())
	err = place.Load(ctx, func(put store.Visit) error {
		err := c.Exec(t.Context(), db, `CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
			CREATE TRIGGER stay BEFORE DELETE ON fermata_schema FOR EACH ROW EXECUTE FUNCTION stay()`)
		cancel()
		return errors.Join(err, put(store.TableOf("staged"), []store.Value{{Bytes: []byte("acme")}, {Bytes: []byte("r")}, {Int: 1}, {Int: 1}}))
	}, fine)
	if err == nil {
		t.Fatal("it was loaded")
	}
	refused()
	if err := c.Exec(t.Context(), db, `DROP TRIGGER stay ON fermata_schema`); err != nil {
		t.Fatal(err)
	}
	if err := place.Load(t.Context(), func(store.Visit) error { return nil }, fine); err != nil {
		t.Fatal(err)
	}
	if err := openTest(t, dir, "", Options{}).Close(); err != nil {
		t.Error(err)
	}
}

// TestLoadsAtOnce: of two, one makes the store, and the other is refused.
func TestLoadsAtOnce(t *testing.T) {
	dir := t.TempDir()
	place := At(pgtest.Database(t, dir))
	row := []store.Value{{Bytes: []byte("acme")}, {Bytes: []byte("r")}, {Int: 1}, {Int: 1}}
	second := make(chan error, 1)
	err := place.Load(t.Context(), func(put store.Visit) error {
		begun := make(chan bool, 1)
		go func() {
			second <- place.Load(t.Context(), func(store.Visit) error { begun <- true; return nil }, fine)
			begun <- false
		}()
		// It waits for the end of this one, since rows that nobody has committed are no rows.
		for {
			n, err := pgtest.Shared(t).Query(t.Context(), "postgres",
				`SELECT count(*)::text FROM pg_stat_activity WHERE datname = '`+databaseOf(t, dir)+`' AND wait_event_type = 'Lock'`)
			if err != nil {
				return err
			}
			if n[0] != "0" {
				break
			}
			if err := t.Context().Err(); err != nil {
				return err
			}
		}
		if len(begun) > 0 {
			t.Error("two load at once")
		}
		return put(store.TableOf("staged"), row)
	}, fine)
	if err != nil {
		t.Error(err)
	}
	if err := <-second; !errors.Is(err, store.ErrUsed) {
		t.Errorf("the other: %v", err)
	}
}

// TestNewerSchemaIsRefused: a program that is too old for a database does not start on
// it, does not read it, and loads nothing into it. Nothing is changed.
func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	address, db := pgtest.Database(t, dir), databaseOf(t, dir)
	if err := openTest(t, dir, "", Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := pgtest.Shared(t).Exec(t.Context(), db, `UPDATE fermata_schema SET version = 99, needs = 98`); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), address, Options{Migrate: true})
	if err == nil {
		s.Close()
	}
	for what, err := range map[string]error{
		"a start": err, "a dump": At(address).Dump(t.Context(), false, ignore),
		"a load": At(address).Load(t.Context(), func(store.Visit) error { t.Error("it is filled"); return nil }, fine),
	} {
		if err == nil || !strings.Contains(err.Error(), "knows up to") {
			t.Errorf("%s: %v", what, err)
		}
	}
	is, err := pgtest.Shared(t).Query(t.Context(), db, `SELECT version || ' ' || needs || ' ' || count(*) OVER () FROM fermata_schema`)
	if err != nil || len(is) != 1 || is[0] != "99 98 1" {
		t.Errorf("%v %v", is, err)
	}
}

package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/archive"
	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/postgres"
	"github.com/fermata-run/fermata/internal/store/sqlite"
	"github.com/fermata-run/fermata/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// kind is a backend under test.
type kind struct {
	open storetest.Open
	at   storetest.At
}

var onSQLite = kind{
	open: func(t *testing.T, dir string) store.Store {
		s, err := sqlite.Open(filepath.Join(dir, "fermata.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	},
	at: func(_ *testing.T, dir string) store.Place { return sqlite.At(filepath.Join(dir, "fermata.db")) },
}

var onPostgres = kind{
	open: func(t *testing.T, dir string) store.Store {
		s, err := postgres.Open(t.Context(), pgtest.Database(t, dir), postgres.Options{Migrate: true, Connections: 4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	},
	at: func(t *testing.T, dir string) store.Place { return postgres.At(pgtest.Database(t, dir)) },
}

var header = archive.Header{Program: "1.2.3", Taken: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}

// TestArchiveAcross: an archive of either backend is restored into either of them, and
// the next host goes on there.
func TestArchiveAcross(t *testing.T) {
	for name, c := range map[string][2]kind{
		"sqlite to sqlite": {onSQLite, onSQLite}, "sqlite to postgres": {onSQLite, onPostgres},
		"postgres to sqlite": {onPostgres, onSQLite}, "postgres to postgres": {onPostgres, onPostgres},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(name, "sqlite to sqlite") {
				pgtest.Shared(t)
			}
			a, b := t.TempDir(), t.TempDir()
			p := storetest.Populate(t, c[0].open, a)
			var file bytes.Buffer
			from := c[0].at(t, a)
			wrote, err := archive.Write(t.Context(), &file, from, header, from.Backend() == "sqlite") // whose dead host is none
			if err != nil {
				t.Fatal(err)
			}
			h, seen, err := archive.Verify(bytes.NewReader(file.Bytes()))
			if err != nil || h.Program != "1.2.3" || !h.Taken.Equal(header.Taken) || fmt.Sprint(seen) != fmt.Sprint(wrote) {
				t.Errorf("%+v\n%+v\n%+v: %v", h, seen, wrote, err)
			}
			if wrote.Chains != 2 || wrote.Entries != 7 || len(wrote.Faults) != 0 || !slices.Equal(wrote.Masters, []string{"m1"}) {
				t.Errorf("%+v", wrote)
			}
			_, restored, err := archive.Restore(t.Context(), &file, c[1].at(t, b))
			if err != nil || fmt.Sprint(restored) != fmt.Sprint(wrote) {
				t.Fatalf("%+v: %v", restored, err)
			}
			p.Check(t, c[1].open, b, true)
		})
	}
}

// TestCopyThereAndBack: from SQLite to PostgreSQL and back again, every table has the
// same digest, and fences rise each time.
func TestCopyThereAndBack(t *testing.T) {
	pgtest.Shared(t)
	a, b, c := t.TempDir(), t.TempDir(), t.TempDir()
	p := storetest.Populate(t, onSQLite.open, a)
	there, err := archive.Copy(t.Context(), onSQLite.at(t, a), onPostgres.at(t, b), true)
	if err != nil {
		t.Fatal(err)
	}
	back, err := archive.Copy(t.Context(), onPostgres.at(t, b), onSQLite.at(t, c), true)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(there) != fmt.Sprint(back) {
		t.Errorf("%+v\n%+v", there, back)
	}
	for _, s := range there.Tables {
		if s.Rows == 0 {
			t.Errorf("table %s is empty", s.Table)
		}
	}
	if there.Rows("runs") < 6 || there.Rows("none") != 0 {
		t.Errorf("%+v", there)
	}
	p.Check(t, onSQLite.open, c, true)
	if _, err := archive.Copy(t.Context(), onSQLite.at(t, a), onPostgres.at(t, b), true); !errors.Is(err, store.ErrUsed) {
		t.Errorf("into a store that is used: %v", err)
	}
}

// TestDamagedArchives: an archive that is cut off anywhere, or has a byte changed, is
// refused, and nothing of it stays.
func TestDamagedArchives(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	storetest.Populate(t, onSQLite.open, from)
	var file bytes.Buffer
	wrote, err := archive.Write(t.Context(), &file, onSQLite.at(t, from), header, false)
	if err != nil {
		t.Fatal(err)
	}
	good := file.Bytes()
	refused := func(what string, b []byte) {
		t.Helper()
		if _, _, err := archive.Verify(bytes.NewReader(b)); err == nil {
			t.Errorf("%s is taken for whole", what)
		}
	}
	step, noticed := max(len(good)/400, 1), 0
	for n := 0; n < len(good); n += step {
		refused(fmt.Sprintf("an archive of %d bytes in place of %d", n, len(good)), good[:n])
		bad := slices.Clone(good)
		bad[n] ^= 0x41
		// What is compressed may be said in two ways, and a byte of gzip's header may say
		// nothing: what counts is what comes out, which is the same or refused.
		if _, seen, err := archive.Verify(bytes.NewReader(bad)); err == nil && fmt.Sprint(seen) != fmt.Sprint(wrote) {
			t.Errorf("a changed byte %d changes what is in it, and nobody notices", n)
		} else if err != nil {
			noticed++
		}
	}
	if noticed < 200 {
		t.Errorf("only %d changed bytes were noticed", noticed)
	}
	refused("one byte less", good[:len(good)-1])
	refused("something behind it", append(slices.Clone(good), 'x'))

	place := onSQLite.at(t, to)
	_, _, err = archive.Restore(t.Context(), bytes.NewReader(good[:len(good)/2]), place)
	if !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("half an archive: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(to, "fermata.db*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left is %v %v", left, err)
	}
	if _, _, err := archive.Restore(t.Context(), bytes.NewReader(good), place); err != nil {
		t.Error(err)
	}
}

// rewritten changes what is compressed in an archive.
func rewritten(t *testing.T, file []byte, change func(text string) string) []byte {
	t.Helper()
	i := bytes.IndexByte(file, '\n') + 1
	z, err := gzip.NewReader(bytes.NewReader(file[i:]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.Write(file[:i])
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, change(string(text))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestForgedArchives: what gzip does not notice the digests do, and what is newer is
// refused with the reason.
func TestForgedArchives(t *testing.T) {
	from := t.TempDir()
	storetest.Populate(t, onSQLite.open, from)
	var file bytes.Buffer
	if _, err := archive.Write(t.Context(), &file, onSQLite.at(t, from), header, false); err != nil {
		t.Fatal(err)
	}
	replace := func(old, by string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, old) {
				t.Errorf("there is no %q", old)
			}
			return strings.Replace(s, old, by, 1)
		}
	}
	tables := func(n int) string { return fmt.Sprintf(`"tables":%d,`, n) }
	for name, c := range map[string]struct {
		change func(string) string
		want   string
	}{
		"a row":         {replace("run.started", "run.starred"), "table events: its digest"},
		"a digest":      {replace(`"rows":1,"sha256":"`, `"rows":1,"sha256":"0`), "table"},
		"a count":       {replace(`"rows":2,`, `"rows":3,`), "table"},
		"a line":        {replace(`"program":"1.2.3"`, `"program":"1.2.4"`), "its digest is another"},
		"a table less":  {replace(`"table":"roles"`, `"table":"rules"`), `"rules" in place of roles`},
		"a column":      {replace(`["purpose","text"]`, `["intent","text"]`), `column "intent"`},
		"a kind":        {replace(`["purpose","text"]`, `["purpose","int"]`), `column "purpose"`},
		"no generation": {replace(tables(store.TablesVersion), tables(0)), "generation"},
		"a newer one":   {replace(tables(store.TablesVersion), tables(store.TablesVersion+1)), "use a newer program"},
	} {
		_, _, err := archive.Verify(bytes.NewReader(rewritten(t, file.Bytes(), c.change)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := archive.Verify(bytes.NewReader(rewritten(t, file.Bytes(), func(s string) string { return s }))); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	newer := bytes.Replace(file.Bytes(), []byte("fermata archive 1\n"), []byte("fermata archive 2\n"), 1)
	if _, _, err := archive.Verify(bytes.NewReader(newer)); err == nil || !strings.Contains(err.Error(), "form 2") {
		t.Errorf("a newer form: %v", err)
	}
	for _, other := range []string{"", "SQLite format 3\x00", "fermata archive", "fermata archive x\n", "fermata archive 1"} {
		if _, _, err := archive.Verify(strings.NewReader(other)); err == nil {
			t.Errorf("%q is an archive", other)
		}
	}
}

// changing visits rows of a place, some of them changed.
type changing struct {
	store.Place
	change func(t *store.Table, row []store.Value)
}

func (c changing) Dump(ctx context.Context, alone bool, visit store.Visit) error {
	return c.Place.Dump(ctx, alone, func(t *store.Table, row []store.Value) error {
		c.change(t, row)
		return visit(t, row)
	})
}

// TestAuditFaults: a chain that does not hold is moved as it is, and found.
func TestAuditFaults(t *testing.T) {
	from := t.TempDir()
	storetest.Populate(t, onSQLite.open, from)
	for name, c := range map[string]struct {
		change func(t *store.Table, row []store.Value)
		want   string
	}{
		"an entry": {func(t *store.Table, row []store.Value) {
			if t.Name == "audit_entries" && row[1].Int == 2 {
				row[2].Bytes = bytes.Replace(row[2].Bytes, []byte(`"c.d"`), []byte(`"c.e"`), 1)
			}
		}, ":host does not hold at 3"},
		"a head": {func(t *store.Table, row []store.Value) {
			if t.Name == "audit_heads" && string(row[0].Bytes) == "acme" {
				row[1].Int++
			}
		}, "acme does not hold at 6"},
		"a cut": {func(t *store.Table, row []store.Value) {
			if t.Name == "audit_cuts" {
				row[1].Int--
			}
		}, "acme does not hold at 2"},
	} {
		to := t.TempDir()
		r, err := archive.Copy(t.Context(), changing{onSQLite.at(t, from), c.change}, onSQLite.at(t, to), false)
		if err != nil || len(r.Faults) == 0 || r.Faults[0] != c.want || r.Chains != 2 {
			t.Errorf("%s: %+v: %v", name, r.Faults, err)
		}
	}
}

// distorting reads back something else than was written.
type distorting struct{ store.Place }

func (d distorting) Load(ctx context.Context, fill func(put store.Visit) error, check func(read func(store.Visit) error) error) error {
	return d.Place.Load(ctx, fill, func(read func(store.Visit) error) error {
		return check(func(visit store.Visit) error {
			n := 0
			return read(func(t *store.Table, row []store.Value) error {
				if n++; t.Name == "events" && row[2].Int == 0 {
					row[3].Int++
				}
				return visit(t, row)
			})
		})
	})
}

// TestWrittenIsReadBack: a place that does not give back what was put into it is
// refused, and left empty.
func TestWrittenIsReadBack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	storetest.Populate(t, onSQLite.open, from)
	_, err := archive.Copy(t.Context(), onSQLite.at(t, from), distorting{onSQLite.at(t, to)}, false)
	if err == nil || !strings.Contains(err.Error(), "table events is not what it should be") {
		t.Fatalf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(to, "fermata.db")); err == nil {
		t.Error("there is a database")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := archive.Copy(ctx, onSQLite.at(t, from), onSQLite.at(t, to), false); err == nil {
		t.Error("it was copied after its context had ended")
	}
}

// TestArchiveIsDocumented: the lines in an archive are JSON that says what it is.
func TestArchiveIsDocumented(t *testing.T) {
	from := t.TempDir()
	storetest.Populate(t, onSQLite.open, from)
	var file bytes.Buffer
	if _, err := archive.Write(t.Context(), &file, onSQLite.at(t, from), header, false); err != nil {
		t.Fatal(err)
	}
	var first struct {
		Tables           int
		Program, Backend string
	}
	rewritten(t, file.Bytes(), func(s string) string {
		line, _, _ := strings.Cut(s, "\n")
		if err := json.Unmarshal([]byte(line), &first); err != nil {
			t.Error(err)
		}
		return s
	})
	if first.Tables != store.TablesVersion || first.Program != "1.2.3" || first.Backend != "sqlite" {
		t.Errorf("%+v", first)
	}
}

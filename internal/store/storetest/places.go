package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/store"
)

// At is the place of the store that belongs to dir.
type At func(t *testing.T, dir string) store.Place

// RunPlaces checks the places of a backend against the contract of store.Place.
func RunPlaces(t *testing.T, open Open, at At) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, open Open, at At)
	}{
		{"move", move},
		{"nothing there", nothingThere},
		{"used", usedPlace},
		{"not finished", notFinished},
		{"one moment", oneMoment},
		{"malformed rows", malformedRows},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open, at)
		})
	}
}

type dumped struct {
	table string
	row   string
}

// dump is everything in a place, rows as text.
func dump(t *testing.T, p store.Place) (out []dumped, rows map[*store.Table][][]store.Value) {
	t.Helper()
	rows = map[*store.Table][][]store.Value{}
	err := p.Dump(t.Context(), false, func(tab *store.Table, row []store.Value) error {
		if err := tab.Check(row); err != nil {
			return err
		}
		kept := slices.Clone(row)
		for i := range kept {
			kept[i].Bytes = slices.Clone(kept[i].Bytes)
		}
		out, rows[tab] = append(out, dumped{tab.Name, text(tab, row)}), append(rows[tab], kept)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, rows
}

// text is a row without its fences.
func text(tab *store.Table, row []store.Value) string {
	var b strings.Builder
	for i, v := range row {
		switch c := tab.Columns[i]; {
		case c.Fence:
		case v.Null:
			b.WriteString(" NULL")
		case c.Kind.Whole():
			fmt.Fprintf(&b, " %d", v.Int)
		default:
			fmt.Fprintf(&b, " %q", v.Bytes)
		}
	}
	return b.String()
}

// load fills a place with rows, fences raised.
func load(ctx context.Context, p store.Place, rows map[*store.Table][][]store.Value, check func(read func(store.Visit) error) error) error {
	return p.Load(ctx, func(put store.Visit) error {
		for _, tab := range store.Tables {
			for _, row := range rows[tab] {
				row = slices.Clone(row)
				for i, c := range tab.Columns {
					if c.Fence {
						row[i].Int += 1 << 32
					}
				}
				if err := put(tab, row); err != nil {
					return err
				}
			}
		}
		return nil
	}, check)
}

func wellDone(func(store.Visit) error) error { return nil }

// move: every table has rows, in order of their keys; what was loaded is the same, and
// a host goes on with it.
func move(t *testing.T, open Open, at At) {
	from, to := t.TempDir(), t.TempDir()
	p := Populate(t, open, from)
	want, rows := dump(t, at(t, from))
	var order []string
	for _, tab := range store.Tables {
		if len(rows[tab]) == 0 {
			t.Errorf("table %s has no row: nobody has tried it", tab.Name)
		}
		order = append(order, tab.Name)
		for i := 1; i < len(rows[tab]); i++ {
			if !before(tab, rows[tab][i-1], rows[tab][i]) {
				t.Errorf("table %s is not in order:\n%s\n%s", tab.Name, text(tab, rows[tab][i-1]), text(tab, rows[tab][i]))
			}
		}
	}
	var seen []string
	for _, d := range want {
		if len(seen) == 0 || seen[len(seen)-1] != d.table {
			seen = append(seen, d.table)
		}
	}
	if !slices.Equal(seen, order) {
		t.Errorf("tables in the order %v", seen)
	}
	n := 0
	err := load(t.Context(), at(t, to), rows, func(read func(store.Visit) error) error {
		return read(func(tab *store.Table, row []store.Value) error {
			if n >= len(want) || want[n] != (dumped{tab.Name, text(tab, row)}) {
				t.Errorf("row %d reads back as %s %s", n, tab.Name, text(tab, row))
			}
			n++
			return nil
		})
	})
	if err != nil || n != len(want) {
		t.Fatalf("%d rows of %d: %v", n, len(want), err)
	}
	if got, _ := dump(t, at(t, to)); !slices.Equal(got, want) {
		t.Error("the copy is another one")
	}
	p.Check(t, open, to, true)
	p.Check(t, open, from, false) // which nobody has touched
}

// before compares keys by their bytes.
func before(tab *store.Table, a, b []store.Value) bool {
	for i := range tab.Key {
		c := strings.Compare(string(a[i].Bytes), string(b[i].Bytes))
		if tab.Columns[i].Kind.Whole() {
			c = int(min(max(a[i].Int-b[i].Int, -1), 1))
		}
		if c != 0 {
			return c < 0
		}
	}
	return false
}

func nothingThere(t *testing.T, open Open, at At) {
	err := at(t, t.TempDir()).Dump(t.Context(), false, func(*store.Table, []store.Value) error { return nil })
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a place with nothing in it: %v", err)
	}
	// A store without rows can be loaded.
	dir := t.TempDir()
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := dump(t, at(t, dir)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if err := load(t.Context(), at(t, dir), nil, wellDone); err != nil {
		t.Error(err)
	}
}

// usedPlace: what is there stays as it is.
func usedPlace(t *testing.T, open Open, at At) {
	dir := t.TempDir()
	p := Populate(t, open, dir)
	if err := load(t.Context(), at(t, dir), nil, wellDone); !errors.Is(err, store.ErrUsed) {
		t.Errorf("%v", err)
	}
	p.Check(t, open, dir, false)

	// One row is enough.
	dir = t.TempDir()
	s := open(t, dir)
	if err := s.Tenants().Add(t.Context(), store.Tenant{ID: "acme", State: store.TenantActive}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := load(t.Context(), at(t, dir), nil, wellDone); !errors.Is(err, store.ErrUsed) {
		t.Errorf("%v", err)
	}
}

// notFinished: whatever goes wrong on the way, nothing is left, and another try works.
func notFinished(t *testing.T, open Open, at At) {
	from, to := t.TempDir(), t.TempDir()
	p := Populate(t, open, from)
	_, rows := dump(t, at(t, from))
	why := errors.New("why")
	place := at(t, to)
	half := func(put store.Visit) error {
		for _, tab := range store.Tables[:10] {
			for _, row := range rows[tab] {
				if err := put(tab, row); err != nil {
					return err
				}
			}
		}
		return why
	}
	if err := place.Load(t.Context(), half, wellDone); !errors.Is(err, why) {
		t.Errorf("a source that fails: %v", err)
	}
	if err := load(t.Context(), place, rows, func(func(store.Visit) error) error { return why }); !errors.Is(err, why) {
		t.Errorf("a check that fails: %v", err)
	}
	twice := func(put store.Visit) error {
		for range 2 {
			if err := put(store.Tables[0], rows[store.Tables[0]][0]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := place.Load(t.Context(), twice, wellDone); err == nil {
		t.Error("two rows with one key were loaded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := place.Load(ctx, func(put store.Visit) error { cancel(); return half(put) }, wellDone); err == nil {
		t.Error("it went on after its context had ended")
	}
	s := open(t, to) // a host may start on it, if anybody wants that
	if n, err := s.Keys().Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d keys: %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := load(t.Context(), place, rows, wellDone); err != nil {
		t.Fatal(err)
	}
	p.Check(t, open, to, true)
}

// oneMoment: whatever is written meanwhile, what is read is of one moment, and the
// writer does not wait.
func oneMoment(t *testing.T, open Open, at At) {
	e := &env{T: t, ctx: t.Context(), open: open, dir: t.TempDir(), mint: &ids.Minter{}, now: epoch0}
	e.s = open(t, e.dir)
	defer e.s.Close() //nolint:errcheck // it is read only
	var logs []*log
	for range 5 {
		logs = append(logs, e.create(e.id("acme")))
	}
	rows, ends := map[string]int64{}, map[string]int64{}
	err := at(t, e.dir).Dump(t.Context(), false, func(tab *store.Table, row []store.Value) error {
		for _, l := range logs { // between any two rows
			l.grow(note("meanwhile"))
		}
		if e.create(e.id("acme")); tab.Name == "runs" {
			rows[string(row[1].Bytes)] = row[5].Int
		}
		if tab.Name == "events" {
			ends[string(row[1].Bytes)] = row[2].Int + row[3].Int - 1
		}
		return nil
	})
	e.ok(err)
	same(e, "runs", len(rows), 5)
	same(e, "ends of logs", ends, rows)
	for _, l := range logs {
		if l.row.Seq <= rows[l.row.ID.Opaque] {
			t.Error("nothing was written meanwhile")
		}
		l.check()
	}
}

func malformedRows(t *testing.T, _ Open, at At) {
	tab := store.TableOf("tenants")
	for name, row := range map[string][]store.Value{
		"short": {{Bytes: []byte("acme")}},
		"null":  {{Null: true}, {}, {}, {}, {}, {}},
		"bool":  {{Bytes: []byte("a")}, {}, {Bytes: []byte("active")}, {}, {Int: 2}, {}},
	} {
		err := at(t, t.TempDir()).Load(t.Context(), func(put store.Visit) error { return put(tab, row) }, wellDone)
		if err == nil {
			t.Errorf("a row that is %s was loaded", name)
		}
	}
}

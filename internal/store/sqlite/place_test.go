package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/storetest"
)

func TestPlaces(t *testing.T) {
	storetest.RunPlaces(t,
		func(t *testing.T, dir string) store.Store { return openTest(t, dir, Options{}) },
		func(_ *testing.T, dir string) store.Place { return At(filepath.Join(dir, "fermata.db")) })
}

// TestEveryTableMoves: what is in the database is in store.Tables or left out for a
// reason, column by column.
func TestEveryTableMoves(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	c, err := s.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	there := map[string]bool{}
	err = c.prep(`SELECT m.name, p.name, p.pk FROM sqlite_schema m, pragma_table_info(m.name) p
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`).each(func(r *row) (bool, error) {
		table, column, key := r.text(), r.text(), r.int()
		there[table], there[table+"."+column] = true, true
		known := store.TableOf(table)
		if leftOut[table] != "" || leftOut[table+"."+column] != "" {
			return true, nil
		}
		if known == nil {
			t.Errorf("table %s is neither moved nor left out", table)
			return true, nil
		}
		for i, k := range known.Columns {
			if k.Name == column {
				if (key > 0) != (i < known.Key) || key > 0 && int(key) != i+1 {
					t.Errorf("%s.%s has place %d in the key, and column %d of %d moves as one of it", table, column, key, i+1, known.Key)
				}
				return true, nil
			}
		}
		t.Errorf("column %s.%s is neither moved nor left out", table, column)
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range leftOut {
		if !there[name] {
			t.Errorf("%s is left out and not there", name)
		}
	}
	if len(there) < 100 {
		t.Errorf("only %d tables and columns were found", len(there))
	}
}

// TestDumpBesideAHost: a reader takes no lock unless it is to be alone, and a folder
// is neither read alone nor written while a host has it.
func TestDumpBesideAHost(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	if err := s.Runs().Append(t.Context(), newStep(1)); err != nil {
		t.Fatal(err)
	}
	place, n := At(filepath.Join(dir, "fermata.db")), 0
	count := func(*store.Table, []store.Value) error { n++; return nil }
	if err := place.Dump(t.Context(), false, count); err != nil || n != 2 {
		t.Errorf("%d rows: %v", n, err)
	}
	if err := place.Dump(t.Context(), true, count); !errors.Is(err, store.ErrInUse) {
		t.Errorf("alone beside a host: %v", err)
	}
	nothing := func(func(store.Visit) error) error { return nil }
	if err := place.Load(t.Context(), func(store.Visit) error { return nil }, nothing); !errors.Is(err, store.ErrInUse) {
		t.Errorf("a load beside a host: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	err := place.Dump(t.Context(), true, func(*store.Table, []store.Value) error {
		if _, err := Open(filepath.Join(dir, "fermata.db"), Options{}); !errors.Is(err, errInUse) {
			t.Errorf("a host starts while the folder is read alone: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestUnfinishedLoad: a load whose process died leaves a file beside which no host
// starts; the next load takes its place.
func TestUnfinishedLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fermata.db")
	place := At(path)
	nothing := func(func(store.Visit) error) error { return nil }
	err := place.Load(t.Context(), func(store.Visit) error {
		// What another process would find if this one died now.
		b, err := os.ReadFile(path + unfinished)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "copy"), b, 0o600)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the database has its name already: %v", err)
		}
		return errors.Join(err, context.Canceled)
	}, nothing)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "copy"), path+unfinished); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "has not come to its end") {
		t.Errorf("a host starts: %v", err)
	}
	if err := place.Load(t.Context(), func(store.Visit) error { return nil }, nothing); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir, Options{}).Close()
	left, err := filepath.Glob(path + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("left are %v %v", left, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestDumpOfAnotherSchema: a folder of another version is not read, and not changed.
func TestDumpOfAnotherSchema(t *testing.T) {
	for version, want := range map[string]string{"3": "needs", "99": "newer program"} {
		dir := t.TempDir()
		s := openTest(t, dir, Options{})
		c, err := s.connect()
		if err == nil {
			err = errors.Join(c.db.Exec(`PRAGMA user_version = `+version), c.close(), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		err = At(filepath.Join(dir, "fermata.db")).Dump(t.Context(), false, func(*store.Table, []store.Value) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %s: %v", version, err)
		}
	}
}

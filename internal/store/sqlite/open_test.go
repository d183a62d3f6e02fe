package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFolderIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	_, err := Open(filepath.Join(dir, "fermata.db"), Options{})
	if err == nil || !strings.Contains(err.Error(), "data folder is in use by another process") {
		t.Fatalf("opened twice: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir, Options{})
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no file modes on Windows")
	}
	dir := filepath.Join(t.TempDir(), "new", "data ?a=b#%41&\u20ac")
	s := openTest(t, dir, Options{})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen != 6 { // two folders, database, log, index, lock
		t.Fatalf("%d files: %v", seen, err)
	}
}

func TestWriteAheadLogIsSynced(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	for range 2 { // writer and reader
		err := s.readers.read(t.Context(), func(c *conn) error {
			for sql, want := range map[string]string{`PRAGMA journal_mode`: "wal", `PRAGMA synchronous`: "2"} {
				var got string
				if _, err := c.prep(sql).one(func(r *row) { got = r.text() }); err != nil || got != want {
					t.Errorf("%s is %q, want %q: %v", sql, got, want, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := s.writer.submit(t.Context(), 0, func(c *conn) error {
		var got string
		_, err := c.prep(`PRAGMA synchronous`).one(func(r *row) { got = r.text() })
		if got != "2" {
			t.Errorf("the writer's synchronous is %q", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMigrationsAreNumbered(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", files, err)
	}
	for i, f := range files {
		number, _, _ := strings.Cut(filepath.Base(f), "_")
		if want := fmt.Sprintf("%04d", i+1); number != want {
			t.Errorf("%s is not number %s", f, want)
		}
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	err := s.writer.submit(t.Context(), 0, func(c *conn) error { return c.prep(`PRAGMA user_version = 99`).run() })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(filepath.Join(dir, "fermata.db"), Options{})
	if err == nil || !strings.Contains(err.Error(), "use a newer program") {
		t.Fatalf("a newer database: %v", err)
	}
}

func TestMigrationIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	unlock, err := prepare(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	c, err := openConn(path, "", readerCache)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := apply(c, `CREATE TABLE half (a); CREATE TABLE half (b);`, 1); err == nil {
		t.Fatal("a broken migration was applied")
	}
	found, err := c.prep(`SELECT 1 FROM sqlite_schema`).one(func(*row) {})
	if err != nil || found {
		t.Fatalf("a broken migration left something behind: %v", err)
	}
	if err := migrate(c); err != nil {
		t.Fatal(err)
	}
	if err := migrate(c); err != nil { // nothing left to do
		t.Fatal(err)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fermata.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the folder is not left locked
		if _, err := Open(path, Options{}); err == nil || errors.Is(err, errInUse) {
			t.Fatalf("a text file: %v", err)
		}
	}
	if _, err := Open(dir, Options{}); err == nil {
		t.Fatal("opened a folder")
	}
}

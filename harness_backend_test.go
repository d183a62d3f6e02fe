package fermata_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/ncruces/go-sqlite3"
)

// onPostgres says whether the tests of the wire run on the shared backend: with
// FERMATA_TEST_BACKEND=postgres each of them has a database of its own.
func onPostgres() bool { return os.Getenv("FERMATA_TEST_BACKEND") == "postgres" }

var testMasterKey = fermata.NewMasterKey()

// backend puts a host under test on the backend that was asked for.
func backend(t testing.TB, cfg *fermata.Config) {
	t.Helper()
	if onPostgres() && cfg.Store == "" {
		cfg.Store = pgtest.Database(t, cfg.DataDir)
		cfg.StoreConnections = 8
	}
	if cfg.Store != "" && cfg.MasterKey == "" && cfg.MasterKeyFile == "" && cfg.MasterKeys == nil {
		cfg.MasterKey = testMasterKey
	}
}

// tamper does sql to the database of a host that is down.
func (s *server) tamper(sql string) {
	s.t.Helper()
	if s.cfg.Store != "" {
		u, err := url.Parse(s.cfg.Store)
		if err == nil {
			err = pgtest.Shared(s.t).Exec(s.t.Context(), strings.Trim(u.Path, "/"), sql)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return
	}
	db, err := sqlite3.Open(filepath.Join(s.dir, "fermata.db"))
	if err == nil {
		err = errors.Join(db.Exec(sql), db.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// onlySQLite skips a test that looks into the files of a data folder.
func onlySQLite(t testing.TB) {
	t.Helper()
	if onPostgres() {
		t.Skip("it looks into the files of a data folder")
	}
}

package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"sync"
	"testing"
)

var shared struct {
	mu  sync.Mutex
	c   *Cluster
	err error
	dbs map[string]bool
}

// Run executes a package's tests and ends the server they have started, if any. A
// package whose tests use Database calls it from TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	Close()
	return code
}

// Close ends the server that tests of this process share.
func Close() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.c != nil {
		shared.c.Close()
		shared.c = nil
	}
}

// Shared is the server that tests of this process share. The test is skipped if the
// machine has none; where FERMATA_TEST_POSTGRES is set to "required" it fails.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.c == nil && shared.err == nil {
		shared.c, shared.err = start()
	}
	refuse(t, shared.err)
	return shared.c
}

// New is a server of the test's own, which may be stopped.
func New(t testing.TB) *Cluster {
	t.Helper()
	c, err := start()
	refuse(t, err)
	t.Cleanup(c.Close)
	return c
}

func refuse(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, ErrAbsent) && os.Getenv("FERMATA_TEST_POSTGRES") != "required":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// Database is the address of a database of the shared server that belongs to a name,
// such as a folder: the same name gives the same database again.
func Database(t testing.TB, name string) string {
	t.Helper()
	c := Shared(t)
	sum := sha256.Sum256([]byte(name))
	db := "t" + hex.EncodeToString(sum[:12])
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.dbs == nil {
		shared.dbs = map[string]bool{}
	}
	if !shared.dbs[db] {
		if err := c.Exec(context.Background(), "postgres", "CREATE DATABASE "+db); err != nil {
			t.Fatal(err)
		}
		shared.dbs[db] = true
	}
	return c.Address(db)
}

package cli

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// realMigrator looks after real databases, as the program does.
type realMigrator struct{}

func (realMigrator) Status(ctx context.Context, store string) (Schema, error) {
	s, err := fermata.SchemaStatus(ctx, store)
	return Schema(s), err
}

func (realMigrator) Up(ctx context.Context, store string, partitions int) (Schema, error) {
	s, err := fermata.MigrateUp(ctx, store, partitions)
	return Schema(s), err
}

// shared is a world whose hosts are on one database.
func shared(t *testing.T, store, master string) *world {
	w := newWorld(t)
	w.vars["FERMATA_STORE"], w.vars["FERMATA_MASTER_KEY"] = store, master
	return w
}

// A lost key is made up for in a shared database while a host works with it; a
// database that no host has been on stays as it is.
func TestKeysRecoverShared(t *testing.T) {
	store, master := pgtest.Database(t, t.TempDir()), fermata.NewMasterKey()
	w := shared(t, store, master)
	if code := w.run("keys", "recover"); code != ExitFailed {
		t.Errorf("without data: exit %d", code)
	}
	contains(t, w.err.String(), "there is no host's data in postgres://")
	contains(t, w.must("migrate", "status", "--json"), `"version": 0`)

	w.vars["FERMATA_BOOTSTRAP_KEY"] = testKey
	done := w.start("serve", "--listen", "127.0.0.1:0")
	url := w.serving()
	other := shared(t, "", master)
	made := strings.Fields(other.must("keys", "recover", "--store", store))
	if len(made) != 3 {
		t.Fatalf("%q", made)
	}
	wrong := shared(t, store, fermata.NewMasterKey())
	if code := wrong.run("keys", "recover"); code != ExitFailed {
		t.Errorf("with another master key: exit %d: %s", code, wrong.out)
	}
	for _, key := range []string{testKey, made[2]} {
		other = newWorld(t)
		other.vars["FERMATA_SERVER"], other.vars["FERMATA_API_KEY"] = url, key
		contains(t, other.must("keys", "list"), "first key", "recovered")
	}
	w.signals <- os.Interrupt
	w.wait(done)
}

// Partitions are decided when the tables are made, and said afterwards; any other
// number is refused and changes nothing.
func TestMigratePartitions(t *testing.T) {
	w := shared(t, pgtest.Database(t, t.TempDir()), "")
	for _, n := range []string{"1", "-2", "257", "many"} {
		if code := w.run("migrate", "up", "--partitions", n); code != ExitUsage {
			t.Errorf("%s partitions: exit %d: %s", n, code, w.err.String())
		}
	}
	contains(t, w.must("migrate", "status", "--json"), `"version": 0`, `"partitions": 0`)
	contains(t, w.must("migrate", "up", "--partitions", "3"), "in 3 partitions")
	if code := w.run("migrate", "up", "--partitions", "4"); code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "it has 3, and not 4")
	contains(t, w.must("migrate", "up"), "in 3 partitions")
	contains(t, w.must("migrate", "status", "--json"), `"partitions": 3`)
}

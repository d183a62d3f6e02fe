package fermata

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/postgres"
	"github.com/fermata-run/fermata/internal/store/sqlite"
)

// openStore opens the backend that the configuration names.
func openStore(ctx context.Context, cfg Config) (store.Store, error) {
	if cfg.Store == "" {
		return sqlite.Open(filepath.Join(cfg.DataDir, "fermata.db"), sqlite.Options{})
	}
	listen := cfg.StoreListen
	if listen == SameStore {
		listen = cfg.Store
	}
	return postgres.Open(ctx, cfg.Store, postgres.Options{Connections: cfg.StoreConnections, Migrate: true, Listen: listen, Log: cfg.Logger, Timeout: silence(cfg.Lease)})
}

// silence is how long a host waits for the database to say something. Who hears nothing
// for as long as a lease lasts is lost to the others anyway.
func silence(lease time.Duration) time.Duration {
	if lease == 0 {
		return 0
	}
	return min(max(lease, 5*time.Second), 20*time.Second)
}

// agreeEvery is how often a host of several asks the database for the time.
const agreeEvery = 30 * time.Second

// agree sets the host's clock by the database's, where several hosts share one: what
// one of them puts off, another one must find due at the same moment.
func (h *Host) agree(ctx context.Context) error {
	if h.shared == nil {
		return nil
	}
	before := h.clock.Machine()
	said, err := h.shared.Now(ctx)
	if after := h.clock.Machine(); err == nil && after.Sub(before) < time.Second {
		h.clock.Agree(before, said, after)
	}
	return err
}

// keepTime agrees again and again. A database that cannot be asked leaves the clock
// as it is.
func (h *Host) keepTime(ctx context.Context) {
	if h.shared == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(agreeEvery):
		}
		if err := h.agree(ctx); err != nil && ctx.Err() == nil {
			h.cfg.Logger.Warn("the database does not say what time it is", "err", err)
		}
	}
}

// Schema says how far a shared database has been migrated, and how far this program
// goes.
type Schema = postgres.Schema

// SchemaStatus reads how far the database of an address (Config.Store) is.
func SchemaStatus(ctx context.Context, address string) (Schema, error) {
	return postgres.Status(ctx, address)
}

// MigrateUp brings the database of an address to the schema of this program. Hosts
// that work with it go on: what a newer one adds, the one before does not notice. With
// partitions (from 2 to 256; 0 for none) the tables of a new database that grow with runs
// come in so many parts, by hash of the run; afterwards it can only be the same number.
func MigrateUp(ctx context.Context, address string, partitions int) (Schema, error) {
	return postgres.Up(ctx, address, partitions)
}

package fermata

import (
	"context"
	"path/filepath"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/postgres"
	"github.com/fermata-run/fermata/internal/store/sqlite"
)

// openStore opens the backend that the configuration names.
func openStore(ctx context.Context, cfg Config) (store.Store, error) {
	if cfg.Store == "" {
		return sqlite.Open(filepath.Join(cfg.DataDir, "fermata.db"), sqlite.Options{})
	}
	return postgres.Open(ctx, cfg.Store, postgres.Options{Connections: cfg.StoreConnections, Migrate: true})
}

// Schema says how far a shared database has been migrated, and how far this program
// goes.
type Schema = postgres.Schema

// SchemaStatus reads how far the database of an address (Config.Store) is.
func SchemaStatus(ctx context.Context, address string) (Schema, error) {
	return postgres.Status(ctx, address)
}

// MigrateUp brings the database of an address to the schema of this program. Hosts
// that work with it go on: what a newer one adds, the one before does not notice.
func MigrateUp(ctx context.Context, address string) (Schema, error) {
	return postgres.Up(ctx, address)
}

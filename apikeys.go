package fermata

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/store/sqlite"
)

// CreateKey adds an API key with every right in one tenant to a data folder that
// no host is using, and returns it. It is stored as a hash only: nobody can show
// it again. An empty key means a generated one.
func CreateKey(ctx context.Context, dataDir, tenant, name, key string) (string, error) {
	path := filepath.Join(dataDir, "fermata.db")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no host's data in %s: %w", dataDir, err)
	}
	db, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return "", err
	}
	defer db.Close()
	if key == "" {
		key = identity.Generate()
	}
	now := clock.System{}.Now()
	ctx = host.Bootstrapping(ctx, tenant, identity.KeyID(key), now)
	if _, err := identity.NewAPIKeys(db.Keys()).Add(ctx, key, tenant, name, identity.Grants{}, now); err != nil {
		return "", err
	}
	return key, nil
}

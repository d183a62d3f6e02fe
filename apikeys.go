package fermata

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
)

// CreateKey adds an API key with every right in one tenant to a data folder that
// no host is using, and returns it. It is stored as a hash only: nobody can show
// it again. An empty key means a generated one.
//
// In place of a folder it takes the address of a database that hosts share
// (Config.Store); they may be at work.
func CreateKey(ctx context.Context, dataDir, tenant, name, key string) (string, error) {
	cfg := Config{DataDir: dataDir}
	if strings.HasPrefix(dataDir, "postgres://") || strings.HasPrefix(dataDir, "postgresql://") {
		cfg = Config{Store: dataDir}
	} else if _, err := os.Stat(filepath.Join(dataDir, "fermata.db")); err != nil {
		return "", fmt.Errorf("there is no host's data in %s: %w", dataDir, err)
	}
	db, err := openStore(ctx, cfg)
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

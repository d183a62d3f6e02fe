package fermata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/sqlite"
)

// Recovery says which key is to be made in a data folder that no host is using.
type Recovery struct {
	DataDir string
	Tenant  string // DefaultTenant if empty; its key is the host's administrator's, too
	Name    string
	Key     string // generated if empty
	Logger  *slog.Logger
}

// RecoverKey makes an API key with every right in a tenant that is there, and
// returns it. Whoever has the data folder in hand has everything in it: this is for
// a key that was lost. It fails while a host uses the folder. DefaultTenant becomes
// active if it was suspended; another tenant stays what it is.
func RecoverKey(ctx context.Context, r Recovery) (key string, err error) {
	path := filepath.Join(r.DataDir, "fermata.db")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no host's data in %s: %w", r.DataDir, err)
	}
	db, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return recoverKey(ctx, db, r)
}

func recoverKey(ctx context.Context, db store.Store, r Recovery) (string, error) {
	if r.Tenant == "" {
		r.Tenant = DefaultTenant
	}
	if r.Name == "" {
		r.Name = "recovered"
	}
	if r.Key == "" {
		r.Key = identity.Generate()
	}
	t, err := db.Tenants().Get(ctx, r.Tenant)
	if errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("there is no tenant %q in this data folder", r.Tenant)
	}
	if err != nil {
		return "", err
	}
	now := clock.System{}.Now
	keys, err := identity.OpenAPIKeys(ctx, db.Keys(), db.Secrets(), now)
	if err != nil {
		return "", err
	}
	owner, _ := identity.RoleScopes(identity.Owner)
	g := identity.Grants{ID: identity.NewKeyID(), Scopes: owner}
	if r.Tenant == DefaultTenant {
		g.Scopes = adminScopes()
	}
	ctx = host.Bootstrapping(ctx, r.Tenant, g.ID, now())
	id, err := keys.Add(ctx, r.Key, r.Tenant, r.Name, g, now())
	if err != nil {
		return "", err
	}
	if r.Tenant == DefaultTenant && t.State != store.TenantActive {
		t.State, t.Unsettled = store.TenantActive, true
		if err := db.Tenants().Update(ctx, t); err != nil {
			return "", err
		}
	}
	if r.Logger != nil {
		r.Logger.Warn("an API key was made from the shell", "tenant", r.Tenant, "key", id, "name", r.Name)
	}
	return r.Key, nil
}

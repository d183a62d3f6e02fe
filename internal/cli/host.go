package cli

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/config"
	"github.com/fermata-run/fermata/internal/host"
)

// Host is the embedded host, as far as the command line needs it.
type Host interface {
	// Start begins to run workflows, first those an earlier process left behind.
	Start(ctx context.Context) error

	// Stop ends the host within ctx: open event streams end, executing nodes may
	// come to their end, and what is cut off goes on at the next start. A host
	// that was never started can be stopped too.
	Stop(ctx context.Context) error

	// Handler is the HTTP surface.
	Handler() http.Handler

	// FirstKey is the API key that Open made because the data folder held none.
	// It is empty on every later start, and where the operator chose the key.
	FirstKey() string

	// Client calls the host within this process, with every right. It works from
	// Start to Stop (client.InProcess makes a transport of a handler).
	Client() *client.Client
}

// Leaver is a Host that can say that it is about to stop.
type Leaver interface {
	// Leave has the host answer that it is not ready. It goes on with everything else.
	Leave()
}

// Pruner is a Host that can let go of runs.
type Pruner interface {
	Prune(ctx context.Context, r host.Prune) (host.Pruned, error)
}

// Recoverer is a Host that can make a key for whoever has its data folder in hand.
type Recoverer interface {
	// RecoverKey makes an API key with every right in a tenant. Empty texts mean the
	// first tenant, a usual name and a generated key.
	RecoverKey(ctx context.Context, tenant, name, key string) (string, error)
}

// Open makes a host of a configuration whose Data folder exists. Nothing runs
// before Start.
type Open func(ctx context.Context, cfg config.Config, log *slog.Logger) (Host, error)

// Package fermata is a durable host for OpenWOP, the open HTTP + SSE protocol
// for multi-agent workflows, that a Go program can embed: open a Host, register
// node types of your own, mount its Handler, Start it.
//
//	h, err := fermata.Open(ctx, fermata.Config{DataDir: "data"})
//	h.RegisterNode(node.Type{ID: "acme.greet", Run: …})
//	h.Start(ctx)
//	http.ListenAndServe("127.0.0.1:7411", h.Handler())
//
// A run is an append-only event log in the data folder. It survives the process
// being killed at any instant and may wait for a person for as long as it takes.
package fermata

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/api/overlap"
	"github.com/fermata-run/fermata/internal/api/seams"
	"github.com/fermata-run/fermata/internal/builtin"
	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/relax"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/vault"
	"github.com/fermata-run/fermata/internal/webhook"
	"github.com/fermata-run/fermata/node"
)

// Version is the version of this implementation.
const Version = "0.1.0"

// DefaultTenant is the tenant of the first API key.
const DefaultTenant = "default"

// maxBodyBytes leaves room for the envelopes around what a body holds
// (store.MaxValue).
const maxBodyBytes = store.MaxValue / 2

// Host is a running fermata. Its methods are safe for concurrent use.
type Host struct {
	cfg      Config
	bounds   host.Limits
	catalog  *catalog
	store    store.Store
	vault    *vault.Vault
	redact   *redact.Redactor
	egress   *egress.Guard
	engine   *engine.Engine
	host     *host.Host
	keys     *identity.APIKeys
	lanes    *identity.Pipeline
	api      overlap.Wire
	seams    *seams.API // nil unless the host was started for a conformance suite
	signing  []host.SigningKey
	firstKey string
	sweeper  *background
	ticker   *background
	uses     *background
	auditor  *background
	hooks    *egress.Guard
	issuers  *egress.Guard
	worker   *webhook.Worker
	courier  *background
	shared   store.Replicas // nil if the store belongs to this process
	clock    clock.Shared
	timing   *background
}

// Open opens the data folder and puts a host together. Nothing runs before Start.
func Open(ctx context.Context, cfg Config) (*Host, error) {
	if cfg.DataDir == "" && cfg.Store == "" {
		return nil, errors.New("fermata: Config.DataDir or Config.Store is required")
	}
	if cfg.StoreListen != "" && cfg.Store == "" {
		return nil, errors.New("fermata: Config.StoreListen is about Config.Store, and there is none")
	}
	if cfg.Limits.MaxBodyBytes > maxBodyBytes {
		return nil, fmt.Errorf("fermata: Limits.MaxBodyBytes is at most %d, so that everything made of one body fits the store", maxBodyBytes)
	}
	if err := cfg.checkMode(); err != nil {
		return nil, err
	}
	bounds, err := cfg.bounds()
	if err != nil {
		return nil, err
	}
	if cfg.Retention == nil {
		r := host.DefaultRetention()
		cfg.Retention = &r
	}
	if err := cfg.Retention.Check(); err != nil {
		return nil, fmt.Errorf("fermata: Config.Retention: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	secrets := newRedactor(&cfg)
	cfg.Logger = slog.New(redact.Handler(cfg.Logger.Handler(), secrets))
	trust, err := egressTrust(cfg.EgressCAFile)
	if err != nil {
		return nil, err
	}
	h := &Host{
		cfg: cfg, bounds: bounds, redact: secrets, egress: egress.New(egress.Options{AllowPrefixes: cfg.AllowEgress, TLS: trust}),
		hooks: egress.New(egress.Options{
			AllowPrefixes: cfg.Webhooks.Allow, TLS: &tls.Config{RootCAs: cfg.Webhooks.RootCAs}, MaxBodyBytes: 1 << 20,
		}),
		issuers: issuerGuard(cfg.Lanes),
	}
	h.clock.Wrong = cfg.wrongClock
	if h.signing, err = readSigningKeys(cfg.SigningKeys); err != nil {
		return nil, err
	}
	if h.catalog, err = newCatalog(builtin.All(builtin.Deps{Egress: h.egress})); err != nil {
		return nil, err
	}
	for _, t := range cfg.Nodes {
		if err := h.catalog.add(t); err != nil {
			return nil, err
		}
	}
	if err := h.catalog.seams.Add(cfg.Seams...); err != nil {
		return nil, fmt.Errorf("fermata: %w", err)
	}
	db, err := openStore(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h.shared, _ = db.(store.Replicas)
	err = h.agree(ctx)
	if err == nil {
		if h.store, err = h.sealed(ctx, db); err == nil {
			err = h.assemble(ctx)
		}
	}
	if err != nil {
		db.Close() //nolint:errcheck // the first failure counts
		return nil, err
	}
	return h, nil
}

func or[T int | int64](v, fallback T) T {
	if v == 0 {
		return fallback
	}
	return v
}

// RegisterNode adds a node type. Call it before Start: a run that is recovered
// needs the types it was started with.
func (h *Host) RegisterNode(t node.Type) error { return h.catalog.add(t) }

// Start begins to run workflows, first those an earlier process left behind.
func (h *Host) Start(ctx context.Context) error {
	h.catalog.freeze()
	if err := h.engine.Start(ctx); err != nil {
		return err
	}
	h.sweeper = begin(h.host.Sweep)
	h.ticker = begin(h.host.Tick)
	h.auditor = begin(h.host.Audit)
	h.courier = begin(h.worker.Run)
	h.uses = begin(func(ctx context.Context) {
		h.keys.FlushEvery(ctx, clock.System{}.After, func(err error) { h.cfg.Logger.Warn("the use of API keys was not taken down", "err", err) })
	})
	h.timing = begin(h.keepTime)
	return nil
}

// Stop ends the host: it takes on no more work, lets executing nodes come to an
// end until ctx is done, ends open streams and closes the store. What was cut
// off goes on at the next start.
func (h *Host) Stop(ctx context.Context) error {
	h.ticker.end(ctx) // before the engine takes no more runs
	h.sweeper.end(ctx)
	h.courier.end(ctx)
	h.uses.end(ctx)
	h.timing.end(ctx)
	err := h.engine.Stop(ctx)
	h.auditor.end(ctx) // what was done until now is in its last checkpoint
	h.egress.Close()
	h.hooks.Close()
	h.issuers.Close()
	return errors.Join(err, h.store.Close())
}

// Leave has the host say that it is not ready (GET /host/fermata/ready) while it goes on
// with everything else: whoever sends it work has time to send it elsewhere before Stop.
func (h *Host) Leave() { h.host.Leave() }

// Client calls the host from within this process, as a caller with every right
// in DefaultTenant. It works from Start to Stop and sends nothing over a network.
func (h *Host) Client() *client.Client {
	caller := identity.Local(DefaultTenant)
	caller.Membership = identity.Membership{Groups: h.cfg.BootstrapGroups, Roles: h.cfg.BootstrapRoles, Source: "configuration"}
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.api.ServeHTTP(w, r.WithContext(identity.WithCaller(r.Context(), caller)))
	})
	c, err := client.New("http://in-process.invalid", "", client.WithTransport(client.InProcess(local)))
	if err != nil {
		panic(err) // the address is a constant
	}
	return c
}

// RotateTokenKey makes a new key for interrupt tokens and returns its id. Tokens
// given out before stay good until they expire. Without it a key is replaced
// after thirty days.
func (h *Host) RotateTokenKey(ctx context.Context) (string, error) { return h.host.RotateTokenKey(ctx) }

// FirstKey is the API key made for an empty data folder. It is known only to
// the process that made it, and empty on every later start.
func (h *Host) FirstKey() string { return h.firstKey }

// Prune is an operator's request to let go of runs now, and Pruned what came of it.
type (
	Prune  = host.Prune
	Pruned = host.Pruned
)

// Prune lets go of runs that are over, by the configured bounds or by those of the
// request. What something still needs stays. It works before Start, too.
func (h *Host) Prune(ctx context.Context, r Prune) (Pruned, error) { return h.host.Prune(ctx, r) }

// Relaxation is a protection that a member of Config has loosened.
type Relaxation = relax.Relaxation

// Relaxations lists the protections the configuration has loosened. A host in
// production mode has none.
func (h *Host) Relaxations() []Relaxation { return h.host.Relaxations() }

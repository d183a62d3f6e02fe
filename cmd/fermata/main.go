// Command fermata is a durable host for OpenWOP workflows, and the command line
// to work with one. This file only wires; the commands are in internal/cli.
package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/cli"
	"github.com/fermata-run/fermata/internal/config"
	"github.com/fermata-run/fermata/node"
)

func main() {
	if os.Getenv("GOGC") == "" {
		// The live heap of a host is a few MiB, so collecting half as often costs
		// nothing that anybody would miss, and takes 3 to 6 % off a run.
		debug.SetGCPercent(200)
	}
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Environ: os.Environ,
		Version: fermata.Version, OpenHost: open, Migrator: migrator{}, Keeper: keeper{}, NewMasterKey: fermata.NewMasterKey, Catalog: builtinCatalog(),
	}))
}

// open makes a host of what the operator has configured.
func open(ctx context.Context, cfg config.Config, log *slog.Logger) (cli.Host, error) {
	roots, err := authorities("webhook-ca", cfg.WebhookCA)
	if err != nil {
		return nil, err
	}
	lanes, err := lanes(&cfg)
	if err != nil {
		return nil, err
	}
	return fermata.Open(ctx, fermata.Config{
		DataDir: cfg.Data, Store: cfg.Store, StoreConnections: cfg.StoreMax, StoreListen: cfg.StoreListen, Lease: cfg.Lease,
		Logger: log, Mode: string(cfg.Mode), Retention: retention(cfg.Retention),
		BootstrapKey: cfg.BootstrapKey, AllowEgress: cfg.AllowEgress, EgressCAFile: cfg.EgressCAFile,
		SigningKeys: cfg.SigningKeys, ConformanceSeams: cfg.ConformanceSeams, V1: cfg.V1,
		BootstrapGroups: cfg.BootstrapGroups, BootstrapRoles: cfg.BootstrapRoles, OverrideApprovers: cfg.OverrideApprovers,
		MasterKeyFile: cfg.MasterKeyFile, MasterKey: cfg.MasterKey, CredentialsDir: cfg.CredentialsDir,
		LegacyEvents: cfg.LegacyEvents, Lanes: lanes,
		Audit: fermata.Audit{
			CheckpointEntries: cfg.AuditEntries, CheckpointInterval: cfg.AuditInterval, Retention: cfg.AuditRetention, Runs: cfg.AuditRuns,
		},
		Webhooks: fermata.Webhooks{
			Allow: cfg.AllowWebhooks, RootCAs: roots, MaxAttempts: cfg.WebhookAttempts, Backoff: cfg.WebhookBackoff,
			DisableAfter: cfg.WebhookDisable,
		},
		Limits: limits(cfg), CORSOrigins: cfg.CORSOrigins, AllowedHosts: cfg.AllowedHosts,
	})
}

func limits(c config.Config) fermata.Limits {
	l := c.Limits
	return fermata.Limits{
		MaxBodyBytes: c.MaxBodyBytes, MaxNodeExecutions: c.MaxNodeExecutions,
		MaxRunDurationMs: c.MaxRunDuration.Milliseconds(), MaxLoopIterations: c.MaxLoopIterations,
		MaxConcurrentNodes: c.MaxConcurrentNodes, MaxCalls: c.MaxCalls, MaxStreams: c.MaxStreams, MaxBodyMemory: l.MaxBodyMemory,
		TenantMaxCalls: l.TenantMaxCalls, TenantMaxStreams: l.TenantMaxStreams, TenantMaxConcurrentNodes: l.TenantMaxConcurrentNodes,
		TenantMaxActiveRuns: l.TenantMaxActiveRuns, RunMaxStreams: l.RunMaxStreams,
		TenantRate: l.TenantRate, KeyRate: l.KeyRate, AuthFailures: l.AuthFailures, RequestTimeout: l.RequestTimeout,
	}
}

// lanes are the ways in that the file of identity describes.
func lanes(cfg *config.Config) (fermata.Lanes, error) {
	l := cfg.Lanes
	roots, err := authorities("identity: ca", l.CA)
	return fermata.Lanes{
		PublicURL: cfg.PublicURL, OIDC: l.OIDC, OAuth2: l.OAuth2, MTLS: l.MTLS, Allow: l.Allow, RootCAs: roots,
	}, err
}

// authorities reads certificates of authorities from a file; nil for none.
func authorities(setting, file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s holds no certificate", setting, file)
	}
	return pool, nil
}

func retention(r config.Retention) *fermata.Retention {
	out := &fermata.Retention{
		Default: fermata.Bounds{MaxAge: r.MaxAge, MaxRuns: r.MaxRuns}, Tombstones: r.Tombstones,
		Tenants: map[string]fermata.Bounds{},
	}
	for _, t := range r.Tenants {
		out.Tenants[t.Tenant] = fermata.Bounds{MaxAge: t.MaxAge, MaxRuns: t.MaxRuns}
	}
	return out
}

type catalog map[string]*node.Type

func builtinCatalog() catalog {
	c := catalog{}
	for _, t := range fermata.BuiltinNodes() {
		c[t.ID] = &t
	}
	return c
}

// Type implements flow.Catalog.
func (c catalog) Type(id string) (*node.Type, bool) {
	t, ok := c[id]
	return t, ok
}

// migrator implements cli.Migrator.
type migrator struct{}

// Status implements cli.Migrator.
func (migrator) Status(ctx context.Context, store string) (cli.Schema, error) {
	s, err := fermata.SchemaStatus(ctx, store)
	return cli.Schema(s), err
}

// Up implements cli.Migrator.
func (migrator) Up(ctx context.Context, store string, partitions int) (cli.Schema, error) {
	s, err := fermata.MigrateUp(ctx, store, partitions)
	return cli.Schema(s), err
}

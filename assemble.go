package fermata

import (
	"context"
	"fmt"

	"github.com/fermata-run/fermata/internal/api/seams"
	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/webhook"
	"github.com/fermata-run/fermata/node"
	"github.com/fermata-run/fermata/schema"
)

func (h *Host) assemble(ctx context.Context) error {
	cfg := h.cfg
	lim := run.DefaultLimits()
	lim.LegacyEvents, lim.OlderMajor = cfg.LegacyEvents, cfg.V1
	lim.MaxNodeExecutions = or(cfg.Limits.MaxNodeExecutions, lim.MaxNodeExecutions)
	lim.MaxRunDurationMs = or(cfg.Limits.MaxRunDurationMs, lim.MaxRunDurationMs)
	lim.MaxLoopIterations = or(cfg.Limits.MaxLoopIterations, lim.MaxLoopIterations)
	secret, err := host.MaskSecret(ctx, h.store.Secrets(), h.clock.Now())
	if err != nil {
		return err
	}
	outbox := webhook.NewOutbox()
	h.engine = engine.New(engine.Config{
		LeaseTTL: cfg.Lease, Replicas: h.shared,
		Store: h.store, Catalog: h.catalog, Clock: &h.clock, Log: cfg.Logger, Limits: lim,
		Workers: cfg.Limits.MaxConcurrentNodes, TenantWorkers: cfg.Limits.TenantMaxConcurrentNodes, Seams: &h.catalog.seams, Outbox: outbox,
		Quick: h.catalog.quick, MaskSecret: secret, Redact: h.redact,
		// No node runs before the host that it serves is there.
		Resolve: func(ctx context.Context, owner event.Owner, id ids.Run, ref node.CredentialRef) (engine.Credential, error) {
			return h.host.ResolveCredential(ctx, owner, id, ref)
		},
		CheckInterrupt: func(payload []byte) error {
			return schema.Validate("suspend-request", payload)
		},
	})
	h.worker = webhook.NewWorker(webhook.Config{
		Store: h.store, Egress: h.hooks, Outbox: outbox, Clock: &h.clock, Log: cfg.Logger, Redact: h.redact,
		Agent: "fermata-webhook/" + Version, Older: cfg.olderForm(), Instance: h.engine.Instance, Retention: host.LetterRetention(),
		Policy: webhook.Policy{MaxAttempts: cfg.Webhooks.MaxAttempts, Backoff: cfg.Webhooks.Backoff, DisableAfter: cfg.Webhooks.DisableAfter},
		// The worker does nothing before the host that it serves is there.
		Callback: func(ctx context.Context, row store.Run, e *event.Event, major int) (*webhook.Called, error) {
			return h.host.Callback(ctx, row, e, major)
		},
	})
	if err := h.catalog.seams.Add(webhook.Seam); err != nil {
		return err
	}
	if h.keys, err = identity.OpenAPIKeys(ctx, h.store.Keys(), h.store.Secrets(), h.clock.Now); err != nil {
		return fmt.Errorf("fermata: %w", err)
	}
	if h.lanes, err = h.pipeline(); err != nil {
		return fmt.Errorf("fermata: %w", err)
	}
	hc := host.Config{
		Clock: &h.clock,
		Store: h.store, Engine: h.engine, Catalog: h.catalog, Log: cfg.Logger, Version: Version, Limits: h.bounds,
		Seams: &h.catalog.seams, Keys: h.keys, Override: cfg.OverrideApprovers, Lanes: h.lanes.Facets(),
		SigningKeys: h.signing, Build: runningBuild, ConformanceSeams: cfg.ConformanceSeams,
		Relaxations: cfg.relaxations(), Retention: *cfg.Retention,
		Webhooks:    host.Webhooks{Worker: h.worker, Egress: h.hooks},
		Credentials: host.Credentials{Vault: h.vault, Sources: cfg.sources()}, Redact: h.redact,
		Audit: host.Audit{
			Entries: cfg.Audit.CheckpointEntries, Interval: cfg.Audit.CheckpointInterval, Retention: cfg.Audit.Retention,
			Runs: cfg.Audit.Runs, Operator: DefaultTenant,
		},
	}
	if cfg.Members != nil {
		hc.Directory = directory(cfg.Members)
	}
	if hc.Older, err = cfg.olderVersion(); err != nil {
		return err
	}
	h.host = host.New(hc)
	if err := h.host.OpenAudit(ctx); err != nil {
		return err
	}
	if err := h.bootstrap(ctx); err != nil {
		return err
	}
	h.openWires()
	if cfg.ConformanceSeams {
		h.seams = seams.New(h.host, h.lanes, cfg.Logger)
	}
	return nil
}

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
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/fermata-run/fermata/client"
	"github.com/fermata-run/fermata/internal/api/seams"
	"github.com/fermata-run/fermata/internal/api/v2"
	"github.com/fermata-run/fermata/internal/builtin"
	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/egress"
	"github.com/fermata-run/fermata/internal/engine"
	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/redact"
	"github.com/fermata-run/fermata/internal/relax"
	"github.com/fermata-run/fermata/internal/run"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/vault"
	"github.com/fermata-run/fermata/internal/webhook"
	"github.com/fermata-run/fermata/node"
	"github.com/fermata-run/fermata/schema"
)

// Version is the version of this implementation.
const Version = "0.1.0"

// DefaultTenant is the tenant of the first API key.
const DefaultTenant = "default"

// maxBodyBytes leaves room for the envelopes around what a body holds
// (store.MaxValue).
const maxBodyBytes = store.MaxValue / 2

// Config is what a Host is made of. The zero value of every member but DataDir
// is a sensible default.
type Config struct {
	// DataDir is the folder of the database. It is created if it is not there,
	// and belongs to one process at a time.
	DataDir string

	// Store is the address of a PostgreSQL database that any number of equal hosts
	// share, such as postgres://user@host/name. With it DataDir is not needed, and
	// nothing is kept there.
	Store string

	// StoreConnections bounds this host's connections to Store; default 16.
	StoreConnections int

	// Lease is how long a host that has fallen silent keeps its runs, where several
	// share a Store; default 15 s.
	Lease time.Duration

	// Logger takes the host's logs; nil drops them.
	Logger *slog.Logger

	// Nodes are node types beside the built-in ones.
	Nodes []node.Type

	// Seams are ways out of the host beside those that node types declare
	// (node.Type.Seams), such as one that several types share.
	Seams []node.Seam

	// BootstrapKey, if set, becomes the first API key of an empty data folder
	// instead of a generated one. At least 32 characters.
	BootstrapKey string

	// BootstrapGroups and BootstrapRoles are what the holder of the first key
	// belongs to, and whoever calls through Client.
	BootstrapGroups, BootstrapRoles []string

	// MasterKeyFile is the file of the key that opens what is secret in the data
	// folder; master.key in that folder if it is empty. It is made on the first
	// start. More keys in it, behind the first, still open what they have sealed.
	MasterKeyFile string

	// MasterKey is the key itself, and MasterKeys a service that holds it: the first
	// one wraps, all of them unwrap. At most one of the three is given.
	MasterKey  string
	MasterKeys func(ctx context.Context) ([]MasterKey, error)

	// CredentialsDir is a folder of secrets that credentials may name as the store
	// file: one folder for each tenant. CredentialSources are further stores, by name.
	CredentialsDir    string
	CredentialSources map[string]CredentialSource

	// Members, if set, says what a party belongs to, whenever an answer to a gate
	// is judged; without it a party belongs to what its API key says. An error lets
	// nobody in by a group or role, and is no refusal: the answer may be sent again.
	Members func(ctx context.Context, p Party) (groups, roles []string, err error)

	// OverrideApprovers may release a gate alone where the gate says so
	// (overrideBypassesQuorum). Each entry is group:NAME, role:NAME or a subject as
	// an approversList names it.
	OverrideApprovers []string

	// LegacyEvents records approvals and clarifications under their older event
	// types (approval.requested, approval.granted, …) beside interrupt.requested and
	// interrupt.resolved, for consumers that read only those.
	LegacyEvents bool

	// Mode says what the host is for: development, the default, or production,
	// in which Open refuses every member that relaxes a protection.
	Mode string

	// AllowEgress admits private address ranges to workflows' outbound calls.
	// It relaxes a protection.
	AllowEgress []netip.Prefix

	// Lanes are the ways in beside API keys. The zero value has none.
	Lanes Lanes

	// EgressCAFile is a PEM file of certificate authorities that outbound https
	// trusts beside the system's own: those of services an operator runs. It opens
	// no address.
	EgressCAFile string

	// SigningKeys is a PEM file of public Ed25519 keys that discovery lists: those
	// whose private parts sign certification bundles of this host. A key that is
	// not in use any more stays in the file, with the header Retired-At.
	SigningKeys string

	// ConformanceSeams mounts the operations by which a conformance suite reaches
	// what cannot be seen from outside. It relaxes a protection.
	ConformanceSeams bool

	Webhooks Webhooks

	// Retention says how long runs that are over are kept; nil means a year.
	Retention *Retention

	Audit Audit

	Limits Limits

	// CORSOrigins are the origins, such as https://app.example.com, whose pages may
	// read answers of the host. None by default.
	CORSOrigins []string

	// AllowedHosts are names by which a proxy on the same machine calls the host: on
	// a loopback connection others than the loopback's own are refused.
	AllowedHosts []string
}

// Party is somebody who calls a host: who vouches for it, and as whom.
type Party struct {
	Issuer    string
	SubjectID string
	Tenant    string
	Kind      string // user, agent or workload
}

// directory asks an embedder's hook.
type directory func(ctx context.Context, p Party) (groups, roles []string, err error)

// Memberships implements host.Directory.
func (d directory) Memberships(ctx context.Context, s event.Subject) (identity.Membership, error) {
	groups, roles, err := d(ctx, Party{Issuer: s.Issuer, SubjectID: s.SubjectID, Tenant: s.Tenant, Kind: s.Kind})
	return identity.Membership{Groups: groups, Roles: roles, Source: "embedder"}, err
}

// Webhooks say how events are delivered to subscribers. The zero value is a good
// choice.
type Webhooks struct {
	// Allow admits private address ranges to webhooks and callback URLs, and lets
	// a literal address in one go without TLS. It relaxes a protection; leave it
	// empty in production.
	Allow []netip.Prefix

	// RootCAs are the authorities that receivers' certificates are held against;
	// nil for the system's.
	RootCAs *x509.CertPool

	MaxAttempts int           // of one delivery; default 10
	Backoff     time.Duration // before the second attempt, four times as long before each further one; default 2 s

	// DisableAfter is for how long an endpoint must have taken nothing before its
	// subscription is disabled; default 6 h.
	DisableAfter time.Duration
}

// Retention are bounds of what is kept of runs that are over, and Bounds those
// of one tenant. Zero means no bound; a bound of age is a day or more.
type (
	Retention = host.Retention
	Bounds    = host.Bounds
)

// Audit says how the audit log is kept. The zero value is a good choice.
type Audit struct {
	CheckpointEntries  int           // the most that one checkpoint anchors; default 1,000
	CheckpointInterval time.Duration // the longest an entry waits for a checkpoint; default 1 min
	Retention          time.Duration // for which entries are kept; zero for ever
	Runs               bool          // record the start of every run, too
}

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
	api      *v2.API
	seams    *seams.API // nil unless the host was started for a conformance suite
	signing  []host.SigningKey
	firstKey string
	sweeper  *background
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

func (h *Host) assemble(ctx context.Context) error {
	cfg := h.cfg
	lim := run.DefaultLimits()
	lim.LegacyEvents = cfg.LegacyEvents
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
		Agent: "fermata-webhook/" + Version, Instance: h.engine.Instance, Retention: host.LetterRetention(),
		Policy: webhook.Policy{MaxAttempts: cfg.Webhooks.MaxAttempts, Backoff: cfg.Webhooks.Backoff, DisableAfter: cfg.Webhooks.DisableAfter},
		// The worker does nothing before the host that it serves is there.
		Callback: func(ctx context.Context, row store.Run, e *event.Event, id string) ([]byte, error) {
			return h.host.CallbackBody(ctx, row, e, id)
		},
	})
	if err := h.catalog.seams.Add(webhook.Seam); err != nil {
		return err
	}
	if h.keys, err = identity.OpenAPIKeys(ctx, h.store.Keys(), h.store.Secrets(), clock.System{}.Now); err != nil {
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
	h.host = host.New(hc)
	if err := h.host.OpenAudit(ctx); err != nil {
		return err
	}
	if err := h.bootstrap(ctx); err != nil {
		return err
	}
	h.api = v2.New(v2.Config{
		Host: h.host, Auth: h.lanes, Resource: h.lanes.Resource(), Log: cfg.Logger, Version: Version, Redact: h.redact,
		MaxCalls: h.bounds.Edge.MaxCalls, MaxStreams: h.bounds.Edge.MaxStreams,
		MaxBodies: cfg.Limits.MaxBodyMemory, Timeout: h.bounds.Edge.RequestTimeout, Gate: h.gate(),
	})
	if cfg.ConformanceSeams {
		h.seams = seams.New(h.host, h.lanes, cfg.Logger)
	}
	return nil
}

// bootstrap gives an empty data folder its first tenant and API key: at no moment is
// there a host that would let somebody in without one. The key is an owner's, and
// the host's administrator's.
func (h *Host) bootstrap(ctx context.Context) error {
	any, err := h.keys.Any(ctx)
	if err != nil {
		return err
	}
	if any {
		return h.checkUnused(ctx)
	}
	now := h.clock.Now()
	err = h.store.Tenants().Add(ctx, store.Tenant{ID: DefaultTenant, State: store.TenantActive, CreatedAt: now})
	if err != nil && !errors.Is(err, store.ErrExists) { // an earlier start may have got this far
		return fmt.Errorf("first tenant: %w", err)
	}
	key := h.cfg.BootstrapKey
	if key == "" {
		key = identity.Generate()
		h.firstKey = key
	}
	grants := identity.Grants{ID: identity.NewKeyID(), Scopes: adminScopes(), Groups: h.cfg.BootstrapGroups, Roles: h.cfg.BootstrapRoles}
	ctx = host.Bootstrapping(ctx, DefaultTenant, grants.ID, now)
	_, err = h.keys.Add(ctx, key, DefaultTenant, "first key", grants, now)
	if errors.Is(err, store.ErrExists) { // another replica, which begins at the same time
		return nil
	}
	if err != nil {
		return fmt.Errorf("bootstrap key: %w", err)
	}
	return nil
}

// adminScopes are those of a host's administrator: all there is in a tenant, and
// what no wildcard stands for.
func adminScopes() []string {
	owner, _ := identity.RoleScopes(identity.Owner)
	return append(append([]string{}, owner...), identity.HostAdmin)
}

// checkUnused says that a chosen key opens nothing, if it is none of the folder's.
func (h *Host) checkUnused(ctx context.Context) error {
	key := h.cfg.BootstrapKey
	if key == "" {
		return nil
	}
	_, err := h.keys.Authenticate(ctx, "Bearer "+key)
	var p *problem.Error
	if errors.As(err, &p) && p.Status() < http.StatusInternalServerError {
		h.cfg.Logger.Warn("the bootstrap key was not used: the data folder has API keys already, and this is none of them that is good",
			"setting", "bootstrap-key", "fix", "use a key of this folder, or take the setting away")
		return nil
	}
	return err
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

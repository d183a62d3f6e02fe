package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/relax"
)

// Scope says where a setting means something.
type Scope uint8

// ServeOnly settings are about a process that serves the API; Any setting is
// also about a workflow that is run directly.
const (
	Any Scope = iota
	ServeOnly
)

// Setting is one row of the table.
type Setting struct {
	Name    string // flag and file member; the environment name follows from it
	Type    string // as help shows it: string, number, duration, folder, list
	Default string // as help shows it; the folder of data depends on the machine
	Usage   string // one sentence
	Scope   Scope
	EnvOnly bool // a secret that must not be in an argument list or a file
	Hidden  bool // it may hold a password: a wrong value is not shown
	Path    bool // relative to the file that names it

	set func(c *Config, v string) error
	get func(c *Config) string
}

// Env is the name of the setting's environment variable.
func (s *Setting) Env() string {
	return "FERMATA_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Settings is the table, in the order in which people are shown it.
func Settings() []Setting { return settings }

var settings = slices.Concat(mainSettings, limitSettings)

var mainSettings = []Setting{
	{
		Name: "mode", Type: "mode", Default: string(relax.Development),
		Usage: "What the host is for: development, or production, which refuses every setting that loosens a protection.",
		set: func(c *Config, v string) error {
			return oneOf((*string)(&c.Mode), v, string(relax.Development), string(relax.Production))
		},
		get: func(c *Config) string { return string(c.Mode) },
	},
	{
		Name: "listen", Type: "address", Default: "127.0.0.1:7411", Scope: ServeOnly,
		Usage: "Address of the API.",
		set:   func(c *Config, v string) error { return address(&c.Listen, v) },
		get:   func(c *Config) string { return c.Listen },
	},
	{
		Name: "public-url", Type: "URL", Scope: ServeOnly,
		Usage: "Base URL under which the world calls the API, such as https://h.example/api. Lanes of tokens need it.",
		set:   func(c *Config, v string) error { return baseURL(&c.PublicURL, v) },
		get:   func(c *Config) string { return c.PublicURL },
	},
	file("tls-cert", "File of the certificate chain (PEM) to serve the API with, over TLS. It is read again when it changes.", func(c *Config) *string { return &c.TLSCert }),
	file("tls-key", "File of the key (PEM) of tls-cert.", func(c *Config) *string { return &c.TLSKey }),
	file("tls-client-ca", "File of authorities (PEM) whose client certificates are taken, where the file of identity has a lane for them.", func(c *Config) *string { return &c.TLSClientCA }),
	{
		Name: "tls-min-version", Type: "version", Default: "1.2", Scope: ServeOnly,
		Usage: "Least version of TLS that clients may speak: 1.2 or 1.3.",
		set:   func(c *Config, v string) error { return oneOf(&c.TLSMin, v, "1.2", "1.3") },
		get:   func(c *Config) string { return c.TLSMin },
	},
	file("identity", "File (YAML or JSON) of the lanes by which callers come in beside API keys: oidc, oauth2 and mtls.", func(c *Config) *string { return &c.Identity }),
	{
		Name: "data", Type: "folder", Path: true,
		Usage: "Folder of everything the host keeps.",
		set:   func(c *Config, v string) error { return folder(&c.Data, v) },
		get:   func(c *Config) string { return c.Data },
	},
	{
		Name: "store", Type: "address", Scope: ServeOnly, Hidden: true,
		Usage: "Database for several replicas, such as postgres://user@host/name; without it everything is kept in the folder of data.",
		set:   func(c *Config, v string) error { return database(&c.Store, v) },
		get:   func(c *Config) string { return HidePassword(c.Store) },
	},
	number("store-connections", 16, 2, 1_000, ServeOnly,
		"Connections of one replica to the database of --store.", func(c *Config) *int { return &c.StoreMax }),
	{
		Name: "store-listen", Type: "address", Scope: ServeOnly, Hidden: true,
		Usage: "Address of the database of --store that leads there without a pooler, so that replicas hear of each other at once; same: that of --store itself.",
		set: func(c *Config, v string) error {
			if v == "same" {
				c.StoreListen = v
				return nil
			}
			return database(&c.StoreListen, v)
		},
		get: func(c *Config) string { return HidePassword(c.StoreListen) },
	},
	{
		Name: "lease", Type: "duration", Default: "15s", Scope: ServeOnly,
		Usage: "How long a replica that has fallen silent keeps its runs, where several share a database.",
		set:   func(c *Config, v string) error { return duration(&c.Lease, v, time.Second, time.Hour) },
		get:   func(c *Config) string { return formatDuration(c.Lease) },
	},
	{
		Name: "workflows", Type: "folder", Path: true, Scope: ServeOnly,
		Usage: "Folder of workflow definitions (*.json) to register at the start.",
		set:   func(c *Config, v string) error { return folder(&c.Workflows, v) },
		get:   func(c *Config) string { return c.Workflows },
	},
	{
		Name: "log-level", Type: "level", Default: "info",
		Usage: "Least important messages to log: debug, info, warn or error.",
		set:   func(c *Config, v string) error { return oneOf(&c.LogLevel, v, "debug", "info", "warn", "error") },
		get:   func(c *Config) string { return c.LogLevel },
	},
	{
		Name: "log-format", Type: "format", Default: "auto",
		Usage: "How to log: text for people, json for machines, or auto: text in a terminal, else json.",
		set:   func(c *Config, v string) error { return oneOf(&c.LogFormat, v, "auto", "text", "json") },
		get:   func(c *Config) string { return c.LogFormat },
	},
	number("max-body-bytes", 5<<20, 1<<10, 8<<20, Any,
		"Largest request body; at most 8 MiB, so that everything made of one still fits the store.", func(c *Config) *int { return &c.MaxBodyBytes }),
	number("max-node-executions", 10_000, 1, 1<<31-1, Any,
		"Node executions in one run.", func(c *Config) *int { return &c.MaxNodeExecutions }),
	{
		Name: "max-run-duration", Type: "duration", Default: "365d",
		Usage: "How long one run may take.",
		set: func(c *Config, v string) error {
			return duration(&c.MaxRunDuration, v, time.Second, 36500*day)
		},
		get: func(c *Config) string { return formatDuration(c.MaxRunDuration) },
	},
	number("max-loop-iterations", 1_000, 1, 1<<31-1, Any,
		"How often one loop of a run may start over.", func(c *Config) *int { return &c.MaxLoopIterations }),
	number("max-concurrent-nodes", 256, 1, 100_000, Any,
		"Nodes that reach outside at the same time, in the whole host.", func(c *Config) *int { return &c.MaxConcurrentNodes }),
	number("max-calls", 4_096, 1, 1_000_000, ServeOnly,
		"Requests answered at the same time.", func(c *Config) *int { return &c.MaxCalls }),
	number("max-streams", 20_000, 1, 1_000_000, ServeOnly,
		"Event streams open at the same time.", func(c *Config) *int { return &c.MaxStreams }),
	{
		Name: "retention-max-age", Type: "duration", Default: "365d", Scope: ServeOnly,
		Usage: "How long a run is kept after its end, 1d or more, or none for as long as there is room.",
		set:   func(c *Config, v string) error { return age(&c.Retention.MaxAge, v) },
		get:   func(c *Config) string { return formatAge(c.Retention.MaxAge) },
	},
	{
		Name: "retention-max-runs", Type: "number", Default: none, Scope: ServeOnly,
		Usage: "How many runs that are over are kept of one tenant, those that ended last; none for any number. A run stays for a day whatever comes after it.",
		set:   func(c *Config, v string) error { return runs(&c.Retention.MaxRuns, v) },
		get:   func(c *Config) string { return formatRuns(c.Retention.MaxRuns) },
	},
	{
		Name: "retention-tenants", Type: "list", Scope: ServeOnly,
		Usage: "Bounds of single tenants in place of those two, as tenant=age/runs, such as acme=30d/10000 or lab=none/none.",
		set:   func(c *Config, v string) error { return tenantRetention(&c.Retention.Tenants, v) },
		get:   func(c *Config) string { return joinTenants(c.Retention.Tenants) },
	},
	{
		Name: "retention-tombstones", Type: "duration", Default: "730d", Scope: ServeOnly,
		Usage: "How long a run that has expired is answered with run_expired; not_found after that.",
		set: func(c *Config, v string) error {
			return duration(&c.Retention.Tombstones, v, day, 36500*day)
		},
		get: func(c *Config) string { return formatDuration(c.Retention.Tombstones) },
	},
	number("audit-checkpoint-entries", 1_000, 1, 10_000, ServeOnly,
		"Entries of the audit log that one signed checkpoint anchors at most.", func(c *Config) *int { return &c.AuditEntries }),
	{
		Name: "audit-checkpoint-interval", Type: "duration", Default: "1m", Scope: ServeOnly,
		Usage: "How long an entry of the audit log waits for a signed checkpoint at most.",
		set:   func(c *Config, v string) error { return duration(&c.AuditInterval, v, time.Second, day) },
		get:   func(c *Config) string { return formatDuration(c.AuditInterval) },
	},
	{
		Name: "audit-retention", Type: "duration", Default: none, Scope: ServeOnly,
		Usage: "How long entries of the audit log are kept, 1d or more, or none for ever. What is removed is removed up to a checkpoint, and that is signed.",
		set:   func(c *Config, v string) error { return age(&c.AuditRetention, v) },
		get:   func(c *Config) string { return formatAge(c.AuditRetention) },
	},
	toggle("audit-runs", ServeOnly, "Record the start of every run in the audit log, too: on or off. It is in the run's own log anyway.",
		func(c *Config) *bool { return &c.AuditRuns }),
	{
		Name: "allow-egress", Type: "list",
		Usage: "Private address ranges that nodes may call, such as 10.1.0.0/16; a relaxation of the outbound guard.",
		set:   func(c *Config, v string) error { return prefixes(&c.AllowEgress, v) },
		get:   func(c *Config) string { return joinPrefixes(c.AllowEgress) },
	},
	{
		Name: "egress-ca-file", Type: "file", Path: true,
		Usage: "PEM file of certificate authorities that outbound https trusts beside the system's.",
		set:   func(c *Config, v string) error { return folder(&c.EgressCAFile, v) },
		get:   func(c *Config) string { return c.EgressCAFile },
	},
	toggle("v1", ServeOnly, "Serve the v1 protocol under /v1 beside v2: on or off. It is then what a request for discovery without OpenWOP-Version gets.",
		func(c *Config) *bool { return &c.V1 }),
	{
		Name: "conformance-seams", Type: "switch", Default: "off", Scope: ServeOnly,
		Usage: "on mounts the conformance suite's test seams under /conformance/seams/; a relaxation.",
		set:   func(c *Config, v string) error { return onOff(&c.ConformanceSeams, v) },
		get:   func(c *Config) string { return map[bool]string{true: "on", false: "off"}[c.ConformanceSeams] },
	},
	{
		Name: "signing-keys", Type: "file", Path: true, Scope: ServeOnly,
		Usage: "PEM file of public Ed25519 keys to list in discovery, whose private parts sign certification bundles.",
		set:   func(c *Config, v string) error { return folder(&c.SigningKeys, v) },
		get:   func(c *Config) string { return c.SigningKeys },
	},
	{
		Name: "allow-webhooks", Type: "list", Scope: ServeOnly,
		Usage: "Private address ranges that webhooks may be delivered to, such as 127.0.0.0/8, without TLS too; a relaxation for development.",
		set:   func(c *Config, v string) error { return prefixes(&c.AllowWebhooks, v) },
		get:   func(c *Config) string { return joinPrefixes(c.AllowWebhooks) },
	},
	{
		Name: "webhook-ca", Type: "file", Path: true, Scope: ServeOnly,
		Usage: "File of certificates (PEM) that receivers of webhooks are held against, in place of the system's.",
		set:   func(c *Config, v string) error { return folder(&c.WebhookCA, v) },
		get:   func(c *Config) string { return c.WebhookCA },
	},
	number("webhook-attempts", 10, 1, 100, ServeOnly,
		"Attempts at one delivery before it is given up.", func(c *Config) *int { return &c.WebhookAttempts }),
	{
		Name: "webhook-backoff", Type: "duration", Default: "2s", Scope: ServeOnly,
		Usage: "Wait before the second attempt at a delivery; before each further one it is four times as long, up to six hours.",
		set:   func(c *Config, v string) error { return duration(&c.WebhookBackoff, v, 10*time.Millisecond, time.Hour) },
		get:   func(c *Config) string { return formatDuration(c.WebhookBackoff) },
	},
	{
		Name: "webhook-disable-after", Type: "duration", Default: "6h", Scope: ServeOnly,
		Usage: "How long an endpoint must have taken nothing before its webhook is disabled.",
		set:   func(c *Config, v string) error { return duration(&c.WebhookDisable, v, time.Second, 30*day) },
		get:   func(c *Config) string { return formatDuration(c.WebhookDisable) },
	},
	{
		Name: "shutdown-grace", Type: "duration", Default: "10s",
		Usage: "How long a stop may take before work is cut off; what is cut off goes on at the next start.",
		set:   func(c *Config, v string) error { return duration(&c.ShutdownGrace, v, 0, time.Hour) },
		get:   func(c *Config) string { return formatDuration(c.ShutdownGrace) },
	},
	{
		Name: "shutdown-notice", Type: "duration", Default: "0s", Scope: ServeOnly,
		Usage: "How long a host that was told to stop goes on as before, but says that it is not ready, so that a load balancer sends it nothing more when it closes its port.",
		set:   func(c *Config, v string) error { return duration(&c.ShutdownNotice, v, 0, 10*time.Minute) },
		get:   func(c *Config) string { return formatDuration(c.ShutdownNotice) },
	},
	{
		Name: "bootstrap-key", Type: "secret", EnvOnly: true, Scope: ServeOnly,
		Usage: "API key of the first start, 32 to 512 characters; one is made if there is none.",
		set:   func(c *Config, v string) error { return secret(&c.BootstrapKey, v) },
		get:   func(c *Config) string { return hide(c.BootstrapKey) },
	},
	{
		Name: "master-key-file", Type: "file", Path: true,
		Usage: "File of the key that opens what is secret in the data folder; made on the first start, master.key in the data folder if not set.",
		set:   func(c *Config, v string) error { return folder(&c.MasterKeyFile, v) },
		get:   func(c *Config) string { return c.MasterKeyFile },
	},
	{
		Name: "master-key", Type: "secret", EnvOnly: true,
		Usage: "That key itself, in place of a file; older keys may follow it, parted by commas.",
		set:   func(c *Config, v string) error { return keyText(&c.MasterKey, v) },
		get:   func(c *Config) string { return hide(c.MasterKey) },
	},
	{
		Name: "credentials-dir", Type: "folder", Path: true,
		Usage: "Folder of secrets that credentials may name as the store file; it has a folder for each tenant.",
		set:   func(c *Config, v string) error { return folder(&c.CredentialsDir, v) },
		get:   func(c *Config) string { return c.CredentialsDir },
	},
	list("bootstrap-groups", "Groups that the holder of the first API key is in, and whoever runs a workflow directly.", func(c *Config) *[]string { return &c.BootstrapGroups }),
	list("bootstrap-roles", "Roles that the holder of the first API key has, and whoever runs a workflow directly.", func(c *Config) *[]string { return &c.BootstrapRoles }),
	toggle("legacy-events", Any, "Also record approvals and clarifications under their older event types, for consumers that read only those: on or off.",
		func(c *Config) *bool { return &c.LegacyEvents }),
	{
		Name: "override-approvers", Type: "list",
		Usage: "Who may release an approval alone where it says overrideBypassesQuorum: group:NAME, role:NAME or a subject.",
		set:   func(c *Config, v string) error { return parties(&c.OverrideApprovers, v) },
		get:   func(c *Config) string { return strings.Join(c.OverrideApprovers, ",") },
	},
}

// toggle makes the row of something that is off unless it is turned on.
func toggle(name string, scope Scope, usage string, at func(*Config) *bool) Setting {
	return Setting{
		Name: name, Type: "on or off", Default: "off", Usage: usage, Scope: scope,
		set: func(c *Config, v string) error { return onOff(at(c), v) },
		get: func(c *Config) string {
			if *at(c) {
				return "on"
			}
			return "off"
		},
	}
}

// file makes the row of a file's name.
func file(name, usage string, at func(*Config) *string) Setting {
	return Setting{
		Name: name, Type: "file", Usage: usage, Path: true, Scope: ServeOnly,
		set: func(c *Config, v string) error { return folder(at(c), v) },
		get: func(c *Config) string { return *at(c) },
	}
}

// list makes the row of a list of names, parted by commas.
func list(name, usage string, at func(*Config) *[]string) Setting {
	return Setting{
		Name: name, Type: "list", Usage: usage,
		set: func(c *Config, v string) error { return texts(at(c), v) },
		get: func(c *Config) string { return strings.Join(*at(c), ",") },
	}
}

// number makes the row of a whole number from least to most.
func number(name string, def, least, most int, scope Scope, usage string, at func(*Config) *int) Setting {
	return Setting{
		Name: name, Type: "number", Default: strconv.Itoa(def), Usage: usage, Scope: scope,
		set: func(c *Config, v string) error { return whole(at(c), v, least, most) },
		get: func(c *Config) string { return strconv.Itoa(*at(c)) },
	}
}

func joinPrefixes(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

// hide shows that a secret is set, and nothing of it.
func hide(s string) string {
	if s == "" {
		return ""
	}
	return "(set, hidden)"
}

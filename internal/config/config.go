package config

import (
	"net"
	"net/netip"
	"time"

	"github.com/fermata-run/fermata/internal/relax"
)

// Config is what an operator has set, or not.
type Config struct {
	Mode      relax.Mode // what the host is for; production refuses relaxations
	Listen    string     // host:port of the API
	PublicURL string     // base URL under which the world calls the API; empty if it was not said
	Data      string     // folder of everything that is kept
	Store     string     // address of the database; empty for one in Data
	StoreMax  int        // connections to it
	// StoreListen is a direct address of it, or same, by which replicas hear of each other.
	StoreListen string
	Lease       time.Duration // how long a replica that has fallen silent keeps its runs
	Workflows   string        // folder of definitions registered at the start; empty for none

	LogLevel  string // debug, info, warn or error
	LogFormat string // auto, text or json

	MaxBodyBytes       int           // of a request body
	MaxNodeExecutions  int           // of one run
	MaxRunDuration     time.Duration // of one run
	MaxLoopIterations  int           // of one loop of a run
	MaxConcurrentNodes int           // calls of nodes that reach outside, in the whole host
	MaxCalls           int           // requests answered at the same time
	MaxStreams         int           // open event streams

	Limits Limits // of tenants, keys, addresses and requests

	CORSOrigins  []string // whose pages may read answers
	AllowedHosts []string // names a proxy on this machine calls the host by

	EgressCAFile     string // authorities that outbound https trusts beside the system's; empty for none
	V1               bool   // serve the wire of protocol version 1 beside this one
	ConformanceSeams bool   // the suite's way in; a relaxation
	SigningKeys      string // public keys that discovery lists; empty for none

	AllowEgress     []netip.Prefix // closed ranges that outbound requests may reach
	AllowWebhooks   []netip.Prefix // closed ranges that webhooks may be delivered to
	WebhookCA       string         // file of authorities for receivers' certificates; empty for the system's
	WebhookAttempts int            // of one delivery
	WebhookBackoff  time.Duration  // before the second attempt
	WebhookDisable  time.Duration  // for which an endpoint must have taken nothing before it is disabled
	ShutdownGrace   time.Duration  // from the closing of the port to the end
	ShutdownNotice  time.Duration  // from the signal to the closing of the port

	Retention Retention // of runs that are over

	AuditEntries   int           // the most that one checkpoint of the audit log anchors
	AuditInterval  time.Duration // the longest an entry of it waits for a checkpoint
	AuditRetention time.Duration // for which its entries are kept; zero for ever
	AuditRuns      bool          // record the start of every run in it

	// BootstrapKey is the API key of the first start, if the operator chose it.
	// It is a secret.
	BootstrapKey string

	MasterKeyFile  string // of the key that opens what is secret in Data; empty for master.key in it
	MasterKey      string // the key itself; a secret
	CredentialsDir string // folder of secrets that credentials may name; empty for none
	Lanes          Lanes  // what the file of identity holds
	Identity       string // file of the lanes beside API keys; empty for none
	TLSCert        string // file of the API's certificate chain; empty for no TLS
	TLSKey         string // file of its key
	TLSClientCA    string // file of the authorities of client certificates; empty for none
	TLSMin         string // least version of TLS: 1.2 or 1.3

	BootstrapGroups   []string // that the holder of the first key is in
	BootstrapRoles    []string // that the holder of the first key has
	LegacyEvents      bool     // say approvals and clarifications by their older types, too
	OverrideApprovers []string // who may release a gate alone, where the gate says so
}

// Retention says how long runs that are over are kept. Zero means no bound.
type Retention struct {
	MaxAge     time.Duration // since a run's end
	MaxRuns    int           // of one tenant, the newest by their end
	Tombstones time.Duration // how long it is remembered of a run that it has expired
	Tenants    []TenantRetention
}

// TenantRetention are one tenant's bounds, in place of the others.
type TenantRetention struct {
	Tenant  string
	MaxAge  time.Duration
	MaxRuns int
}

// Loopback reports whether Listen can be reached from this machine only.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

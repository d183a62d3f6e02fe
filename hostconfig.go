package fermata

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"time"

	"github.com/fermata-run/fermata/internal/event"
	"github.com/fermata-run/fermata/internal/host"
	"github.com/fermata-run/fermata/internal/identity"
	"github.com/fermata-run/fermata/node"
)

// SameStore, as Config.StoreListen, is the address of Config.Store.
const SameStore = "same"

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

	// StoreListen is the address under which this host and the others tell each other at
	// once what they have done: of the same database as Store, but never by way of a
	// pooler. SameStore says that Store is such an address. Empty: hosts find out by
	// looking, up to a second later. It takes two connections more.
	StoreListen string

	// Lease is how long a host that has fallen silent keeps its runs, where several
	// share a Store; default 15 s.
	Lease time.Duration

	wrongClock time.Duration // for tests: by how much the machine's clock is wrong

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

	// V1 serves the protocol's version 1 under /v1, beside version 2 and on the same
	// runs. Discovery without a version header is then that of version 1.
	V1 bool

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

	recheck time.Duration // how often a stream's credential is looked at again; a usual one if 0
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

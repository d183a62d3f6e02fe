package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options tune a store. The zero value is a good choice.
type Options struct {
	// Connections bounds the connections of this replica. Zero means 16, or
	// pool_max_conns of the address.
	Connections int
	// Writers bounds how many groups of steps are written at once. Zero means 3.
	Writers int
	// Listen is an address of the same database that leads to it directly and not by way
	// of a pooler, for hints between replicas; empty for none.
	Listen string
	// Log hears of hints that do not come.
	Log *slog.Logger
	// Timeout bounds one try of a read or a transaction, so that a server that is silent
	// is found out. Zero means 20 s.
	Timeout time.Duration
	// Migrate brings the database to the newest schema before anything else.
	Migrate bool
}

// Store is a PostgreSQL backend. It implements store.Store.
type Store struct {
	pool     *pgxpool.Pool
	writer   *writer
	hooks    hooks
	looks    looks
	rota     rota
	punctual store.Round
	counted  *counted
	timeout  time.Duration
	hints    *hints       // nil where nobody is told
	living   atomic.Int32 // instances, as far as known; zero for not known

	definitions cache // of versions, which never change

	// What every request asks.
	mute      atomic.Bool // it did not take the last heartbeat
	byHash    together[string, store.Key]
	standings together[[2]string, store.Standing]
	latest    together[[2]string, string] // versions of workflows

	closed   atomic.Bool
	closing  sync.Once
	closeErr error
}

var _ store.Store = (*Store)(nil)

// Open connects to the database of an address such as postgres://host/name. The
// address may name the protocol: default_query_exec_mode=cache_describe or simple
// for poolers that keep no prepared statements.
func Open(ctx context.Context, address string, opts Options) (*Store, error) {
	cfg, err := parse(address, opts)
	if err != nil {
		return nil, wrap("open", err)
	}
	counted := &counted{}
	cfg.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), cfg)
	if err != nil {
		return nil, wrap("open", err)
	}
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	s := &Store{pool: pool, timeout: opts.Timeout, counted: counted}
	if err := s.ready(ctx, opts.Migrate); err != nil {
		pool.Close()
		return nil, wrap("open", fault(ctx, err))
	}
	if opts.Writers <= 0 {
		opts.Writers = 3
	}
	if opts.Listen != "" {
		if s.hints, err = startHints(opts.Listen, opts.Log); err != nil {
			pool.Close()
			return nil, wrap("open", err)
		}
	}
	s.writer = startWriter(s, opts.Writers)
	return s, nil
}

func parse(address string, opts Options) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the database: %w", err)
	}
	switch {
	case opts.Connections > 0:
		cfg.MaxConns = int32(opts.Connections)
	default:
		cfg.MaxConns = max(cfg.MaxConns, 16)
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	cfg.ConnConfig.DialFunc = dialer.DialContext
	cfg.MaxConnIdleTime = 5 * time.Minute
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "fermata"
	}
	return cfg, nil
}

// Password is what an address, the environment or a file says the password of a database
// is, for whoever has to keep it out of what people read; empty for none, and for one
// that is no secret: a word that is its user's, its database's or everybody's.
func Password(address string) string {
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return ""
	}
	c := cfg.ConnConfig
	if slices.Contains([]string{c.User, c.Database, c.Host, "postgres", "password", "fermata"}, c.Password) {
		return ""
	}
	return c.Password
}

// Runs implements store.Store.
func (s *Store) Runs() store.Runs { return runs{s} }

// Ownership implements store.Store.
func (s *Store) Ownership() store.Ownership { return ownership{s} }

// Workflows implements store.Store.
func (s *Store) Workflows() store.Workflows { return workflows{s} }

// Keys implements store.Store.
func (s *Store) Keys() store.Keys { return keys{s} }

// Secrets implements store.Store.
func (s *Store) Secrets() store.Secrets { return secrets{s} }

// Idempotency implements store.Store.
func (s *Store) Idempotency() store.Idempotency { return idempotency{s} }

// Effects implements store.Store.
func (s *Store) Effects() store.Effects { return effects{s} }

// Webhooks implements store.Store.
func (s *Store) Webhooks() store.Webhooks { return webhooks{s} }

// Deliveries implements store.Store.
func (s *Store) Deliveries() store.Deliveries { return deliveries{s} }

// Retention implements store.Store.
func (s *Store) Retention() store.Retention { return retention{s} }

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	err := s.read(ctx, func(q querier) error {
		_, err := q.Exec(ctx, `SELECT 1 FROM runs LIMIT 1`)
		return err
	})
	if err == nil && s.mute.Load() {
		err = fmt.Errorf("%w: it answers, and did not take the last heartbeat", store.ErrUnavailable)
	}
	return wrap("ping", err)
}

// Close finishes the writes and reads that are under way, then lets go of the
// database. Later calls fail with store.ErrClosed; closing again does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.writer.close()
		s.hints.close()
		s.closed.Store(true)
		s.pool.Close()
	})
	return s.closeErr
}

// ready fails if a call should not even begin.
func (s *Store) open(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// wrap says what failed; the sentinels stay recognizable.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("postgres: %s: %w", what, err)
}

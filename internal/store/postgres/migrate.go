package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// version counts the migrations the database has had; needs is the version a
	// program must know to work with it. Migrations that only add leave needs alone,
	// so that a replica of the version before goes on beside them.
	makeSchema  = `CREATE TABLE IF NOT EXISTS fermata_schema (id bigint PRIMARY KEY, version bigint NOT NULL, needs bigint NOT NULL, partitions bigint NOT NULL DEFAULT 0)`
	beginSchema = `INSERT INTO fermata_schema (id, version, needs, partitions) VALUES (1, 0, 0, 0) ON CONFLICT DO NOTHING`
	readSchema  = `SELECT version, needs, partitions FROM fermata_schema WHERE id = 1`
	lockSchema  = readSchema + ` FOR UPDATE`
	setSchema   = `UPDATE fermata_schema SET version = $1, needs = $2, partitions = $3 WHERE id = 1`
)

// Schema says how far a database has been migrated, and how far this program goes.
type Schema struct {
	Version    int // migrations the database has had
	Needs      int // the version a program must know to work with it
	Newest     int // migrations this program has
	Partitions int // of each table that grows with runs; 0 for none
}

// Usable reports whether this program can work with the database as it is.
func (s Schema) Usable() bool { return s.Version >= s.Newest && s.Needs <= s.Newest }

// ready makes sure that the schema is one the statements expect.
func (s *Store) ready(ctx context.Context, up bool) error {
	is, err := schemaOf(ctx, s.pool)
	if err == nil && up && is.Version < is.Newest {
		is, err = migrateUp(ctx, s.pool, 0)
	}
	switch {
	case err != nil:
		return err
	case is.Needs > is.Newest:
		return fmt.Errorf("the database needs a program that knows schema version %d and this one knows up to %d: use a newer program", is.Needs, is.Newest)
	case is.Version < is.Newest:
		return fmt.Errorf("the database has schema version %d and this program needs %d: run migrate up", is.Version, is.Newest)
	}
	return unfinished(ctx, s.pool)
}

// Status reads how far the database of an address has been migrated.
func Status(ctx context.Context, address string) (is Schema, err error) {
	err = withPool(ctx, address, func(p *pgxpool.Pool) error {
		is, err = schemaOf(ctx, p)
		return err
	})
	return is, wrap("read the schema version", fault(ctx, err))
}

// Up brings the database of an address to the newest schema. Any number of programs
// may do that at once. With partitions above zero the tables that grow with runs come
// in so many parts each. That is decided when they are made: of a database that has
// them otherwise, it is ErrPartitions.
func Up(ctx context.Context, address string, partitions int) (is Schema, err error) {
	if partitions < 0 || partitions == 1 || partitions > MaxPartitions {
		return is, fmt.Errorf("postgres: %d partitions: want 0, or from 2 to %d", partitions, MaxPartitions)
	}
	err = withPool(ctx, address, func(p *pgxpool.Pool) error {
		is, err = migrateUp(ctx, p, partitions)
		return err
	})
	return is, wrap("migrate", fault(ctx, err))
}

func withPool(ctx context.Context, address string, fn func(p *pgxpool.Pool) error) error {
	cfg, err := parse(address, Options{Connections: 1})
	if err != nil {
		return err
	}
	unprepared(cfg.ConnConfig)
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer p.Close()
	return fn(p)
}

// unprepared has a connection that is used for a moment prepare nothing, so that it
// works behind every pooler whether the address says so or not.
func unprepared(cfg *pgx.ConnConfig) {
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

func schemaOf(ctx context.Context, q querier) (Schema, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	is := Schema{Newest: len(files)}
	if err == nil {
		_, err = one(ctx, q, readSchema, nil, &is.Version, &is.Needs, &is.Partitions)
	}
	if code(err) == undefined { // a database that is empty
		err = nil
	}
	return is, err
}

func code(err error) string {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// migrateUp applies what is missing, each migration in a transaction of its own that
// holds the schema's row, so that of several programs one applies it.
func migrateUp(ctx context.Context, pool *pgxpool.Pool, partitions int) (is Schema, err error) {
	for try := 0; ; try++ {
		// Two who make the table at once may be in each other's way.
		if _, err = pool.Exec(ctx, makeSchema); err == nil {
			_, err = pool.Exec(ctx, beginSchema)
		}
		if err == nil || try == contestedTries {
			break
		}
		pause(ctx, try)
	}
	if err != nil {
		return is, err
	}
	for {
		done := false
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			done, err = migrateOne(ctx, tx, partitions)
			return err
		})
		if contested(err) {
			continue
		}
		if err != nil {
			return is, err
		}
		if done {
			is, err = schemaOf(ctx, pool)
			if err == nil && partitions > 0 && is.Partitions != partitions {
				err = fmt.Errorf("%w: it has %d, and not %d", ErrPartitions, is.Partitions, partitions)
			}
			return is, err
		}
	}
}

func migrateOne(ctx context.Context, tx pgx.Tx, partitions int) (done bool, err error) {
	files, err := fs.Glob(migrations, "migrations/*.sql") // in order of name, from 1 without a gap
	if err != nil {
		return false, err
	}
	var version, needs, have int
	if err := tx.QueryRow(ctx, lockSchema).Scan(&version, &needs, &have); err != nil {
		return false, err
	}
	if version > 0 { // whoever began has decided
		partitions = have
	}
	if version >= len(files) {
		return true, nil
	}
	text, err := migrations.ReadFile(files[version])
	if err != nil {
		return false, err
	}
	if needs, err = neededBy(string(text)); err != nil {
		return false, fmt.Errorf("%s: %w", files[version], err)
	}
	if _, err := tx.Conn().PgConn().Exec(ctx, parted(string(text), partitions)).ReadAll(); err != nil {
		return false, fmt.Errorf("%s: %w", files[version], err)
	}
	_, err = tx.Exec(ctx, setSchema, version+1, needs, partitions)
	return false, err
}

// neededBy reads the first line of a migration.
func neededBy(text string) (int, error) {
	line, _, _ := strings.Cut(text, "\n")
	n, ok := strings.CutPrefix(line, "-- needs: ")
	if !ok {
		return 0, errors.New(`a migration begins with "-- needs: N"`)
	}
	return strconv.Atoi(n)
}

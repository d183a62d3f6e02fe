package postgres

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Finding is the outcome of one look at a database.
type Finding struct {
	Check  string
	OK     bool
	Detail string
	Fix    string // what to do if it is not
}

const (
	takesNoWrites = `SELECT current_setting('transaction_read_only') = 'on'`
	missingRights = `SELECT t || ' ' || p FROM unnest($1::text[]) t, unnest($2::text[]) p WHERE NOT has_table_privilege(t, p) ORDER BY 1`
	mayCreate     = `SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)`
	everyHost     = `SELECT id, lease_until > now() FROM instances ORDER BY id`
)

// maxSkew is how far a host's clock may be from the database's before somebody should
// hear of it. The host puts itself right; what else runs on its machine does not.
const maxSkew = 5 * time.Second

// probeTime bounds what a look waits for.
const probeTime = 5 * time.Second

// Examine looks at the database of an address, and changes nothing in it.
func Examine(ctx context.Context, address string) []Finding {
	x := &examination{ctx: ctx}
	cfg, err := parse(address, Options{Connections: 1})
	if err != nil {
		return []Finding{{"store", false, err.Error(), "Correct the address."}}
	}
	x.cfg, x.mode = cfg.ConnConfig, cfg.ConnConfig.DefaultQueryExecMode
	unprepared(x.cfg)
	x.c, err = pgx.ConnectConfig(ctx, x.cfg)
	if err != nil {
		return []Finding{{"store", false, err.Error(), "Start the database, or correct the address, the user or the password (PGPASSWORD, PGPASSFILE)."}}
	}
	defer x.hangUp(x.c)
	for _, look := range []func() error{x.server, x.link, x.writes, x.clock, x.schema, x.statements} {
		if err := look(); err != nil {
			x.bad("store", "Look at the log of the database.", "%v", err)
			break
		}
	}
	return x.found
}

type examination struct {
	ctx   context.Context
	cfg   *pgx.ConnConfig
	mode  pgx.QueryExecMode // that the address asks for
	c     *pgx.Conn
	found []Finding
}

func (x *examination) good(check, format string, args ...any) {
	x.found = append(x.found, Finding{Check: check, OK: true, Detail: fmt.Sprintf(format, args...)})
}

func (x *examination) bad(check, fix, format string, args ...any) {
	x.found = append(x.found, Finding{Check: check, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

func (x *examination) hangUp(c *pgx.Conn) {
	end, done := context.WithTimeout(context.WithoutCancel(x.ctx), time.Second)
	defer done()
	c.Close(end) //nolint:errcheck // nothing is under way
}

func (x *examination) server() error {
	c := x.c.PgConn()
	x.good("store", "PostgreSQL %s answers at %s:%d, database %s, user %s", c.ParameterStatus("server_version"), x.cfg.Host, x.cfg.Port, x.cfg.Database, x.cfg.User)
	if e := c.ParameterStatus("server_encoding"); e != "UTF8" && e != "" {
		x.bad("encoding", "Make the database with ENCODING 'UTF8'.", "the database keeps text as %s", e)
	}
	return nil
}

// link looks at who could listen.
func (x *examination) link() error {
	_, sealed := x.c.PgConn().Conn().(*tls.Conn)
	ip := net.ParseIP(x.cfg.Host)
	near := strings.HasPrefix(x.cfg.Host, "/") || x.cfg.Host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case sealed:
		x.good("link", "encrypted")
	case near:
		x.good("link", "on this machine, without encryption")
	default:
		x.bad("link", "Add sslmode=verify-full to the address, and sslrootcert=FILE if the authority is your own.", "what is sent travels without encryption")
	}
	return nil
}

func (x *examination) writes() error {
	var no bool
	if err := x.c.QueryRow(x.ctx, takesNoWrites).Scan(&no); err != nil {
		return err
	}
	if no {
		x.bad("writes", "Give the address of the primary, or target_session_attrs=read-write with all addresses.", "the server takes no writes: it is a standby, or set to read only")
	} else {
		x.good("writes", "the server takes them")
	}
	return nil
}

func (x *examination) clock() error {
	var said time.Time
	before := time.Now()
	if err := x.c.QueryRow(x.ctx, databaseTime).Scan(&said); err != nil {
		return err
	}
	after := time.Now()
	apart := said.Sub(before.Add(after.Sub(before) / 2)).Abs()
	if apart > maxSkew+after.Sub(before) {
		x.bad("clock", "Let both machines keep time by NTP. A host goes by the database's time.", "this machine and the database are %s apart", apart.Round(time.Second))
	} else {
		x.good("clock", "agrees with the database's")
	}
	return nil
}

func (x *examination) schema() error {
	is, err := schemaOf(x.ctx, x.c)
	if err != nil {
		if code(err) == "42501" {
			x.bad("schema", "Grant the user rights on the tables.", "%v", err)
			return nil
		}
		return err
	}
	switch {
	case is.Version == 0:
		var may bool
		if err := x.c.QueryRow(x.ctx, mayCreate).Scan(&may); err != nil {
			return err
		}
		if !may {
			x.bad("schema", "GRANT CREATE ON SCHEMA public TO the user, or run fermata migrate up as one who may.", "the database is empty, and this user may make no tables")
		} else {
			x.good("schema", "the database is empty; the first start makes the tables")
		}
		return nil
	case is.Needs > is.Newest:
		x.bad("schema", "Use a newer program.", "the database needs a program that knows version %d; this one knows %d", is.Needs, is.Newest)
		return nil
	case is.Version < is.Newest:
		x.good("schema", "version %d; the next start brings it to %d, or fermata migrate up", is.Version, is.Newest)
		return nil
	}
	if err := unfinished(x.ctx, x.c); err != nil {
		x.bad("schema", "Wait for it, run it again, or begin with a new database.", "%v", err)
		return nil
	}
	x.good("schema", "version %d", is.Version)
	if err := x.rights(); err != nil {
		return err
	}
	return x.hosts()
}

func (x *examination) rights() error {
	var tables []string
	for _, t := range store.Tables {
		tables = append(tables, t.Name)
	}
	for name := range leftOut {
		if !strings.Contains(name, ".") && name != "fermata_schema" {
			tables = append(tables, name)
		}
	}
	lack, err := list(x.ctx, x.c, pgx.RowTo[string], missingRights, tables, []string{"SELECT", "INSERT", "UPDATE", "DELETE"})
	if err != nil {
		return err
	}
	// Nothing of the audit log is changed, so the right to do so is not needed.
	lack = slices.DeleteFunc(lack, func(s string) bool { return s == "audit_entries UPDATE" })
	if len(lack) > 0 {
		x.bad("rights", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO the user.", "the user lacks %d rights, such as %s", len(lack), lack[0])
		return nil
	}
	x.good("rights", "the user may read and write every table")
	return nil
}

func (x *examination) hosts() error {
	var live, over []string
	rows, err := x.c.Query(x.ctx, everyHost)
	if err != nil {
		return err
	}
	var id string
	var lives bool
	_, err = pgx.ForEachRow(rows, []any{&id, &lives}, func() error {
		if lives {
			live = append(live, id)
		} else {
			over = append(over, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d alive", len(live))
	if len(live) > 0 {
		text += " (" + strings.Join(live, ", ") + ")"
	}
	if len(over) > 0 {
		text += fmt.Sprintf(", %d fallen silent", len(over))
	}
	x.good("hosts", "%s", text)
	return nil
}

// statements finds out whether a statement that was prepared is still there when
// another connection has been busy in between: a pooler that hands out a connection
// per transaction may have given this one's away.
func (x *examination) statements() error {
	if m := x.mode; m != pgx.QueryExecModeCacheStatement {
		x.good("statements", "none is prepared (%s), as some poolers need it", m)
		return nil
	}
	ctx, done := context.WithTimeout(x.ctx, probeTime)
	defer done()
	other, err := pgx.ConnectConfig(ctx, x.cfg)
	if err != nil {
		x.bad("statements", "Raise the bound on connections: a host wants up to --store-connections of them.", "a second connection was refused: %v", err)
		return nil
	}
	defer x.hangUp(other)
	kept, err := keptPrepared(ctx, x.c.PgConn(), other)
	switch {
	case err != nil && ctx.Err() != nil && x.ctx.Err() == nil:
		x.bad("statements", "Let the pooler have more connections to the server.", "a statement waits for a connection that another one has")
	case err != nil:
		return err
	case !kept:
		x.bad("statements", "Add default_query_exec_mode=cache_describe to the address, or let the pooler keep prepared statements.",
			"a pooler in between loses prepared statements")
	default:
		x.good("statements", "prepared ones are kept")
	}
	return nil
}

// keptPrepared executes a statement that one connection has prepared while another
// one is in a transaction, which may be on the server's side of the first.
func keptPrepared(ctx context.Context, c *pgconn.PgConn, other *pgx.Conn) (bool, error) {
	const name, sql = "fermata_doctor", `SELECT 1`
	for range 3 {
		if _, err := c.Prepare(ctx, name, sql, nil); err != nil {
			return false, lost(err)
		}
		tx, err := other.Begin(ctx)
		if err != nil {
			return false, err
		}
		r := c.ExecPrepared(ctx, name, nil, nil, nil).Read()
		if err := tx.Rollback(ctx); err != nil {
			return false, err
		}
		if r.Err != nil {
			return false, lost(r.Err)
		}
		if err := c.Deallocate(ctx, name); err != nil {
			return false, lost(err)
		}
	}
	return true, nil
}

// lost is no error if a statement is not there, or is there already: then it is the
// answer.
func lost(err error) error {
	if c := code(err); c == noStatement || c == "42P05" {
		return nil
	}
	return err
}

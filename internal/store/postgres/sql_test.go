package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// statements reads every constant of the package that is SQL, by its name.
func statements(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]ast.Expr{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, n := range v.Names {
					if i < len(v.Values) {
						values[n.Name] = v.Values[i]
					}
				}
			}
		}
	}
	var text func(e ast.Expr) (string, bool)
	text = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.BasicLit:
			s, err := strconv.Unquote(e.Value)
			return s, err == nil && e.Kind == token.STRING
		case *ast.BinaryExpr:
			a, ok := text(e.X)
			b, ok2 := text(e.Y)
			return a + b, ok && ok2
		case *ast.Ident:
			return text(values[e.Name])
		}
		return "", false
	}
	out := map[string]string{}
	for name, e := range values {
		if s, ok := text(e); ok && regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH) `).MatchString(s) {
			out[name] = strings.Join(strings.Fields(s), " ")
		}
	}
	if len(out) < 90 {
		t.Fatalf("only %d statements were found", len(out))
	}
	return out
}

// hostTables belong to the host and to no tenant: few rows, which a distributed
// database keeps in every place.
var hostTables = []string{"instances", "key_hashes", "secrets", "retention_clock", "fermata_schema"}

// acrossTenants are the statements that are about no tenant: the looks of a replica
// for work, and sweeps. Each reads an index in its order and stops.
var acrossTenants = []string{
	"lostRuns", "dueRuns", "nextLost", "nextDue", "nextHolder", "nextWake", "unsettled", "nextTenant", "dueTargets", "nextTarget",
	"lostTargets", "lostEntries", "oldRecords", "oldEffects", "oldAttempts", "oldLetters", "selectPending", "oldExpired",
	"dueSchedules", "nextSchedule", "takeTold", "dropTold", "endedCredentials", "vaultKeys", "listAnswerCells", "listSecretCells", "oldestStaged",
	"unkeyed", "countKeys", // at the start of a host
	"missingRights",                  // of the catalogue: what an operator asks
	"selectChildren", "needingChild", // by the whole key of a parent, which leads with a tenant
}

// TestStatementsAreShared holds the SQL to what PostgreSQL, CockroachDB, YugabyteDB
// and Citus share, and every statement about a tenant's rows to naming the tenant.
func TestStatementsAreShared(t *testing.T) {
	foreign := regexp.MustCompile(`(?i)advisory|\blisten\b|^notify\b|; *notify\b|pg_notify|\btrigger\b|\bxmin\b|\bctid\b|\btableoid\b|\bmerge into\b|\blateral\b|\brecursive\b|` +
		`\bset (local|session)\b|\bcreate temp|\bpg_\w+|\bgenerate_series\b|\block table\b|\bserial\b|\bnextval\b|\bskip locked.*order|\bdeclare\b|\bfetch\b`)
	table := regexp.MustCompile(`(?:FROM|INTO|UPDATE) ([a-z_]+)`)
	tenant := regexp.MustCompile(`(tenant|parent_tenant)( =|,| >)|\(tenant`)
	for name, sql := range statements(t) {
		if name == "sendHint" { // for whoever has been set to listen, and relied upon by nobody
			continue
		}
		if m := foreign.FindString(sql); m != "" {
			t.Errorf("%s uses %q:\n%s", name, m, sql)
		}
		m := table.FindStringSubmatch(sql)
		if m == nil || slices.Contains(hostTables, m[1]) || slices.Contains(acrossTenants, name) {
			continue
		}
		if !tenant.MatchString(sql) {
			t.Errorf("%s does not name a tenant:\n%s", name, sql)
		}
		if strings.Contains(sql, " IN (SELECT") && !strings.Contains(sql, "tenant") {
			t.Errorf("%s selects across tenants:\n%s", name, sql)
		}
	}
}

// TestKeysLeadWithTheTenant: of every table that grows with use, and its run next
// where it has one.
func TestKeysLeadWithTheTenant(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, "", Options{})
	at := strings.TrimSuffix(pgtest.Database(t, dir), "?sslmode=disable")
	db := at[strings.LastIndexByte(at, '/')+1:]
	rows, err := pgtest.Shared(t).Query(t.Context(), db, `SELECT c.relname || ' ' || pg_get_indexdef(i.indexrelid) FROM pg_index i
		JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'public' AND i.indisprimary`)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 20 {
		t.Fatalf("%d keys", len(rows))
	}
	for _, row := range rows {
		name, def, _ := strings.Cut(row, " ")
		_, columns, _ := strings.Cut(def, "(")
		if !slices.Contains(hostTables, name) && !strings.HasPrefix(columns, "tenant") {
			t.Errorf("the key of %s is (%s", name, columns)
		}
	}
	rest, err := pgtest.Shared(t).Query(t.Context(), db, `SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL SELECT sequencename::text FROM pg_sequences UNION ALL SELECT conname::text FROM pg_constraint WHERE contype = 'f'`)
	if err != nil || len(rest) > 0 {
		t.Errorf("triggers, sequences or foreign keys: %v %v", rest, err)
	}
}

// TestPlans holds the statements that must stay cheap to their indexes, on a table
// large enough that the planner cares.
func TestPlans(t *testing.T) {
	dir := t.TempDir()
	openTest(t, dir, "", Options{})
	at := strings.TrimSuffix(pgtest.Database(t, dir), "?sslmode=disable")
	db := at[strings.LastIndexByte(at, '/')+1:]
	c := pgtest.Shared(t)
	err := c.Exec(t.Context(), db, `
		INSERT INTO runs (tenant, run_id, workflow, workflow_version, status, seq, epoch, instance, wake_at, created_at, completed_at,
			current_node, parent_node, notify, fork_seq)
		SELECT 't' || n % 50, 'r' || lpad(n::text, 8, '0'), 'w', '1', CASE WHEN n % 100 = 0 THEN 'running' WHEN n % 100 = 1 THEN 'waiting-external' ELSE 'completed' END,
			1, 1, CASE WHEN n % 100 = 0 THEN 'i' || n % 3 END, CASE WHEN n % 100 = 1 THEN n END, n, CASE WHEN n % 100 > 1 THEN n END, '', '', false, 0
		FROM generate_series(1, 50000) n;
		INSERT INTO events (tenant, run_id, seq, n, body, mark) SELECT tenant, run_id, s, 1, '{}', 0 FROM runs, generate_series(0, 2) s;
		INSERT INTO checkpoints (tenant, run_id, seq, state) SELECT tenant, run_id, 1, '{}' FROM runs WHERE seq % 2 = 1;
		UPDATE runs SET workspace = CAST('w' || seq % 9 AS bytea) WHERE status <> 'completed';
		INSERT INTO keys (tenant, id, hash, form, old_hash, name, kind, workspace, scopes, in_groups, has_roles, version)
			SELECT 't' || n % 50, 'k' || n, CAST('h' || n AS bytea), n % 1000 > 0, CAST('o' || n AS bytea), '', '', '', '[]', '[]', '[]', 0 FROM generate_series(1, 5000) n;
		INSERT INTO key_hashes (hash, tenant, id) SELECT hash, tenant, id FROM keys UNION ALL SELECT old_hash, tenant, id FROM keys;
		INSERT INTO tenants (tenant, name, state, unsettled, version) SELECT 't' || n, '', 'active', n % 1000 = 0, 0 FROM generate_series(1, 5000) n;
		INSERT INTO members (tenant, id, issuer, subject, name, workspace, in_groups, has_roles)
			SELECT 't' || n % 50, 'm' || n, '', '', '', '', '[]', '[]' FROM generate_series(1, 5000) n;
		INSERT INTO roles (tenant, name, scopes) SELECT 't' || n % 500, 'r' || n, '[]' FROM generate_series(1, 5000) n;
		INSERT INTO delivery_targets (tenant, target, due_at, resume_at, failures) SELECT 't' || n % 50, 'd' || n, n, 0, 0 FROM generate_series(1, 5000) n;
		INSERT INTO deliveries (tenant, target, run_id, next_seq, last_seq, attempts, due_at, claim, created_at)
			SELECT 't' || n % 50, 'd' || n % 5000, 'r' || n, 0, 0, 0, n, 0, n FROM generate_series(1, 20000) n;
		ANALYZE`)
	if err != nil {
		t.Fatal(err)
	}
	all := statements(t)
	for name, index := range map[string]string{
		"selectRun": "runs_pkey", "updateRun": "runs_pkey", "claimRun": "runs_pkey", "settleChild": "runs_",
		"selectSegments": "events_pkey", "selectTail": "events_pkey", "listAll": "runs_pkey", "listWorkflow": "runs_workflow",
		"listStatus": "runs_status", "selectChildren": "runs_parent", "nextHolder": "runs_instance", "lostRuns": "runs_instance",
		"nextLost": "runs_instance", "lostOf": "runs_instance", "nextDue": "runs_due", "dueOf": "runs_due",
		"dueRuns": "runs_wake", "nextWake": "runs_wake", "unsettled": "runs_notify", "selectEnded": "runs_ended", "endOf": "runs_ended",
		"nextTenant": "runs_", "dueTargets": "delivery_targets_due", "nextTarget": "delivery_targets_due",
		"dueEntries": "deliveries_due", "heldEntry": "deliveries_", "activeInScope": "runs_scope", "countActive": "runs_",
		"listWorkspace": "runs_workspace", "keyByHash": "key_hashes_pkey", "keyByID": "keys_pkey", "listKeys": "keys_pkey", "keyVersion": "keys_pkey",
		"touchKey": "keys_pkey", "dropHashes": "key_hashes_key", "unkeyed": "keys_unkeyed", "selectTenant": "tenants_pkey", "listTenants": "tenants_pkey",
		"listUnsettled": "tenants_unsettled", "selectMember": "members_pkey", "listMembers": "members_pkey", "listRoles": "roles_pkey",
	} {
		sql := all[name]
		if sql == "" {
			t.Errorf("there is no statement %s", name)
			continue
		}
		plan, err := c.Query(t.Context(), db, `SET plan_cache_mode = force_generic_plan; PREPARE x AS `+sql+`; EXPLAIN EXECUTE x `+nulls(sql))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := strings.Join(plan, "\n")
		if !strings.Contains(text, index) || strings.Contains(text, "Seq Scan") {
			t.Errorf("plan of %s does not use %s:\n%s\n%s", name, index, sql, text)
		}
	}
}

// nulls are as many arguments as a statement has parameters.
func nulls(sql string) string {
	most := 0
	for _, m := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(sql, -1) {
		n, _ := strconv.Atoi(m[1])
		most = max(most, n)
	}
	if most == 0 {
		return ""
	}
	return "(" + strings.TrimSuffix(strings.Repeat("NULL,", most), ",") + ")"
}

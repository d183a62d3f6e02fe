package postgres

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// fillRuns adds runs number from..to of fifty tenants: most are over, one in a hundred
// is being executed, one waits for a timer, one for a person, one has failed. size is
// of the documents of a run's one segment.
func fillRuns(from, to, size int) string {
	return fmt.Sprintf(`
		INSERT INTO runs (tenant, run_id, workflow, workflow_version, status, seq, epoch, instance, wake_at, created_at, started_at, completed_at,
			current_node, parent_tenant, parent_id, parent_node, notify, owner, fork_seq, scope, workspace)
		SELECT 't' || n %% 50, 'r' || lpad(n::text, 10, '0'), convert_to('w' || n / 50 %% 20, 'UTF8'), '1',
			(ARRAY['running', 'waiting-external', 'waiting-approval', 'failed'])[n / 50 %% 100 + 1], 3, 1,
			CASE WHEN n / 50 %% 100 = 0 THEN 'i' || n / 5000 %% 3 END, CASE WHEN n / 50 %% 100 = 1 THEN n END, n, n,
			CASE WHEN n / 50 %% 100 > 2 THEN n END, '', CASE WHEN n / 50 %% 7 = 0 THEN 't' || n %% 50 END,
			CASE WHEN n / 50 %% 7 = 0 THEN 'r' || lpad((n - n %% 3500)::text, 10, '0') END, '', n / 50 %% 1000 = 0, '{}', 0,
			CASE WHEN n / 50 %% 11 = 0 THEN convert_to('s' || n, 'UTF8') END, CASE WHEN n / 50 %% 2 = 0 THEN convert_to('ws' || n / 50 %% 10, 'UTF8') END
		FROM (SELECT n FROM generate_series(%[1]d, %[2]d) n WHERE n / 50 %% 100 < 4) x;
		INSERT INTO runs (tenant, run_id, workflow, workflow_version, status, seq, epoch, created_at, started_at, completed_at,
			current_node, parent_node, notify, owner, fork_seq, workspace)
		SELECT 't' || n %% 50, 'r' || lpad(n::text, 10, '0'), convert_to('w' || n / 50 %% 20, 'UTF8'), '1', 'completed', 3, 1, n, n, n, '', '', false, '{}', 0,
			CASE WHEN n / 50 %% 2 = 0 THEN convert_to('ws' || n / 50 %% 10, 'UTF8') END
		FROM generate_series(%[1]d, %[2]d) n WHERE n / 50 %% 100 >= 4;
		INSERT INTO events (tenant, run_id, seq, n, body, mark)
		SELECT 't' || n %% 50, 'r' || lpad(n::text, 10, '0'), 0, 4, convert_to(rpad('', %[3]d, md5(n::text)), 'UTF8'), n FROM generate_series(%[1]d, %[2]d) n;
		INSERT INTO checkpoints (tenant, run_id, seq, state)
		SELECT 't' || n %% 50, 'r' || lpad(n::text, 10, '0'), 3, '{}' FROM generate_series(%[1]d, %[2]d) n WHERE n / 50 %% 100 < 3;
		INSERT INTO interrupts (tenant, id, run_id, node_id, kind, key, data, created_at, open)
		SELECT 't' || n %% 50, 'x' || lpad(n::text, 10, '0'), 'r' || lpad(n::text, 10, '0'), 'ok', 'approval', '', '{}', n, n / 50 %% 100 = 2
		FROM generate_series(%[1]d, %[2]d) n WHERE n / 50 %% 20 = 2;`, from, to, size)
}

// fillRest adds n rows to every other table that grows with use.
func fillRest(n int) string {
	run := `'t' || n % 50, 'r' || lpad(n::text, 10, '0')`
	rows := fmt.Sprintf("FROM (SELECT n FROM generate_series(1, %d) n) numbers", n)
	return strings.NewReplacer("RUN", run, "FROM N", rows).Replace(`
		INSERT INTO expired (tenant, run_id, expired_at, pending) SELECT 't' || n % 50, 'gone' || n, n, n % 1000 = 0 FROM N;
		INSERT INTO workflows (tenant, id, version, ord, digest, definition, latest)
			SELECT 't' || n % 50, convert_to('w' || n / 50, 'UTF8'), convert_to('v' || v, 'UTF8'), v, '', '{}', v = 3 FROM N, generate_series(1, 3) v;
		INSERT INTO schedules (tenant, workflow, trigger_id, version, spec, owner, next_at, due_at, last_at, last_run, revision)
			SELECT 't' || n % 50, convert_to('w' || n / 50, 'UTF8'), convert_to('s' || v, 'UTF8'), '1', '{}', '{}', n, n, NULL, '', 1 FROM N, generate_series(1, 2) v;
		INSERT INTO keys (tenant, id, hash, form, old_hash, name, kind, workspace, scopes, in_groups, has_roles, version)
			SELECT 't' || n % 50, 'k' || n, convert_to('h' || n, 'UTF8'), n % 1000 > 0, convert_to('o' || n, 'UTF8'), '', '', '', '[]', '[]', '[]', 0 FROM N;
		INSERT INTO key_hashes (hash, tenant, id) SELECT hash, tenant, id FROM keys UNION ALL SELECT old_hash, tenant, id FROM keys;
		INSERT INTO tenants (tenant, name, state, unsettled, version) SELECT 't' || n, '', 'active', n % 1000 = 0, 0 FROM N;
		INSERT INTO members (tenant, id, issuer, subject, name, workspace, in_groups, has_roles) SELECT 't' || n % 50, 'm' || n, '', '', '', '', '[]', '[]' FROM N;
		INSERT INTO roles (tenant, name, scopes) SELECT 't' || n % 500, 'r' || n, '[]' FROM N;
		INSERT INTO idempotency (tenant, endpoint, key, digest, run_id, attempt, created_at, expires_at)
			SELECT 't' || n % 50, 'op', convert_to('key' || n, 'UTF8'), '', 'r', 1, n, n FROM N;
		INSERT INTO effects (tenant, effect_id, state, claims, at, expires_at, run_id, node_id, attempt, n)
			SELECT 't' || n % 50, 'e' || n, 'completed', 1, n, n, 'r' || lpad(n::text, 10, '0'), '', 1, 1 FROM N;
		INSERT INTO effect_attempts (tenant, run_id, n, effect_id, node_id, attempt, keying, provider_key, invocation_id, state, at, expires_at)
			SELECT RUN, 1, 'e' || n, '', 1, '', '', '', 'completed', n, n FROM N;
		INSERT INTO effect_counts (tenant, run_id, n) SELECT RUN, 1 FROM N;
		INSERT INTO webhooks (tenant, id, url, events, secret, previous, reason, major) SELECT 't' || n % 500, 'd' || n, '', '[]', '', '', '', 2 FROM N;
		INSERT INTO webhook_turns (tenant, turn) SELECT 't' || n, 1 FROM N;
		INSERT INTO delivery_targets (tenant, target, due_at, resume_at, failures) SELECT 't' || n % 50, 'd' || n, n, 0, 0 FROM N;
		INSERT INTO deliveries (tenant, target, run_id, next_seq, last_seq, attempts, due_at, holder, claim, created_at)
			SELECT 't' || n % 50, 'd' || n, 'r' || lpad(s::text, 10, '0'), 0, 0, 0, n, CASE WHEN n % 4000 = 0 THEN 'i1' END, 0, n FROM N, generate_series(1, 2) s;
		INSERT INTO dead_letters (tenant, webhook, at, id, run_id, event_id, event_type, attempts, reason, last_status, expires_at)
			SELECT 't' || n % 50, 'd' || n % 500, n, 'l' || n, 'r', '', '', 1, '', 0, n FROM N;
		INSERT INTO staged (tenant, run_id, n, created_at) SELECT 't' || n % 50, 'st' || n, 1, n FROM N;
		INSERT INTO audit_entries (tenant, seq, body) SELECT 't' || n % 50, n / 50 + 1, '{}' FROM N;
		INSERT INTO audit_heads (tenant, seq, hash, anchored, waiting) SELECT 't' || n, 1, '', 1, CASE WHEN n % 100 = 0 THEN n END FROM N;
		INSERT INTO audit_checkpoints (tenant, seq, id, since, root, key_id, signature, at) SELECT 't' || n % 50, n, '', 0, '', '', '', '' FROM N;
		INSERT INTO audit_cuts (tenant, seq, hash, key_id, signature, at) SELECT 't' || n, 1, '', '', '', '' FROM N;
		INSERT INTO vault_keys (tenant, id, master, wrapped, created_at) SELECT 't' || n, 'k', '', '', n FROM N;
		INSERT INTO credentials (tenant, ref, run_id, version, meta, sealed, created_at)
			SELECT 't' || n % 50, 'c' || n, CASE WHEN n % 100 = 0 THEN 'r' || lpad(n::text, 10, '0') END, 1, '{}', '', n FROM N;
		INSERT INTO credential_turns (tenant, turn) SELECT 't' || n, 1 FROM N;
		INSERT INTO scope_turns (tenant, bucket, turn) SELECT 't' || n % 50, n, 1 FROM N;
		INSERT INTO told (tenant, run_id, instance) SELECT RUN, 'i' || n % 50 FROM N;
		INSERT INTO instances (id, lease_until, since) SELECT 'i' || n, now(), now() FROM generate_series(0, 99) n;`)
}

// grown is a database with that many runs, and rows of everything else; its name.
func grown(t *testing.T, runs, rest int) (db string) {
	t.Helper()
	dir := t.TempDir()
	openTest(t, dir, "", Options{})
	at := strings.TrimSuffix(pgtest.Database(t, dir), "?sslmode=disable")
	db = at[strings.LastIndexByte(at, '/')+1:]
	if err := pgtest.Shared(t).Exec(t.Context(), db, fillRuns(1, runs, 600)+fillRest(rest)); err != nil {
		t.Fatal(err)
	}
	vacuum(t, db)
	return db
}

func vacuum(t *testing.T, db string) {
	t.Helper()
	if err := pgtest.Shared(t).Exec(t.Context(), db, `VACUUM ANALYZE`); err != nil {
		t.Fatal(err)
	}
}

// wholeTables are the statements that may read a table from end to end, and why.
var wholeTables = map[string]string{
	"countKeys":       "at the start of a host, to see whether it is the first",
	"vaultKeys":       "all data keys, at the start of a host and when a key is not known",
	"listSecretCells": "rotation of the master key", "listHookCells": "the same", "listHookOldCells": "the same",
	"listCredCells": "the same", "listCredOldCells": "the same", "listAnswerCells": "the same",
	"makeHookTurns": "once, at the end of a restore", "makeCounts": "the same", "makeHashes": "the same",
	"dropTold": "told holds what is on its way between replicas: some rows, for a moment",
}

// sorted are the statements that may sort: what they sort is bounded by something else
// than the number of runs.
var sorted = map[string]string{
	"vaultKeys": "see above", "listVersions": "the versions of one workflow", "listSecrets": "the keys of one purpose",
	"selectStanding": "the roles of one tenant", "listRoles": "the same", "selectInstances": "the replicas",
	"everyHost": "the replicas", "livingHosts": "the same", "missingRights": "the tables of the schema",
}

// plan is how PostgreSQL would execute a statement with any arguments.
func plan(t *testing.T, db, sql string) string {
	t.Helper()
	got, err := pgtest.Shared(t).Query(t.Context(), db, `SET plan_cache_mode = force_generic_plan; PREPARE x AS `+sql+`; EXPLAIN EXECUTE x `+nulls(sql))
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(got, "\n")
}

// TestEveryPlan: on a database with rows in every table that grows, no statement but
// those that are listed reads a table from end to end or sorts, whatever its arguments.
func TestEveryPlan(t *testing.T) {
	db := grown(t, 60_000, 30_000)
	seq := regexp.MustCompile(`Seq Scan on (\w+)`)
	checked := 0
	all := statements(t)
	for name, sql := range all {
		if strings.HasPrefix(sql, "INSERT") && strings.Contains(sql, ") VALUES (") || sql == databaseTime {
			continue
		}
		checked++
		text := plan(t, db, sql)
		for _, m := range seq.FindAllStringSubmatch(text, -1) {
			// The rest of the host's own tables have a row for each replica or key of the host.
			if small := m[1] != "key_hashes" && slices.Contains(hostTables, m[1]); !small && wholeTables[name] == "" {
				t.Errorf("%s reads %s from end to end:\n%s\n%s", name, m[1], sql, text)
			}
		}
		if regexp.MustCompile(`(?m)\bSort\b  \(`).MatchString(text) && sorted[name] == "" {
			t.Errorf("%s sorts:\n%s\n%s", name, sql, text)
		}
	}
	for _, list := range []map[string]string{wholeTables, sorted} {
		for name := range list {
			if all[name] == "" {
				t.Errorf("there is no statement %s", name)
			}
		}
	}
	t.Logf("%d of %d statements have a plan to look at", checked, len(all))
}

// looked are statements with arguments for which a database of any size must do as much
// work as a small one: at most one page more of each index.
var looked = []struct{ what, name, args string }{
	{"read a run", "selectRun", `'t7', 'r0000001007'`},
	{"its log, after an event", "selectSegments", `'t7', 'r0000001007', 2, 64`},
	{"its log, to go on with it", "selectTail", `'t7', 'r0000001007'`},
	{"its checkpoint", "selectCheckpoint", `'t7', 'r0000000157'`},
	{"the end of its log, for streams and polls", "endOfRun", `'t7', 'r0000001007'`},
	{"a step: the row", "updateRun", `'t7', 'r0000000057', 1, 3, 'running', 4, 1, 'i1', NULL, 1, NULL, '', false, NULL, NULL`},
	{"a step: the events", "insertSegment", `'t7', 'r0000001007', 4, 1, '{}', NULL, 1`},
	{"whether the scope of a new run is free", "activeInScope", `'t7', 's57'`},
	{"active runs of a tenant, up to a bound", "countActive", `'t7', 20`},
	{"list runs", "listAll", `'t7', '~', 50`},
	{"list a workflow's", "listWorkflow", `'t7', '~', 20, 'w3'`},
	{"list those of a status", "listStatus", `'t7', '~', 20, 'failed'`},
	{"list the completed", "listCompleted", `'t7', '~', 50`},
	{"list a workflow's of a status: none", "listBoth", `'t7', '~', 50, 'w7', 'cancelled'`},
	{"list a workspace's", "listWorkspace", `'t7', '~', 20, 'ws2'`},
	{"list a workspace's of a status: none", "listWorkspaceStatus", `'t7', '~', 50, 'ws2', 'cancelled'`},
	{"children of a run", "selectChildren", `'t7', 'r0000003507'`},
	{"open interrupts", "listInterrupts", `'t7', 0, '', 20`},
	{"who holds runs", "nextHolder", `'i0'`},
	{"runs of a lost replica", "lostRuns", `'i1', 20`},
	{"due timers", "dueRuns", `1000000000, 20`},
	{"the next timer", "nextWake", ``},
	{"claim one", "claimRun", `'t7', 'r0000000107', 'i9', 1`},
	{"children with news", "unsettled", `20`},
	{"due schedules", "dueSchedules", `1000000000, 20`},
	{"the next tenant with schedules", "nextPunctual", `'t7'`},
	{"due schedules of a tenant", "punctualOf", `'t7', 1000000000, 20`},
	{"the next schedule", "nextSchedule", ``},
	{"move a schedule", "moveSchedule", `'t7', 'w9', 's1', 1, 5, 5, 4, 'r'`},
	{"list schedules", "listSchedules", `'t7', 'w9', 's1', 20`},
	{"due targets of deliveries", "dueTargets", `1000000000, '{}', 20`},
	{"their entries", "dueEntries", `'t7', 'd57', 1000000000, 4`},
	{"an entry", "heldEntry", `'t7', 'd57', 'r0000000001', 0`},
	{"a key by its hash", "keyByHash", `'h77'`},
	{"the standing of a party", "selectStanding", `'t7', 'm57'`},
	{"a request's record", "selectRecord", `'t7', 'op', 'key57'`},
	{"an effect", "selectEffect", `'t7', 'e57'`},
	{"runs that ended, for retention", "selectEnded", `'t7', 0, '', 1000000000, '~', 20`},
	{"the head of an audit chain", "selectHead", `'t7'`},
}

// TestWorkDoesNotGrow compares the pages that statements touch in a small database and
// in one of eight times the runs. With FERMATA_EVENTS the second has so many events, and
// the table and all plans are printed: the figures of docs/scaling.md.
func TestWorkDoesNotGrow(t *testing.T) {
	const small, segment = 20_000, 1_300
	large := 8 * small
	if n, err := strconv.Atoi(os.Getenv("FERMATA_EVENTS")); err == nil {
		large = n / 4
	}
	db := grown(t, small, 10_000)
	c := pgtest.Shared(t)
	before := touched(t, db)
	for at := small; at < large; at += 100_000 {
		if err := c.Exec(t.Context(), db, fillRuns(at+1, min(at+100_000, large), segment)); err != nil {
			t.Fatal(err)
		}
	}
	vacuum(t, db)
	after := touched(t, db)
	for i, x := range looked {
		a, b := before[i], after[i]
		t.Logf("%-44s %-20s %4d → %4d pages  %s", x.what, x.name, a.pages, b.pages, b.how)
		// One level more of each of up to eight indexes, and rows that lie less close.
		if b.pages > 2*a.pages+12 {
			t.Errorf("%s touches %d pages of a small database and %d of a large one:\n%s", x.name, a.pages, b.pages, b.plan)
		}
		if os.Getenv("FERMATA_EVENTS") != "" {
			t.Logf("\n%s", b.plan)
		}
	}
	if os.Getenv("FERMATA_EVENTS") != "" {
		sizes, err := c.Query(t.Context(), db, `SELECT relname || ': ' || n_live_tup || ' rows, ' || pg_table_size(relid) || ' bytes, indexes ' || pg_indexes_size(relid)
			FROM pg_stat_user_tables WHERE relname IN ('runs', 'events', 'interrupts', 'checkpoints') ORDER BY 1`)
		t.Log(strings.Join(sizes, "\n"), err)
	}
}

type work struct {
	pages     int
	how, plan string
}

// touched executes the statements, each in a transaction that is rolled back.
func touched(t *testing.T, db string) (out []work) {
	t.Helper()
	all := statements(t)
	pages := regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`)
	index := regexp.MustCompile(`(?:Scan using|Scan on|Scan Backward using) (\w+_\w+)`)
	for _, x := range looked {
		sql := all[x.name]
		if sql == "" {
			t.Fatalf("there is no statement %s", x.name)
		}
		args := ""
		if x.args != "" {
			args = "(" + x.args + ")"
		}
		plan, err := pgtest.Shared(t).Query(t.Context(), db, `SET plan_cache_mode = force_generic_plan; BEGIN; PREPARE x AS `+sql+
			`; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) EXECUTE x `+args)
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		w := work{plan: strings.Join(plan, "\n")}
		m := pages.FindStringSubmatch(w.plan)
		if m != nil {
			hit, _ := strconv.Atoi(m[1])
			read, _ := strconv.Atoi(m[2])
			w.pages = hit + read
		}
		var by []string
		for _, m := range index.FindAllStringSubmatch(w.plan, -1) {
			by = append(by, m[1])
		}
		slices.Sort(by)
		w.how = strings.Join(slices.Compact(by), ", ")
		out = append(out, w)
	}
	return out
}

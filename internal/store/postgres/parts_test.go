package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/storetest"
)

// parts is how many partitions tests make.
const parts = 3

// openParts opens the database that belongs to a folder, with partitions.
func openParts(t *testing.T, dir string) *Store {
	t.Helper()
	if is, err := Up(t.Context(), pgtest.Database(t, dir), parts); err != nil || is.Partitions != parts {
		t.Fatalf("%+v: %v", is, err)
	}
	return openTest(t, dir, "", Options{})
}

// TestContractInPartitions: the contract holds on tables in parts.
func TestContractInPartitions(t *testing.T) {
	pgtest.Shared(t)
	if testing.Short() {
		t.Skip("the contract once more")
	}
	storetest.Run(t, func(t *testing.T, dir string) store.Store { return openParts(t, dir) })
}

// partedTables are those that come in parts.
var partedTables = []string{"events", "checkpoints", "effects", "effect_attempts", "deliveries"}

// TestPartitionsAreDecidedOnce: by whoever makes the tables, and by nobody later.
func TestPartitionsAreDecidedOnce(t *testing.T) {
	dir := t.TempDir()
	s := openParts(t, dir)
	tables, err := s.count(t, `SELECT count(*) FROM pg_inherits`)
	if err != nil || tables < parts*len(partedTables) {
		t.Fatalf("%d partitions and their keys: %v", tables, err)
	}
	for _, table := range partedTables {
		n, err := s.count(t, fmt.Sprintf(`SELECT count(*) FROM pg_inherits WHERE inhparent = '%s'::regclass`, table))
		if err != nil || n != parts {
			t.Errorf("%s has %d partitions: %v", table, n, err)
		}
	}
	for n, want := range map[int]error{parts: nil, 0: nil, parts + 1: ErrPartitions, 2: ErrPartitions} {
		is, err := Up(t.Context(), pgtest.Database(t, dir), n)
		if !errors.Is(err, want) || is.Partitions != parts {
			t.Errorf("asked for %d: %+v, %v", n, is, err)
		}
	}
	for _, n := range []int{-1, 1, MaxPartitions + 1} {
		if _, err := Up(t.Context(), pgtest.Database(t, t.TempDir()), n); err == nil {
			t.Errorf("%d partitions", n)
		}
	}
	plain := t.TempDir()
	openTest(t, plain, "", Options{})
	if _, err := Up(t.Context(), pgtest.Database(t, plain), parts); !errors.Is(err, ErrPartitions) {
		t.Errorf("tables that are there in one piece: %v", err)
	}
}

func (s *Store) count(t *testing.T, sql string) (n int, err error) {
	t.Helper()
	err = s.pool.QueryRow(t.Context(), sql).Scan(&n)
	return n, err
}

// TestPartedText: without partitions a migration is what its file says.
func TestPartedText(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	marks, made := 0, 0
	for _, f := range files {
		text, err := migrations.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if parted(string(text), 0) != string(text) {
			t.Errorf("%s is not left alone", f)
		}
		marks += strings.Count(string(text), "; -- parts: ")
		made += strings.Count(parted(string(text), parts), "PARTITION BY HASH")
	}
	if marks != len(partedTables) || made != marks {
		t.Errorf("%d tables are marked, and %d made", marks, made)
	}
}

// TestPruning: a statement about one run, effect or target looks into one partition.
func TestPruning(t *testing.T) {
	dir := t.TempDir()
	s := openParts(t, dir)
	all, found := statements(t), 0
	one := regexp.MustCompile(`Scan[^\n]* on (events|checkpoints|effects|effect_attempts|deliveries)_p(\d+)\b`)
	about := regexp.MustCompile(`(FROM|INTO|UPDATE) (events|checkpoints|effects|effect_attempts|deliveries)\b`)
	across := []string{ // sweeps, and the entries of a run for all targets
		"lostTargets", "lostEntries", "oldEffects", "oldAttempts", "queuedOf",
	}
	for name, sql := range all {
		m := about.FindStringSubmatch(sql)
		if m == nil || strings.HasPrefix(sql, "INSERT") {
			continue
		}
		wide := false
		for _, x := range across {
			wide = wide || x == name
		}
		if wide {
			continue
		}
		found++
		plan, err := pgtest.Shared(t).Query(t.Context(), s.pool.Config().ConnConfig.Database,
			`SET plan_cache_mode = force_generic_plan; PREPARE x AS `+sql+`; EXPLAIN EXECUTE x `+somethings(sql))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := strings.Join(plan, "\n")
		touched := map[string]map[string]bool{}
		for _, p := range one.FindAllStringSubmatch(text, -1) {
			if touched[p[1]] == nil {
				touched[p[1]] = map[string]bool{}
			}
			touched[p[1]][p[2]] = true
		}
		if len(touched[m[2]]) == 0 {
			t.Errorf("%s looks into no partition of %s:\n%s\n%s", name, m[2], sql, text)
		}
		for table, which := range touched {
			if len(which) > 1 {
				t.Errorf("%s looks into %d partitions of %s:\n%s\n%s", name, len(which), table, sql, text)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d statements were looked at", found)
	}
}

// somethings are as many arguments as a statement has parameters, each of which any
// type can be read from.
func somethings(sql string) string {
	return strings.ReplaceAll(nulls(sql), "NULL", "'1'")
}

package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// byCheck are findings by their check: ✓ or ✗, and the text.
func byCheck(list []Finding) map[string]string {
	out := map[string]string{}
	for _, f := range list {
		sign := "✗ "
		if f.OK {
			sign = "✓ "
		}
		if !f.OK && f.Fix == "" {
			sign = "no fix: "
		}
		out[f.Check] = sign + f.Detail
	}
	return out
}

// TestExamine: what a host would stumble over is found before, with what to do.
func TestExamine(t *testing.T) {
	dir := t.TempDir()
	address, c := pgtest.Database(t, dir), pgtest.Shared(t)
	db := databaseOf(t, dir)
	want := func(at string, checks map[string]string) {
		t.Helper()
		got := byCheck(Examine(t.Context(), at))
		for check, text := range checks {
			if !strings.HasPrefix(got[check], text[:len("✓")]) || !strings.Contains(got[check], text[len("✓ "):]) {
				t.Errorf("%s: %q, want %q", check, got[check], text)
			}
		}
	}
	sql := func(text string) {
		t.Helper()
		if err := c.Exec(t.Context(), db, text); err != nil {
			t.Fatal(err)
		}
	}
	want(address, map[string]string{
		"store": "✓ answers at 127.0.0.1", "link": "✓ without encryption", "writes": "✓ takes them", "clock": "✓ agrees",
		"schema": "✓ is empty", "statements": "✓ are kept",
	})
	s := openTest(t, dir, "", Options{})
	o := s.Ownership()
	if err := o.Register(t.Context(), "host-1"); err != nil {
		t.Fatal(err)
	}
	want(address, map[string]string{"schema": "✓ version", "rights": "✓ read and write", "hosts": "✓ 1 alive (host-1)"})
	if err := o.Heartbeat(t.Context(), "host-1", -time.Hour); err != nil {
		t.Fatal(err)
	}
	want(address+"&default_query_exec_mode=exec", map[string]string{"hosts": "✓ 0 alive, 1 fallen silent", "statements": "✓ none is prepared"})

	user := "u" + db[:12]
	sql(`CREATE ROLE ` + user + ` LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ` + user)
	as := strings.Replace(address, "//fermata@", "//"+user+"@", 1)
	want(as, map[string]string{"rights": "✓ read and write"})
	sql(`REVOKE UPDATE ON audit_entries FROM ` + user)
	want(as, map[string]string{"rights": "✓ read and write"})
	sql(`REVOKE DELETE ON runs FROM ` + user)
	want(as, map[string]string{"rights": "✗ lacks 1 rights, such as runs DELETE"})
	sql(`REVOKE ALL ON fermata_schema FROM ` + user)
	want(as, map[string]string{"schema": "✗ permission denied"})

	sql(beginLoad)
	want(address, map[string]string{"schema": "✗ has not come to its end"})
	sql(endLoad)
	sql(`UPDATE fermata_schema SET version = 99, needs = 98`)
	want(address, map[string]string{"schema": "✗ knows version 98"})
	sql(`UPDATE fermata_schema SET version = 1, needs = 1`)
	want(address, map[string]string{"schema": "✓ the next start brings it to"})
	sql(`ALTER DATABASE ` + db + ` SET default_transaction_read_only = on`)
	want(address, map[string]string{"writes": "✗ takes no writes"})

	want(strings.Replace(address, "/"+db, "/nowhere", 1), map[string]string{"store": "✗ does not exist"})
	want("postgres://fermata@127.0.0.1:1/x", map[string]string{"store": "✗ failed to connect"})
	want("postgres://fermata@127.0.0.1/x?sslmode=perhaps", map[string]string{"store": "✗ sslmode"})
	for _, f := range Examine(t.Context(), "postgres://fermata:hush-hush@127.0.0.1:1/x") {
		if strings.Contains(fmt.Sprint(f), "hush-hush") {
			t.Errorf("the password is shown: %+v", f)
		}
	}
}

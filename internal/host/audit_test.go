package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/audit"
	"github.com/fermata-run/fermata/internal/clock"
	"github.com/fermata-run/fermata/internal/ids"
	"github.com/fermata-run/fermata/internal/problem"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/ncruces/go-sqlite3"
)

var auditedRun = ids.Run{Tenant: "acme", Opaque: "0000000000000000"}

var auditor = asCaller("acme", "audit:read", "fermata:audit:manage", "fermata:workflows:write")

func openAudited(t *testing.T, dir string, c clock.Clock, a Audit) *lab {
	t.Helper()
	l := open(t, dir, c)
	a.Operator = "acme"
	a.defaults()
	l.cfg.Audit = a
	if err := l.OpenAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// facts writes facts of acme.
func (l *lab) facts(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		d := l.fact("acme", "thing.done", audit.Target{Type: "thing", ID: fmt.Sprint(i)}, nil)
		if err := l.store.Audit().Append(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *lab) anchored(t *testing.T) {
	t.Helper()
	if err := l.anchorAll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

func (l *lab) verdict(t *testing.T, from, to int64) AuditVerdict {
	t.Helper()
	v, err := l.VerifyAudit(t.Context(), auditor, "", from, to)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (l *lab) export(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	err := l.ExportAudit(t.Context(), auditor, "", func(x audit.Line) error {
		b, err := json.Marshal(x)
		out.Write(append(b, '\n'))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sql changes the database file behind the host's back.
func sql(t *testing.T, dir, statements string) {
	t.Helper()
	db, err := sqlite3.Open("file:" + filepath.Join(dir, "h.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

// What somebody does to the database file is found by the host, and by whoever
// has an export.
func TestTamperedDatabase(t *testing.T) {
	const (
		open = `DROP TRIGGER audit_entries_stay;`
		of   = ` WHERE tenant = 'acme' AND seq`
	)
	for _, c := range []struct {
		name, sql string
		ok        bool // nothing is wrong
		points    bool // the checkpoints hold
	}{
		{"nothing", `SELECT 1`, true, true},
		{"edit", open + `UPDATE audit_entries SET body = CAST(replace(CAST(body AS TEXT), '"1"', '"7"') AS BLOB)` + of + ` = 2`, false, false},
		{"edit of the last", open + `UPDATE audit_entries SET body = CAST(replace(CAST(body AS TEXT), '"1"', '"7"') AS BLOB)` + of + ` = 10`, false, true},
		{"delete", `DELETE FROM audit_entries` + of + ` = 5`, false, false},
		{"delete of the first", `DELETE FROM audit_entries` + of + ` = 1`, false, false},
		{"truncate", `DELETE FROM audit_entries` + of + ` > 9`, false, true},
		{"truncate with the head", `DELETE FROM audit_entries` + of + ` > 6; UPDATE audit_heads SET seq = 6 WHERE tenant = 'acme'`, false, false},
		{"truncate with all that the head says", `DELETE FROM audit_entries` + of + ` > 4; UPDATE audit_heads SET seq = 4, anchored = 4, waiting = NULL,
			hash = (SELECT root FROM audit_checkpoints` + of + ` = 4) WHERE tenant = 'acme'`, false, false},
		{"truncate all", `DELETE FROM audit_entries WHERE tenant = 'acme'`, false, false},
		{"reorder", open + `UPDATE audit_entries SET seq = -2` + of + ` = 2; UPDATE audit_entries SET seq = 2` + of + ` = 3; UPDATE audit_entries SET seq = 3` + of + ` = -2`, false, false},
		{"insert behind the end", `INSERT INTO audit_entries SELECT tenant, 11, body FROM audit_entries` + of + ` = 10`, false, true},
		{"a checkpoint is gone", `DELETE FROM audit_checkpoints` + of + ` = 4`, false, false},
		{"the last checkpoint is gone", `DELETE FROM audit_checkpoints` + of + ` = 8`, false, false},
		{"a forged root", `UPDATE audit_checkpoints SET root = (SELECT root FROM audit_checkpoints` + of + ` = 4)` + of + ` = 8`, false, false},
		{"another key", `UPDATE secrets SET value = (SELECT value FROM secrets WHERE purpose = 'audit') WHERE purpose = 'audit-public'`, true, true},
		{"another chain's entry", open + `UPDATE audit_entries SET body = CAST(replace(CAST(body AS TEXT), '"acme"', '"evil"') AS BLOB)` + of + ` = 2`, false, false},
		{"a cut nobody signed", `INSERT INTO audit_cuts VALUES ('acme', 4, (SELECT hash FROM audit_heads WHERE tenant = 'acme'), 'k', 's', 't'); DELETE FROM audit_entries` + of + ` <= 4`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			l := openAudited(t, dir, newClock(0), Audit{Entries: 4})
			l.facts(t, 8)
			l.anchored(t)
			l.facts(t, 2)
			sql(t, dir, c.sql)
			v := l.verdict(t, 0, 1_000_000)
			if v.ChainValid != c.ok || v.CheckpointsValid != c.points {
				t.Errorf("%+v", v)
			}
			if v.From != 0 || v.To != 1_000_000 {
				t.Error("the range is not echoed")
			}
			r, err := audit.VerifyExport(bytes.NewReader(l.export(t)), nil, nil)
			if err != nil || r.Valid != c.ok && c.name != "insert behind the end" {
				t.Errorf("export: %+v, %v", r, err)
			}
		})
	}
}

// What was changed before a checkpoint is not made good by it.
func TestTamperedEntriesAreNotSigned(t *testing.T) {
	dir := t.TempDir()
	l := openAudited(t, dir, newClock(0), Audit{})
	l.facts(t, 5)
	sql(t, dir, `DELETE FROM audit_entries WHERE tenant = 'acme' AND seq = 3`)
	if err := l.anchorAll(t.Context(), true); err == nil {
		t.Error("a chain with a gap is signed")
	}
	if v := l.verdict(t, 0, 9); v.ChainValid || len(v.Checkpoints) > 0 {
		t.Errorf("%+v", v)
	}
}

// Every stretch of a chain verifies by itself, whatever it cuts through, and shows
// the checkpoints that end in it and no others.
func TestVerifyRanges(t *testing.T) {
	l := openAudited(t, t.TempDir(), newClock(0), Audit{Entries: 4})
	l.facts(t, 18)
	l.anchored(t) // 4, 8, 12, 16, 18
	l.facts(t, 3)
	points := []int64{4, 8, 12, 16, 18}
	for from := int64(0); from < 23; from++ {
		for to := from; to < 23; to++ {
			v := l.verdict(t, from, to)
			var got, want []int64
			for _, p := range v.Checkpoints {
				got = append(got, p.AtSequence)
			}
			for _, p := range points {
				if from <= p && p <= to {
					want = append(want, p)
				}
			}
			if !v.ChainValid || !slices.Equal(got, want) || v.From != from || v.To != to {
				t.Fatalf("%d to %d: %+v", from, to, v)
			}
		}
	}
	for _, c := range [][2]int64{{5, 4}, {1, 0}} {
		if _, err := l.VerifyAudit(t.Context(), auditor, "", c[0], c[1]); !problem.Is(err, problem.ValidationError) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// Checkpoints come by number of entries, and by time, and never too far apart.
func TestCheckpointCadence(t *testing.T) {
	c := newClock(time.Hour)
	l := openAudited(t, t.TempDir(), c, Audit{Entries: 3, Interval: time.Minute})
	at := func() (out []int64) {
		t.Helper()
		if err := l.anchorAll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		for _, p := range l.verdict(t, 0, 1000).Checkpoints {
			out = append(out, p.AtSequence)
		}
		return out
	}
	wants := func(want ...int64) {
		t.Helper()
		if got := at(); !slices.Equal(got, want) {
			t.Errorf("checkpoints at %v, want %v", got, want)
		}
	}
	l.facts(t, 2)
	wants()
	l.facts(t, 6)
	wants(3, 6)
	c.Advance(29 * time.Second)
	wants(3, 6)
	c.Advance(time.Second)
	wants(3, 6, 8)
	c.Advance(time.Hour)
	wants(3, 6, 8)
}

// With a new key everything still verifies, under the key of discovery; the one
// before is gone for good.
func TestAuditKeyRotation(t *testing.T) {
	dir := t.TempDir()
	l := openAudited(t, dir, newClock(0), Audit{Entries: 4})
	l.facts(t, 4)
	l.anchored(t)
	old, _ := l.auditKeys.signer()
	id, err := l.RotateAuditKey(t.Context(), auditor)
	if err != nil || id == old.KeyID {
		t.Fatal(id, err)
	}
	l.facts(t, 4)
	l.anchored(t)
	now, _ := l.auditKeys.signer()
	keys := audit.Keys{}
	if err := keys.Add(now.Public()); err != nil || now.KeyID != id {
		t.Fatal(err, now.KeyID)
	}
	v := l.verdict(t, 0, 100)
	if !v.ChainValid || len(v.Checkpoints) != 2 {
		t.Fatalf("%+v", v)
	}
	for _, p := range v.Checkpoints {
		if !keys.Signed(audit.Checkpoint{Root: p.MerkleRoot, Signature: p.Signature, KeyID: id}) {
			t.Errorf("the checkpoint at %d does not verify under the key of discovery", p.AtSequence)
		}
	}
	seeds, err := l.store.Secrets().List(t.Context(), auditPurpose)
	if err != nil || len(seeds) != 1 || seeds[0].ID != id {
		t.Errorf("%d secrets, %v", len(seeds), err)
	}
	published, err := l.AuditKeys(t.Context(), auditor)
	if err != nil || len(published) != 2 {
		t.Errorf("%v, %v", published, err)
	}
	both := audit.Keys{}
	for _, k := range published {
		if err := both.Add(k.PublicKey); err != nil || k.Signs != (k.KeyID == id) {
			t.Errorf("%+v: %v", k, err)
		}
	}
	if r, err := audit.VerifyExport(bytes.NewReader(l.export(t)), both, nil); err != nil || !r.Valid {
		t.Errorf("%+v, %v", r, err)
	}
	// An old checkpoint that was forged is not signed again.
	sql(t, dir, `UPDATE audit_checkpoints SET root = replace(root, 'a', 'b') WHERE tenant = 'acme' AND seq = 4`)
	if v := l.verdict(t, 0, 100); v.CheckpointsValid || keys.Signed(audit.Checkpoint{Root: v.Checkpoints[0].MerkleRoot, Signature: v.Checkpoints[0].Signature, KeyID: id}) {
		t.Errorf("%+v", v)
	}
}

// Old entries go up to a checkpoint, with a signed word; the rest holds, for the
// host and in an export.
func TestAuditRetention(t *testing.T) {
	c := newClock(time.Hour)
	dir := t.TempDir()
	l := openAudited(t, dir, c, Audit{Entries: 4, Retention: 24 * time.Hour})
	l.facts(t, 6)
	l.anchored(t) // 4, 6
	c.Advance(20 * time.Hour)
	l.facts(t, 5)
	l.anchored(t) // 10, 11
	cut := func() {
		t.Helper()
		if err := l.cutAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := func() int64 {
		list, err := l.store.Audit().Entries(t.Context(), "acme", 0, 1)
		if err != nil || len(list) == 0 {
			t.Fatal(err)
		}
		return list[0].Sequence
	}
	cut()
	if first() != 1 {
		t.Error("what is young is removed")
	}
	c.Advance(5 * time.Hour)
	cut()
	cut()
	if first() != 7 {
		t.Errorf("the first entry is %d", first())
	}
	l.anchored(t)
	for from := range int64(13) {
		if v := l.verdict(t, from, 1000); !v.ChainValid {
			t.Errorf("from %d: %+v", from, v)
		}
	}
	r, err := audit.VerifyExport(bytes.NewReader(l.export(t)), l.auditKeys.published(), nil)
	if err != nil || !r.Valid || r.First != 7 || r.Last != 12 {
		t.Errorf("%+v, %v", r, err)
	}
	page, err := l.ListAudit(t.Context(), auditor, "", "", 1)
	if err != nil || !strings.Contains(string(page.Entries[0].Entry), cutEntries) {
		t.Errorf("the cut is not recorded: %+v, %v", page, err)
	}
	// Where the chain does not hold, what would show it is not removed.
	c.Advance(48 * time.Hour)
	sql(t, dir, `DELETE FROM audit_entries WHERE tenant = 'acme' AND seq = 9`)
	if err := l.cutAll(t.Context()); err == nil || first() != 7 {
		t.Errorf("%v, first %d", err, first())
	}
}

// Whoever is turned away can fill neither the disk nor the memory, and is counted.
func TestDenialsAreBounded(t *testing.T) {
	l := openAudited(t, t.TempDir(), newClock(time.Hour), Audit{})
	for i := range 3 * maxDenials {
		c := asCaller("acme")
		c.Subject.SubjectID = fmt.Sprint("s", i)
		for range 5 {
			if _, err := l.ListWorkflows(t.Context(), c, "", 0); !problem.Is(err, problem.Forbidden) {
				t.Fatal(err)
			}
		}
	}
	for i := range 2 * maxDenialsAll {
		l.own(asCaller(fmt.Sprint("t", i)), auditedRun) //nolint:errcheck // counted
	}
	for range 1000 {
		l.Unauthenticated(problem.New(problem.Unauthenticated, "no"))
		l.Unauthenticated(fmt.Errorf("the store does not answer"))
	}
	drafts := l.denials.take(noon)
	if len(drafts) > maxDenialsAll+2 {
		t.Errorf("%d entries", len(drafts))
	}
	counts := map[string]int{}
	kinds := map[string]int{}
	for _, d := range drafts {
		n := 0
		fmt.Sscan(d.Detail["count"], &n) //nolint:errcheck // zero shows
		counts[d.Chain] += n
		kinds[d.Chain]++
	}
	if counts["acme"] != 15*maxDenials || kinds["acme"] != maxDenials+1 {
		t.Errorf("acme: %d denials in %d entries", counts["acme"], kinds["acme"])
	}
	if counts[audit.HostChain] < 1000 || len(l.denials.take(noon)) != 0 {
		t.Errorf("host: %d", counts[audit.HostChain])
	}
	if err := l.store.Audit().Append(t.Context(), drafts...); err != nil {
		t.Fatal(err)
	}
	if v := l.verdict(t, 0, 100); !v.ChainValid {
		t.Errorf("%+v", v)
	}
}

// The loop says when the host starts and stops, writes what was denied, and leaves
// nothing unsigned behind.
func TestAuditLoop(t *testing.T) {
	c := newClock(time.Hour)
	l := openAudited(t, t.TempDir(), c, Audit{Interval: time.Minute})
	l.allow(asCaller("acme"), "runs:read") //nolint:errcheck // counted
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Audit(ctx) }()
	l.facts(t, 3)
	stop()
	<-done
	heads, err := l.store.Audit().Unanchored(t.Context(), "", 10)
	if err != nil || len(heads) > 0 {
		t.Errorf("%v, %v", heads, err)
	}
	var said []string
	list, err := l.store.Audit().Entries(t.Context(), audit.HostChain, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		said = append(said, actionIn(t, e.Body))
	}
	if !slices.Equal(said, []string{"audit-key.create", firstWord, lastWord}) {
		t.Errorf("%v", said)
	}
	page, err := l.ListAudit(t.Context(), auditor, "tenant", "", 10)
	if err != nil || len(page.Entries) != 4 {
		t.Fatalf("%+v, %v", page, err)
	}
	var denied int
	for _, e := range page.Entries {
		if actionIn(t, e.Entry) == "authorization.denied" {
			denied++
		}
	}
	if denied != 1 {
		t.Errorf("%d denials are recorded", denied)
	}
}

func actionIn(t *testing.T, body []byte) string {
	t.Helper()
	var e audit.Entry
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	return e.Action
}

// A tenant sees its own chain; the host's is for its operator.
func TestWhoSeesAudit(t *testing.T) {
	l := openAudited(t, t.TempDir(), newClock(0), Audit{})
	l.facts(t, 2)
	other := asCaller("evil", "audit:read", "fermata:audit:manage", "*")
	page, err := l.ListAudit(t.Context(), other, "", "", 10)
	if err != nil || len(page.Entries) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
	if v, err := l.VerifyAudit(t.Context(), other, "", 0, 10); err != nil || !v.ChainValid || len(v.Checkpoints) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
	for name, c := range map[string]struct {
		err  func() error
		code problem.Code
	}{
		"host chain of another tenant": {func() error { _, err := l.ListAudit(t.Context(), other, "host", "", 10); return err }, problem.Forbidden},
		"rotation by another tenant":   {func() error { _, err := l.RotateAuditKey(t.Context(), other); return err }, problem.Forbidden},
		"host chain without the scope": {func() error {
			_, err := l.ListAudit(t.Context(), asCaller("acme", "audit:read"), "host", "", 10)
			return err
		}, problem.Forbidden},
		"no scope": {func() error {
			_, err := l.VerifyAudit(t.Context(), asCaller("acme", "runs:read"), "", 0, 1)
			return err
		}, problem.Forbidden},
		"no scope for keys": {func() error { _, err := l.AuditKeys(t.Context(), asCaller("acme")); return err }, problem.Forbidden},
		"a chain by name":   {func() error { _, err := l.ListAudit(t.Context(), auditor, "evil", "", 10); return err }, problem.ValidationError},
		"a foreign cursor": {func() error {
			_, err := l.ListAudit(t.Context(), auditor, "", makeCursor("1", "audit\x00evil"), 10)
			return err
		}, problem.ValidationError},
	} {
		if err := c.err(); !problem.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := l.ListAudit(t.Context(), auditor, "host", "", 10); err != nil || len(page.Entries) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// failingAudit is a store whose audit log does not take entries.
type failingAudit struct{ store.Store }

type noAudit struct{ store.Audit }

func (f failingAudit) Audit() store.Audit { return noAudit{f.Store.Audit()} }

func (noAudit) Append(context.Context, ...*store.Draft) error { return fmt.Errorf("disk full") }

// What cannot be recorded is not acknowledged.
func TestNoAcknowledgementWithoutAnEntry(t *testing.T) {
	l := openAudited(t, t.TempDir(), newClock(0), Audit{})
	l.store = failingAudit{l.store}
	n := 0
	err := l.audits(t.Context(), auditor, deed{action: "x"}, func(context.Context) error { n++; return nil })
	if err == nil || n != 1 {
		t.Errorf("%v after %d", err, n)
	}
}

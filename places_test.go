package fermata_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/pgtest"
)

// lives is where the store of a host under test is.
func (s *server) lives() string {
	if s.cfg.Store != "" {
		return s.cfg.Store
	}
	return s.dir
}

// masterOf is the master key of a host under test, as another host is given it.
func (s *server) masterOf(c *fermata.Config) {
	s.t.Helper()
	if c.MasterKey = s.cfg.MasterKey; c.MasterKey == "" {
		c.MasterKeyFile = filepath.Join(s.dir, "master.key")
	}
}

// TestCopyToPostgres: a host on a folder is stopped with runs that wait, and goes on on
// a database: what was asked is answered there, by the old keys and tokens.
func TestCopyToPostgres(t *testing.T) {
	t.Parallel()
	onlySQLite(t)
	address := pgtest.Database(t, t.TempDir())
	a := start(t)
	a.register(gate("g"))
	a.register(flow("d", []any{step("w", "core.delay", map[string]any{"ms": 1})}, []any{}))
	ended := a.run("d")
	a.await(ended, "completed")
	history := a.events(ended)
	var waiting []string
	for range 3 {
		id := a.run("g")
		a.await(id, "waiting-approval")
		waiting = append(waiting, id)
	}
	first := a.answer(waiting[0], "ok", map[string]any{"action": "accept"}).want(t, 200)
	created := a.as(t).do("POST", "/runs", map[string]any{"workflowId": "g"}, keyHeader, idem(7)).want(t, 201).str("runId")
	a.await(created, "waiting-approval")

	if _, err := fermata.CopyStore(t.Context(), a.dir, address, false); !errors.Is(err, fermata.ErrStoreInUse) {
		t.Fatalf("beside a host: %v", err)
	}
	a.down()
	there, err := fermata.CopyStore(t.Context(), a.dir, address, false)
	if err != nil || there.Rows("runs") != 5 || len(there.Faults) != 0 || there.Entries == 0 {
		t.Fatalf("%+v: %v", there, err)
	}
	if _, err := fermata.CopyStore(t.Context(), a.dir, address, false); !errors.Is(err, fermata.ErrStoreUsed) {
		t.Fatalf("a second time: %v", err)
	}
	b := start(t, func(c *fermata.Config) {
		c.Store, c.StoreConnections = address, 8
		a.masterOf(c)
	})
	if got := b.events(ended); fmt.Sprint(got) != fmt.Sprint(history) {
		t.Errorf("the log of a run that is over:\n%v\n%v", got, history)
	}
	for _, id := range waiting[1:] {
		if s := b.snapshot(id); s["status"] != "waiting-approval" {
			t.Errorf("%v", s["status"])
		}
		b.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
		b.await(id, "completed")
		for i, e := range b.events(id) {
			if e["sequence"] != float64(i) {
				t.Errorf("event %d has sequence %v", i, e["sequence"])
			}
		}
	}
	b.await(waiting[0], "completed")
	if again := b.as(t).do("POST", "/runs", map[string]any{"workflowId": "g"}, keyHeader, idem(7)).want(t, 201); again.str("runId") != created {
		t.Errorf("a repeated request makes %s in place of %s", again.str("runId"), created)
	}
	if first.status != 200 || b.runCount() != 5 {
		t.Errorf("%d runs", b.runCount())
	}
	b.do("GET", "/audit/verify", nil).want(t, 200)

	// And back into a folder, equal table by table to what is there now.
	b.down()
	back := t.TempDir()
	moved, err := fermata.CopyStore(t.Context(), address, back, false)
	if err != nil {
		t.Fatal(err)
	}
	again := pgtest.Database(t, t.TempDir())
	twice, err := fermata.CopyStore(t.Context(), back, again, false)
	if err != nil || fmt.Sprint(moved) != fmt.Sprint(twice) {
		t.Errorf("%+v\n%+v: %v", moved, twice, err)
	}
}

// TestBackupUnderLoad: backups of a host at work are each of one moment: logs have no
// gap, and a host on one ends every run that was not over, by itself.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.register(flow("d", []any{step("a", "core.noop", nil), step("w", "core.delay", map[string]any{"ms": 20}), step("b", "core.noop", nil)},
		[]any{edge("a", "w"), edge("w", "b")}))
	s.register(gate("g"))
	quit, done := make(chan struct{}), make(chan int)
	go func() { // at most as many as a slow machine can end
		n := 0
		for ; n < 200; n++ {
			select {
			case <-quit:
				done <- n
				return
			default:
			}
			res, err := post(s, `{"workflowId":"`+[]string{"d", "g"}[n%2]+`"}`)
			if err != nil || res != 201 {
				t.Errorf("%d %v", res, err)
				break
			}
		}
		<-quit
		done <- n
	}()
	var files []*bytes.Buffer
	for len(files) < 4 {
		before := s.runCount()
		var file bytes.Buffer
		r, err := fermata.Backup(t.Context(), s.lives(), &file)
		if err != nil || r.Rows("runs") < int64(before) || len(r.Faults) > 0 {
			t.Fatalf("%d runs of %d: %v %v", r.Rows("runs"), before, r.Faults, err)
		}
		if r.Rows("runs") > 0 {
			files = append(files, &file)
		}
	}
	close(quit)
	<-done
	for _, file := range files[2:] {
		to := t.TempDir()
		h, r, err := fermata.Restore(t.Context(), bytes.NewReader(file.Bytes()), to)
		if err != nil || h.Program != fermata.Version {
			t.Fatal(err)
		}
		b := &server{t: t, dir: to, cfg: fermata.Config{DataDir: to, BootstrapKey: testKey}}
		s.masterOf(&b.cfg)
		b.up()
		runs := b.do("GET", "/runs?limit=200", nil).want(t, 200).json["runs"].([]any)
		if len(runs) != int(r.Rows("runs")) {
			t.Errorf("%d runs of %d", len(runs), r.Rows("runs"))
		}
		for _, x := range runs {
			id := x.(map[string]any)["runId"].(string)
			if got := b.await(id, "completed", "waiting-approval"); got["status"] == "waiting-approval" {
				b.answer(id, "ok", map[string]any{"action": "accept"}).want(t, 200)
				b.await(id, "completed")
			}
			for i, e := range b.events(id) {
				if e["sequence"] != float64(i) {
					t.Fatalf("run %s: event %d has sequence %v", id, i, e["sequence"])
				}
			}
		}
		b.down()
	}
}

func post(s *server, body string) (int, error) {
	req, err := http.NewRequest("POST", s.http.URL+"/runs", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// TestBackupHoldsNoSecret: what is sealed at rest is sealed in a backup, and without
// the master key no host starts on what was restored.
func TestBackupHoldsNoSecret(t *testing.T) {
	t.Parallel()
	s := start(t)
	const secret = "correct-horse-battery-staple"
	s.credential(map[string]any{"secret": secret})
	s.do("POST", "/webhooks", map[string]any{"url": "https://hooks.example.com/x", "events": []string{"run.completed"}, "secret": secret}).want(t, 201)
	var file bytes.Buffer
	r, err := fermata.Backup(t.Context(), s.lives(), &file)
	if err != nil || r.Rows("credentials") != 1 || r.Rows("webhooks") != 1 || len(r.Masters) != 1 {
		t.Fatalf("%+v: %v", r, err)
	}
	to := t.TempDir()
	if _, _, err := fermata.Restore(t.Context(), &file, to); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(to, "fermata.db"))
	if err != nil || bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte(testKey)) {
		t.Errorf("a secret is in what was restored: %v", err)
	}
	if h, err := fermata.Open(t.Context(), fermata.Config{DataDir: to}); err == nil {
		t.Error("a host starts without the master key")
		h.Stop(t.Context()) //nolint:errcheck // the test has failed
	}
}

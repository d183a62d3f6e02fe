package vault_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/sqlite"
	"github.com/fermata-run/fermata/internal/vault"
)

func vaulted(t *testing.T, s store.Store, dir string) store.Store {
	t.Helper()
	v, err := vault.Open(context.Background(), s, vault.Options{Ring: vault.KeyFile(filepath.Join(dir, "master.key"))})
	if err != nil {
		t.Fatal(err)
	}
	return vault.Wrap(s, v)
}

func openDB(t *testing.T, dir string) store.Store {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(dir, "t.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

const canary = "canary-7f3a9c51e2"

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fill puts secrets everywhere a secret can be.
func fill(t *testing.T, s store.Store) {
	t.Helper()
	ctx := t.Context()
	hook := store.Subscription{Tenant: "acme", ID: "hook-0123456789abcdef", URL: "https://a.example", Events: []string{"run.started"}, Secret: canary + "-old", CreatedAt: at}
	for _, err := range []error{
		s.Secrets().Add(ctx, store.Secret{Purpose: "p", ID: "1", Value: []byte(canary), CreatedAt: at}),
		s.Webhooks().Add(ctx, hook, 0),
		s.Webhooks().Rotate(ctx, "acme", hook.ID, canary+"-new", at, at.Add(time.Hour)),
		s.Ownership().Register(ctx, "i"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	key := bytes.Repeat([]byte{7}, 32)
	r := store.Record{Tenant: "acme", Endpoint: "registerWebhook", Key: key, Digest: key, Instance: "i", CreatedAt: at, ExpiresAt: at.Add(time.Hour)}
	got, _, err := s.Idempotency().Claim(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	got.Outcome = &store.Outcome{Status: 201, Header: []byte("{}"), Body: []byte(`{"secret":"` + canary + `"}`)}
	if err := s.Idempotency().Finish(ctx, got); err != nil {
		t.Fatal(err)
	}
}

// readBack finds everything fill has put there.
func readBack(t *testing.T, s store.Store) {
	t.Helper()
	ctx := t.Context()
	list, err := s.Secrets().List(ctx, "p")
	if err != nil || len(list) != 1 || string(list[0].Value) != canary {
		t.Fatalf("secrets: %v %v", list, err)
	}
	h, err := s.Webhooks().Get(ctx, "acme", "hook-0123456789abcdef")
	if err != nil || h.Secret != canary+"-new" || h.Previous != canary+"-old" {
		t.Fatalf("webhook: %+v %v", h, err)
	}
	if err := s.Ownership().Register(ctx, "i"); err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{7}, 32)
	r, _, err := s.Idempotency().Claim(ctx, store.Record{Tenant: "acme", Endpoint: "registerWebhook", Key: key, Digest: key, Instance: "i", CreatedAt: at, ExpiresAt: at.Add(time.Hour)})
	if err != nil || r.Outcome == nil || string(r.Outcome.Body) != `{"secret":"`+canary+`"}` {
		t.Fatalf("answer: %+v %v", r.Outcome, err)
	}
}

// scan looks for the canary in every file of a folder.
func scan(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if bytes.Contains(b, []byte(canary)) {
			found = append(found, filepath.Base(p))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestNothingIsInTheFiles(t *testing.T) {
	dir := t.TempDir()
	s := vaulted(t, openDB(t, dir), dir)
	fill(t, s)
	readBack(t, s)
	if found := scan(t, dir); found != nil {
		t.Errorf("the secret is in %v", found)
	}
}

// A folder from before there was a vault is sealed at its next start, and nothing of
// what was open stays in its files.
func TestOldFolderIsSealed(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	fill(t, db)
	if scan(t, dir) == nil {
		t.Fatal("the scan finds nothing where there is something")
	}
	s := vaulted(t, db, dir)
	readBack(t, s)
	if found := scan(t, dir); found != nil {
		t.Errorf("the secret is still in %v", found)
	}
	db.Close()
	readBack(t, vaulted(t, openDB(t, dir), dir))
}

// failing lets Change fail, as a process that dies before its commit would see it.
type failing struct {
	store.Vault
	err error
}

func (f failing) Change(context.Context, store.VaultChange) error { return f.err }

// with is a store with another vault.
type with struct {
	store.Store
	vault store.Vault
}

func (w with) Vault() store.Vault { return w.vault }

func TestInterruptedSealingStartsOver(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	fill(t, db)
	lost := errors.New("the lights went out")
	ring := vault.KeyFile(filepath.Join(dir, "master.key"))
	if _, err := vault.Open(t.Context(), with{db, failing{db.Vault(), lost}}, vault.Options{Ring: ring}); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	readBack(t, db) // open still, all of it
	readBack(t, vaulted(t, db, dir))
}

// A key that is missing or wrong stops the start. Nothing is made, and nothing of
// what is there changes.
func TestWrongKeyStopsTheBoot(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	path := filepath.Join(dir, "master.key")
	s := vaulted(t, db, dir)
	fill(t, s)
	right, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, err := db.Vault().Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ content, says string }{
		"missing":   {"", "put the key back"},
		"another":   {vault.NewKeyText(), "give the right one"},
		"no key":    {"hello", "is none"},
		"truncated": {string(right[:len(right)-6]), "is none"},
		"comment":   {"# nothing", "no key in it"},
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if c.content != "" {
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := vault.Open(t.Context(), db, vault.Options{Ring: vault.KeyFile(path)})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := os.ReadFile(path); string(got) != c.content {
			t.Errorf("%s: the file holds %q afterwards", name, got)
		}
		if err := os.WriteFile(path, right, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after, err := db.Vault().Keys(t.Context())
	if err != nil || len(after) != len(before) || string(after[0].Wrapped) != string(before[0].Wrapped) {
		t.Errorf("the data keys have changed: %v", err)
	}
	readBack(t, vaulted(t, db, dir))
}

// Sealed values whose keys are gone are not sealed again.
func TestLostDataKeys(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	fill(t, vaulted(t, db, dir))
	path := filepath.Join(dir, "master.key")
	empty := with{db, noKeys{db.Vault()}}
	if _, err := vault.Open(t.Context(), empty, vault.Options{Ring: vault.KeyFile(path)}); err == nil || !strings.Contains(err.Error(), "restore a whole backup") {
		t.Error(err)
	}
	readBack(t, vaulted(t, db, dir))
}

type noKeys struct{ store.Vault }

func (n noKeys) Keys(context.Context) ([]store.DataKey, error) { return nil, nil }

func TestKeyFileIsPrivate(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	vaulted(t, db, dir)
	path := filepath.Join(dir, "master.key")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := vault.Open(t.Context(), db, vault.Options{Ring: vault.KeyFile(path)}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read is taken: %v", err)
	}
}

// Master and data keys are replaced while the store is in use.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	path := filepath.Join(dir, "master.key")
	ring := vault.KeyFile(path)
	v, err := vault.Open(t.Context(), db, vault.Options{Ring: ring})
	if err != nil {
		t.Fatal(err)
	}
	s := vault.Wrap(db, v)
	fill(t, s)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fresh := vault.NewKeyText()
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fresh + "\n" + string(old))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // readers and writers go on
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Secrets().List(context.Background(), "p"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	first, err := v.RotateMaster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := v.RotateData(t.Context())
	close(stop)
	wg.Wait()
	if err != nil || data.Values != 4 || data.Keys != 2 || data.Master != first.Master {
		t.Fatalf("%+v %v", data, err)
	}
	readBack(t, s)
	write(fresh) // the old key is of no use any more
	readBack(t, vaulted(t, db, dir))
	write(string(old))
	if _, err := vault.Open(t.Context(), db, vault.Options{Ring: ring}); err == nil {
		t.Error("the old master key still opens the data")
	}
	keys, err := db.Vault().Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.Master != first.Master {
			t.Errorf("data key %s is wrapped by %s", k.ID, k.Master)
		}
	}
}

// A sealed value opens in its own place only.
func TestValuesAreTiedToTheirPlace(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	v, err := vault.Open(t.Context(), db, vault.Options{Ring: vault.KeyText(vault.NewKeyText(), "a test")})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := v.SealMaterial(t.Context(), "acme", "cred_0123456789abcdef", 1, []byte(canary))
	if err != nil {
		t.Fatal(err)
	}
	open := func(tenant, ref string, n int64, b []byte) error {
		got, err := v.OpenMaterial(t.Context(), tenant, ref, n, b)
		if err == nil && string(got) != canary {
			t.Errorf("opened as %q", got)
		}
		return err
	}
	if err := open("acme", "cred_0123456789abcdef", 1, sealed); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)-3] ^= 1
	for what, err := range map[string]error{
		"tenant": open("beta", "cred_0123456789abcdef", 1, sealed), "ref": open("acme", "cred_0123456789abcdeg", 1, sealed),
		"version": open("acme", "cred_0123456789abcdef", 2, sealed), "bits": open("acme", "cred_0123456789abcdef", 1, flipped),
		"cut": open("acme", "cred_0123456789abcdef", 1, sealed[:20]), "plain": open("acme", "cred_0123456789abcdef", 1, []byte(canary)),
	} {
		if !errors.Is(err, vault.ErrSealed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	again, err := v.SealMaterial(t.Context(), "acme", "cred_0123456789abcdef", 1, []byte(canary))
	if err != nil || bytes.Equal(again, sealed) {
		t.Errorf("sealed twice it is the same: %v", err)
	}
}

// Of processes that begin on one store at once, all end up with the same keys.
func TestBeginTogether(t *testing.T) {
	dir := t.TempDir()
	db := openDB(t, dir)
	fill(t, db)
	path := filepath.Join(dir, "master.key")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := vault.Open(context.Background(), db, vault.Options{Ring: vault.KeyFile(path)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	readBack(t, vaulted(t, db, dir))
}

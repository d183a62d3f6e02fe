package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/archive"
	"github.com/fermata-run/fermata/internal/pgtest"
)

// realKeeper moves real stores, as the program does.
type realKeeper struct{}

func (realKeeper) Backup(ctx context.Context, from string, w io.Writer) (archive.Report, error) {
	return fermata.Backup(ctx, from, w)
}

func (realKeeper) Verify(r io.Reader) (archive.Header, archive.Report, error) {
	return fermata.VerifyBackup(r)
}

func (realKeeper) Restore(ctx context.Context, r io.Reader, to string) (archive.Header, archive.Report, error) {
	return fermata.Restore(ctx, r, to)
}

func (realKeeper) Copy(ctx context.Context, from, to string, online bool) (archive.Report, error) {
	return fermata.CopyStore(ctx, from, to, online)
}

func (realKeeper) Examine(ctx context.Context, address string) (out []Finding) {
	for _, f := range fermata.ExamineStore(ctx, address) {
		out = append(out, Finding(f))
	}
	return out
}

// gateHost serves a folder with one run that waits, and returns the world, its end,
// and the address.
func gateHost(t *testing.T, data string) (w *world, done <-chan int, url string) {
	t.Helper()
	w = newWorld(t)
	w.vars["FERMATA_BOOTSTRAP_KEY"] = testKey
	w.file("flows/gate.json", gate())
	done = w.start("serve", "--listen", "127.0.0.1:0", "--data", data, "--workflows", filepath.Join(w.home, "flows"))
	url = w.serving()
	w.saw(w.out, "1 workflow from")
	c := caller(t, url)
	contains(t, c.must("runs", "start", "gate"), "waiting-approval")
	return w, done, url
}

func caller(t *testing.T, url string) *world {
	c := newWorld(t)
	c.vars["FERMATA_SERVER"], c.vars["FERMATA_API_KEY"] = url, testKey
	return c
}

// A host is backed up while it runs, and what waits in it is answered where the
// backup was restored. Nothing is written over on the way.
func TestBackupAndRestore(t *testing.T) {
	home := t.TempDir()
	data, to, file := filepath.Join(home, "data"), filepath.Join(home, "to"), filepath.Join(home, "b.fermata")
	w, done, _ := gateHost(t, data)
	c := newWorld(t)
	contains(t, c.must("backup", "--data", data, "--out", file), "is backed up into "+file, "runs         1", "every entry follows", "master key   mk_")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v: %v", info.Mode(), err)
	}
	refused := func(code int, want string, args ...string) {
		t.Helper()
		if got := c.run(args...); got != code {
			t.Errorf("%v: exit %d: %s", args, got, c.out)
		}
		contains(t, c.err.String(), want)
	}
	refused(ExitFailed, "is there already", "backup", "--data", data, "--out", file)
	refused(ExitFailed, "there is no host's data", "backup", "--data", to, "--out", file+"2")
	refused(ExitUsage, "--out says", "backup", "--data", data)
	refused(ExitUsage, "both want", "backup", "--data", data, "--out", "-", "--json")
	refused(ExitFailed, "a host is using it", "restore", "--data", data, "--in", file)
	refused(ExitUsage, "--in says", "restore", "--data", to)
	refused(ExitFailed, "no such file", "restore", "--data", to, "--in", file+"2")
	if left, err := os.ReadDir(home); err != nil || len(left) != 2 {
		t.Errorf("left is %v %v", left, err)
	}
	var said struct{ Contents archive.Report }
	if err := json.Unmarshal([]byte(c.must("backup", "--data", data, "--out", file+"3", "--json")), &said); err != nil || said.Contents.Rows("runs") != 1 {
		t.Errorf("%+v: %v", said, err)
	}
	piped := c.must("backup", "--data", data, "--out", "-")
	w.signals <- os.Interrupt
	w.wait(done)

	contains(t, c.must("restore", "--check", "--in", file), "fermata "+fermata.Version+") is whole", "runs         1")
	c.stdin = strings.NewReader(piped[:len(piped)/2])
	refused(ExitFailed, "the archive is damaged or cut off", "restore", "--in", "-", "--data", to)
	c.stdin = strings.NewReader(piped)
	contains(t, c.must("restore", "--in", "-", "--data", to), "is restored into "+to)
	refused(ExitFailed, to+" is not empty", "restore", "--in", file, "--data", to)

	key, err := os.ReadFile(filepath.Join(data, "master.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "master.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	w = newWorld(t)
	done = w.start("serve", "--listen", "127.0.0.1:0", "--data", to)
	c = caller(t, w.serving())
	id := strings.Fields(c.must("runs", "list", "--status", "waiting-approval"))[6]
	contains(t, c.must("approvals", "resolve", id, "ask", "--action", "accept"), "completed")
	w.signals <- os.Interrupt
	w.wait(done)
}

// A folder is copied into a database once its host is stopped, or as a copy to look at.
func TestCopy(t *testing.T) {
	store := pgtest.Database(t, t.TempDir())
	home := t.TempDir()
	data, peek := filepath.Join(home, "data"), filepath.Join(home, "peek")
	w, done, _ := gateHost(t, data)
	c := newWorld(t)
	refused := func(code int, want string, args ...string) {
		t.Helper()
		if got := c.run(append([]string{"copy"}, args...)...); got != code {
			t.Errorf("%v: exit %d: %s", args, got, c.out)
		}
		contains(t, c.err.String(), want)
	}
	refused(ExitFailed, "stop it first", "--from", data, "--to", store)
	contains(t, c.must("copy", "--online", "--from", data, "--to", peek), "is copied to "+peek, "runs         1")
	w.signals <- os.Interrupt
	w.wait(done)

	withPassword := strings.Replace(store, "fermata@", "fermata:hush@", 1)
	refused(ExitUsage, "PGPASSWORD", "--from", data, "--to", withPassword)
	if strings.Contains(c.err.String(), "hush") {
		t.Error("the password is shown")
	}
	refused(ExitUsage, "are the same", "--from", data, "--to", data)
	refused(ExitUsage, "--to names", "--from", data)
	refused(ExitUsage, "THERE is empty", "--from", data, "--to", "$THERE")
	refused(ExitUsage, "neither a folder nor", "--from", data, "--to", "mysql://h/d")
	refused(ExitUsage, "is not a folder", "--from", filepath.Join(data, "fermata.db"), "--to", store)
	refused(ExitFailed, peek+" is not empty", "--from", data, "--to", peek)
	c.vars["THERE"] = withPassword
	contains(t, c.must("copy", "--from", data, "--to", "$THERE"), "every table reads back the same", "runs         1")

	w = shared(t, store, "")
	delete(w.vars, "FERMATA_MASTER_KEY")
	key, err := os.ReadFile(filepath.Join(data, "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(key), "fermata-master-key-1:") // behind a line that says what it is
	w.vars["FERMATA_MASTER_KEY"] = "fermata-master-key-1:" + strings.TrimSpace(text)
	done = w.start("serve", "--listen", "127.0.0.1:0")
	url := w.serving()
	c = caller(t, url)
	id := strings.Fields(c.must("runs", "list", "--status", "waiting-approval"))[6]
	contains(t, c.must("approvals", "resolve", id, "ask", "--action", "accept"), "completed")
	contains(t, c.must("doctor", "--store", store), "✓ store", "✓ schema     version", "✓ rights", "✓ hosts      1 alive", "✓ statements", "✓ key")
	if strings.Contains(c.out.String(), "✓ data") {
		t.Error("the folder is looked at, too")
	}
	w.signals <- os.Interrupt
	w.wait(done)
	if code := c.run("doctor", "--store", "postgres://nobody@127.0.0.1:1/x", "--json"); code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	contains(t, c.out.String(), `"check": "store"`, `"fix": "Start the database`)
}

// A password in an argument is refused by whoever takes the address of a database, and
// not repeated; in the environment it is taken.
func TestPasswordsAreNoArguments(t *testing.T) {
	w := newWorld(t)
	for _, address := range []string{"postgres://u:hush-hush@127.0.0.1:1/d", "postgres://u@127.0.0.1:1/d?password=hush-hush"} {
		for _, args := range [][]string{
			{"backup", "--out", filepath.Join(w.home, "out"), "--store", address}, {"restore", "--in", filepath.Join(w.home, "in"), "--store", address},
			{"migrate", "status", "--store", address}, {"migrate", "up", "--store", address}, {"keys", "recover", "--store", address},
			{"serve", "--listen", "127.0.0.1:0", "--store", address}, {"serve", "--listen", "127.0.0.1:0", "--store", "postgres://u@127.0.0.1:1/d", "--store-listen", address},
			{"doctor", "--store", address},
		} {
			want := ExitUsage
			if args[0] == "doctor" {
				want = ExitFailed
			}
			code := w.run(args...)
			said := w.out.String() + w.err.String()
			if code != want || !strings.Contains(said, "FERMATA_STORE") || strings.Contains(said, "hush-hush") {
				t.Errorf("%s %s: exit %d: %s", args[0], args[1], code, said)
			}
		}
		w.vars["FERMATA_STORE"] = address
		code := w.run("migrate", "status")
		said := w.out.String() + w.err.String()
		if delete(w.vars, "FERMATA_STORE"); code != ExitFailed || strings.Contains(said, "FERMATA_STORE") || strings.Contains(said, "hush-hush") {
			t.Errorf("from the environment: exit %d: %s", code, said)
		}
	}
}

// What a killed restore has left is named by the doctor.
func TestDoctorFindsUnfinishedRestore(t *testing.T) {
	w := newWorld(t)
	w.file("data/"+unfinishedName, "")
	w.run("doctor", "--data", filepath.Join(w.home, "data"))
	contains(t, w.out.String(), "✗ restore", "→ Run it again")
	if code := w.run("serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(w.home, "data")); code != ExitFailed {
		t.Errorf("exit %d", code)
	}
	contains(t, w.err.String(), "has not come to its end")
}

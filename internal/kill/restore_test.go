package kill

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// command runs the binary as a person would.
func command(t *testing.T, stdin io.Reader, args ...string) (string, error) {
	t.Helper()
	c := exec.Command(binary(t), args...)
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "FERMATA_MASTER_KEY="+masterKey)
	c.Stdin = stdin
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestKillRestore: a restore that is killed leaves nothing that a host starts on, and
// nothing that is in the way of the next one. The backup is of a host at work.
func TestKillRestore(t *testing.T) {
	h := newHost(t)
	h.start()
	h.register(flow("gate", []any{noop("a"), step("ok", "core.approvalGate", object{"title": "Go on?"}), noop("z")}, chain("a", "ok", "z")))
	for n := range 40 {
		if id := h.begins(t, "gate", fmt.Sprint("order-", n)); id == "" {
			t.Fatal("no run was made")
		}
	}
	from := append([]string{"backup", "--out", filepath.Join(t.TempDir(), "b")}, where(h)...)
	if out, err := command(t, nil, from...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(from[2])
	if err != nil {
		t.Fatal(err)
	}
	h.kill()
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		killRestore(t, file, h, []string{"--data", dir}, func() bool {
			_, err := os.Stat(filepath.Join(dir, "fermata.db.unfinished"))
			return err == nil
		})
	})
	t.Run("database", func(t *testing.T) {
		address := pgtest.Database(t, t.TempDir())
		name := address[strings.LastIndexByte(address, '/')+1 : strings.IndexByte(address, '?')]
		killRestore(t, file, h, []string{"--store", address}, func() bool {
			n, err := pgtest.Shared(t).Query(t.Context(), name, `SELECT id::text FROM fermata_schema WHERE id = 2`)
			return err == nil && len(n) == 1
		})
	})
}

// where are the flags that say where a host's data are.
func where(h *host) []string {
	for i, f := range h.flags {
		if f == "--store" {
			return h.flags[i : i+2]
		}
	}
	return []string{"--data", h.dir}
}

func killRestore(t *testing.T, file []byte, h *host, to []string, begun func() bool) {
	c := exec.Command(binary(t), append([]string{"restore", "--in", "-"}, to...)...)
	c.Env = append(os.Environ(), "HOME="+t.TempDir())
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(file[:len(file)/2]); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(patience); !begun(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("it never begins")
			break
		}
	}
	c.Process.Kill() //nolint:errcheck // it waits for the rest of the file
	c.Wait()         //nolint:errcheck // it was killed

	other := &host{t: t, binary: h.binary, dir: t.TempDir(), flags: to, client: h.client, up: make(chan struct{})}
	if to[0] == "--data" {
		other.dir, other.flags = to[1], nil
	}
	p := other.begin()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Error("a host starts on half a store")
		p.kill()
	}
	if text := p.out.tail(); !strings.Contains(text, "has not come to its end") {
		t.Errorf("the host says %s", text)
	}
	other.down()

	if out, err := command(t, bytes.NewReader(file), append([]string{"restore", "--in", "-"}, to...)...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := command(t, bytes.NewReader(file), append([]string{"restore", "--in", "-"}, to...)...); err == nil || !strings.Contains(out, "is not empty") {
		t.Errorf("a second time: %v %s", err, out)
	}
	other.start()
	defer other.kill()
	var list struct {
		Runs []struct{ Status string }
	}
	other.get("/runs?limit=200&status=waiting-approval", &list)
	if len(list.Runs) != 40 {
		t.Errorf("%d runs wait", len(list.Runs))
	}
}

//go:build !windows

package postgres

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
	"github.com/fermata-run/fermata/internal/store"
	"github.com/fermata-run/fermata/internal/store/storetest"
)

// pooler starts a pgbouncer that hands out a connection per transaction, in front of the
// shared server, and returns where it listens.
func pooler(t *testing.T, prepared int) string {
	t.Helper()
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("no pgbouncer on this machine")
		}
	}
	server, err := url.Parse(pgtest.Shared(t).Address("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	dir, err := os.MkdirTemp("", "fermata-pooler-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%s user=fermata
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 2000
default_pool_size = 4
`, server.Port(), port)
	if prepared > 0 {
		text += fmt.Sprintf("max_prepared_statements = %d\n", prepared)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{file}
	if os.Getuid() == 0 { // it refuses to run as root
		args = []string{"-u", "nobody", file}
	}
	cmd := exec.Command(bin, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL) //nolint:errcheck // it may be gone
		cmd.Wait()                          //nolint:errcheck // it was killed
	})
	at := net.JoinHostPort("127.0.0.1", port)
	for range 200 {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
			return at
		}
		time.Sleep(50 * time.Millisecond)
	}
	if prepared > 0 {
		t.Skip("this pgbouncer keeps no prepared statements")
	}
	t.Fatal("pgbouncer does not answer")
	return ""
}

// TestContractOnPgBouncer: the contract behind a real pooler that hands out a connection
// per transaction: one that keeps prepared statements with the program's own choice of
// protocol, and one that keeps none with those that the documentation names.
func TestContractOnPgBouncer(t *testing.T) {
	pgtest.Shared(t)
	if testing.Short() {
		t.Skip("the contract once more")
	}
	type way struct {
		mode     string
		prepared int
	}
	ways := []way{{"cache_describe", 0}}
	if os.Getenv("FERMATA_LONG") != "" {
		ways = append(ways, way{"", 200}, way{"exec", 0}, way{"simple_protocol", 0})
	}
	for _, w := range ways {
		t.Run(fmt.Sprintf("%s-%d", w.mode, w.prepared), func(t *testing.T) {
			at := pooler(t, w.prepared)
			storetest.Run(t, func(t *testing.T, dir string) store.Store {
				t.Helper()
				u, err := url.Parse(pgtest.Database(t, dir))
				if err != nil {
					t.Fatal(err)
				}
				u.Host = at
				address := u.String()
				if w.mode != "" {
					address += "&default_query_exec_mode=" + w.mode
				}
				s, err := Open(t.Context(), address, Options{Migrate: true, Connections: 6})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			})
		})
	}
}

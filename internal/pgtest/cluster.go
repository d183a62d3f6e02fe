//go:build !windows

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a running server.
type Cluster struct {
	dir  string
	bin  string
	port int
	with []string // settings, name=value
	proc *exec.Cmd
	gone chan struct{}
	out  bytes.Buffer
}

// ErrAbsent says that the machine has no PostgreSQL.
var ErrAbsent = errors.New("no PostgreSQL on this machine: install the package postgresql, or set FERMATA_TEST_POSTGRES_BIN to the folder of its programs")

// programs finds the folder that holds initdb and postgres.
func programs() (string, error) {
	if dir := os.Getenv("FERMATA_TEST_POSTGRES_BIN"); dir != "" {
		return dir, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") //nolint:errcheck // a constant pattern
	slices.Sort(found)
	for _, dir := range slices.Backward(found) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	if p, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(p), nil
	}
	return "", ErrAbsent
}

// servant is the user a server runs as: it refuses to run as root.
func servant() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, e1 := strconv.Atoi(u.Uid)
		gid, e2 := strconv.Atoi(u.Gid)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(e1, e2)
	}
	return nil, errors.New("neither a user postgres nor nobody to run a server as")
}

// forTests are the settings of a server whose data need not survive the machine: tests
// kill processes only.
var forTests = []string{"fsync=off", "full_page_writes=off", "max_connections=300", "shared_buffers=64MB", "deadlock_timeout=100ms"}

func start() (*Cluster, error) { return Launch("", forTests...) }

// Launch starts a server that belongs to no test, with its data in a new folder within
// dir (the system's temporary one if empty), and waits until it answers. settings are
// such as "fsync=on"; without any it is as PostgreSQL comes. Close ends it. The error is
// ErrAbsent where the machine has none.
func Launch(dir string, settings ...string) (_ *Cluster, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err = os.MkdirTemp(dir, "fermata-pg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin, with: settings}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	cred, err := servant()
	if err == nil && cred != nil {
		err = os.Chown(dir, int(cred.Uid), int(cred.Gid))
	}
	if err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", c.data(), "-U", "fermata", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr = attributes(cred)
	initdb.Dir = dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	if c.port, err = freePort(); err != nil {
		return nil, err
	}
	return c, c.Start()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Start starts the server and waits until it answers.
func (c *Cluster) Start() error {
	cred, err := servant()
	if err != nil {
		return err
	}
	args := []string{"-D", c.data(), "-p", strconv.Itoa(c.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + c.dir}
	for _, setting := range c.with {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(filepath.Join(c.bin, "postgres"), args...)
	cmd.SysProcAttr = attributes(cred)
	cmd.Dir = c.dir
	c.out.Reset()
	cmd.Stdout, cmd.Stderr = &c.out, &c.out
	started := make(chan error, 1)
	gone := make(chan struct{})
	go func() {
		// The signal at the parent's death is of the thread that started it.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() //nolint:errcheck // how it ended does not matter
		}
		close(gone)
	}()
	if err := <-started; err != nil {
		return err
	}
	c.proc, c.gone = cmd, gone
	for range 600 {
		ctx, done := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgx.Connect(ctx, c.Address("postgres"))
		if err == nil {
			conn.Close(ctx) //nolint:errcheck // it has answered
			done()
			return nil
		}
		done()
		select {
		case <-gone:
			return fmt.Errorf("the server ended: %s", c.out.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the server does not answer")
}

// Stop ends the server: SIGINT for a fast stop, SIGQUIT for a crash.
func (c *Cluster) Stop(sig syscall.Signal) {
	if c.proc == nil {
		return
	}
	c.proc.Process.Signal(syscall.SIGCONT) //nolint:errcheck // it may be gone
	c.proc.Process.Signal(sig)             //nolint:errcheck // it may be gone
	select {
	case <-c.gone:
	case <-time.After(20 * time.Second):
		c.proc.Process.Kill() //nolint:errcheck // it may be gone
		<-c.gone
	}
	c.proc = nil
}

// Stand makes every process of the server stand still (SIGSTOP), or go on (SIGCONT).
func (c *Cluster) Stand(sig syscall.Signal) error {
	pid := strconv.Itoa(c.proc.Process.Pid)
	children, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		children, err = exec.Command("ps", "-o", "pid=", "--ppid", pid).Output()
	}
	if err != nil {
		return err
	}
	for _, f := range append(bytes.Fields(children), []byte(pid)) {
		n, err := strconv.Atoi(string(f))
		if err == nil {
			err = syscall.Kill(n, sig)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// Close ends the server and removes what it has kept.
func (c *Cluster) Close() {
	c.Stop(syscall.SIGQUIT)
	os.RemoveAll(c.dir) //nolint:errcheck // a folder of the system's temporary ones
}

// PID is the process that the server's others are children of.
func (c *Cluster) PID() int { return c.proc.Process.Pid }

// Version is the server's own word for what it is.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	v, err := c.Query(ctx, "postgres", "SHOW server_version")
	if err != nil || len(v) == 0 {
		return "", err
	}
	return v[0], nil
}

// Address is where a database is found.
func (c *Cluster) Address(database string) string {
	return fmt.Sprintf("postgres://fermata@127.0.0.1:%d/%s?sslmode=disable", c.port, database)
}

// Exec executes a statement in a database.
func (c *Cluster) Exec(ctx context.Context, database, sql string) error {
	conn, err := pgx.Connect(ctx, c.Address(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	return err
}

// Query reads the first column of what the last of some statements answers, as text.
func (c *Cluster) Query(ctx context.Context, database, sql string) ([]string, error) {
	conn, err := pgx.Connect(ctx, c.Address(database))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	var out []string
	for _, row := range results[len(results)-1].Rows {
		out = append(out, string(row[0]))
	}
	return out, nil
}

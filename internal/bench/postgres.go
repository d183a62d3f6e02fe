package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// serverSettings are those of a small dedicated server. What decides whether an
// acknowledged run survives (fsync, full_page_writes, synchronous_commit) is as
// PostgreSQL comes: on.
var serverSettings = []string{"shared_buffers=512MB", "max_wal_size=4GB"}

// hostWriters is how many groups of steps a host writes at once, and so over how many
// connections the floor writes for each host.
const hostWriters = 3

// database is a server of the benchmark's own, with a database for the hosts.
type database struct {
	server *pgtest.Cluster
	name   string
	key    string // the master key that hosts share
}

// newDatabase starts a server if none runs yet, with further settings, and makes a fresh database in it. It
// fails with pgtest.ErrAbsent where the machine has no PostgreSQL.
func (b *bench) newDatabase(name string, settings ...string) (*database, error) {
	if b.server == nil {
		c, err := pgtest.Launch(b.opts.Dir, append(settings, serverSettings...)...)
		if err != nil {
			return nil, err
		}
		b.server = c
		if v, err := c.Version(context.Background()); err == nil {
			b.out.Machine += ", PostgreSQL " + v
		}
		if err := c.Exec(context.Background(), "postgres", "CREATE DATABASE floor"); err != nil {
			return nil, err
		}
	}
	key, err := exec.Command(b.opts.Binary, "credentials", "rotate-keys", "--new-key").Output()
	if err != nil {
		return nil, fmt.Errorf("make a master key: %w", err)
	}
	d := &database{server: b.server, name: name, key: strings.TrimSpace(string(key))}
	return d, b.server.Exec(context.Background(), "postgres", "CREATE DATABASE "+name)
}

func (d *database) drop() error {
	return d.server.Exec(context.Background(), "postgres", "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)")
}

func (d *database) cpu() (time.Duration, error) { return TreeCPU(d.server.PID()) }

// floor opens the floor for a number of hosts.
func (d *database) floor(hosts int) func() (floor, error) {
	return func() (floor, error) {
		return openPGFloor(context.Background(), d.server.Address("floor"), hosts*hostWriters, d.cpu)
	}
}

// replicas starts hosts that share a database, each with its defaults.
func (b *bench) replicas(d *database, n int, env ...string) (side, error) {
	m := side{db: d.cpu}
	for i := range n {
		s, err := Start(b.opts.Binary, filepath.Join(b.dir, fmt.Sprintf("%s-%d", d.name, i)),
			append([]string{"FERMATA_STORE=" + d.server.Address(d.name), "FERMATA_MASTER_KEY=" + d.key}, env...)...)
		if err != nil {
			return m, errors.Join(err, m.stop())
		}
		m.hosts = append(m.hosts, s)
	}
	return m, nil
}

func (m side) stop() (err error) {
	for _, s := range m.hosts {
		err = errors.Join(err, s.Stop())
	}
	return err
}

// shared is a part on PostgreSQL: it is left out, and the report says so, where there
// is none.
func (b *bench) shared(part, name string, hosts int, measure func(m side, d *database) error) (err error) {
	d, err := b.newDatabase(name)
	if errors.Is(err, pgtest.ErrAbsent) {
		b.out.skip(part, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.drop()) }()
	m, err := b.replicas(d, hosts)
	if err != nil {
		return err
	}
	b.host = m.hosts[0]
	if err = register(b.host.Addr); err == nil {
		err = measure(m, d)
	}
	return errors.Join(err, m.stop())
}

// postgres is what runs is, with the database beside the host.
func (b *bench) postgres() error {
	clients := []int{1, 16, 64}
	if b.opts.Quick {
		clients = []int{64}
	}
	return b.shared("postgres", "alone", 1, func(m side, d *database) error {
		for _, workflow := range []string{"one", "five"} {
			if err := b.workflow(m, d.floor(1), "PostgreSQL, ", workflow, clients); err != nil {
				return err
			}
		}
		return nil
	})
}

// spread measures one, two and three hosts on one database, with clients whose every
// request goes to the next host. The floor has as many connections as they.
func (b *bench) spread() error {
	for n := 1; n <= 3; n++ {
		err := b.shared("replicas", fmt.Sprintf("replicas%d", n), n, func(m side, d *database) error {
			return b.workflow(m, d.floor(n), fmt.Sprintf("PostgreSQL, %d replicas, ", n), "one", []int{64})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endServer ends the server that parts have shared.
func (b *bench) endServer() {
	if b.server != nil {
		b.server.Close()
	}
}

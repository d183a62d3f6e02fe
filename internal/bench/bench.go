package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/fermata-run/fermata/internal/pgtest"
)

// Options say what to measure, and where.
type Options struct {
	Binary   string
	Dir      string    // a folder on the disk to measure; a temporary one if empty
	Quick    bool      // smaller counts, for a look
	Only     []string  // names of Parts; empty for all
	Progress io.Writer // told of each figure as it comes; may be nil
}

// Parts are the names of the parts of the benchmark, in their order.
var Parts = []string{"start", "runs", "streams", "subscribers", "long", "parked", "postgres", "replicas"}

// bench is one run of the benchmark.
type bench struct {
	opts Options
	dir  string
	host *Server
	out  *Report

	server *pgtest.Cluster // that parts on PostgreSQL share; nil until one has asked for it
}

// Run measures, and returns what it has measured even if it fails half-way.
func Run(o Options) (*Report, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	b, remove, err := newBench(o)
	if err != nil {
		return b.out, err
	}
	defer remove()
	alone := func(name string, measure func() error) func() error {
		return func() error { return b.part(name, measure) }
	}
	parts := map[string]func() error{
		"start": alone("start", b.start), "runs": alone("runs", b.runs), "streams": alone("streams", b.streams),
		"subscribers": alone("subscribers", b.subscribers), "long": alone("long", b.long), "parked": alone("parked", b.parked),
		"postgres": b.postgres, "replicas": b.spread,
	}
	for _, name := range Parts {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			continue
		}
		fmt.Fprintln(o.Progress, name)
		if err := parts[name](); err != nil {
			return b.out, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b.out, nil
}

// newBench makes the folder of a benchmark. remove ends and removes all it has left.
func newBench(o Options) (b *bench, remove func(), err error) {
	b = &bench{opts: o, out: &Report{At: time.Now().UTC(), Machine: machine(), Quick: o.Quick, progress: o.Progress}}
	if b.dir, err = os.MkdirTemp(o.Dir, "fermata-bench-"); err != nil {
		return b, nil, err
	}
	return b, func() {
		b.endServer()
		os.RemoveAll(b.dir) //nolint:errcheck // a folder of the system's temporary ones
	}, nil
}

// part gives a part a host of its own, on an empty data folder.
func (b *bench) part(name string, measure func() error) (err error) {
	if b.host, err = Start(b.opts.Binary, filepath.Join(b.dir, name)); err != nil {
		return err
	}
	if err := register(b.host.Addr); err != nil {
		return errors.Join(err, b.host.Stop())
	}
	err = measure()
	return errors.Join(err, b.host.Stop(), os.RemoveAll(filepath.Join(b.dir, name)))
}

// restart ends the host in order and starts it again on the same data.
func (b *bench) restart(name string) error {
	if err := b.host.Stop(); err != nil {
		return err
	}
	s, err := Start(b.opts.Binary, filepath.Join(b.dir, name))
	if err == nil {
		b.host = s
	}
	return err
}

func (b *bench) scratch(name string) string { return filepath.Join(b.dir, name) }

// pick is one of two counts.
func (b *bench) pick(full, quick int) int {
	if b.opts.Quick {
		return quick
	}
	return full
}

// segment makes one run of a workflow and reads back what it wrote.
func (b *bench) segment(workflow string) (*segment, error) {
	c, err := Dial(b.host.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	path, err := c.create(createBody(workflow, ""))
	if err == nil {
		err = c.await(path)
	}
	if err != nil {
		return nil, err
	}
	snapshot := bytes.Clone(c.body)
	_, doc, err := c.Do("GET", path+"/events/poll?timeout=1", nil)
	if err != nil {
		return nil, err
	}
	var p struct {
		RunID  string
		Events []json.RawMessage
	}
	if err := json.Unmarshal(doc, &p); err != nil {
		return nil, err
	}
	var first struct {
		Payload struct{ Owner json.RawMessage }
	}
	if err := json.Unmarshal(p.Events[0], &first); err != nil {
		return nil, err
	}
	s := &segment{events: len(p.Events), owner: first.Payload.Owner, id: filepath.Base(p.RunID), snapshot: snapshot}
	for i, e := range p.Events {
		if i > 0 {
			s.body = append(s.body, '\n')
		}
		s.body = append(s.body, e...)
	}
	return s, nil
}

// machine says where the figures come from.
func machine() string {
	name := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range bytes.Lines(b) {
			if k, v, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(k)) == "model name" {
				name = string(bytes.TrimSpace(v))
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s, %s/%s, %s", runtime.NumCPU(), name, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

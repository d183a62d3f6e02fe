// Command bench measures a build of fermata on this machine and prints each
// figure beside its floor. See docs/performance.md.
//
//	go run ./tools/bench [-quick] [-binary PATH] [-json FILE] [-only PART,…]
//	go run ./tools/bench -scaling [-quick] …   # what a run costs a PostgreSQL database; see docs/scaling.md
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fermata-run/fermata/internal/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	binary := flag.String("binary", "", "the binary to measure; built from this tree if empty")
	quick := flag.Bool("quick", false, "smaller counts: a look within a minute or two")
	dir := flag.String("dir", "", "a folder on the disk to measure; the system's temporary folder if empty")
	file := flag.String("json", "", "a file to write the figures to")
	only := flag.String("only", "", "parts to measure, of "+strings.Join(bench.Parts, ", ")+"; all if empty")
	scaling := flag.Bool("scaling", false, "measure what a run costs a PostgreSQL database, in place of the rest")
	flag.Parse()
	o := bench.Options{Binary: *binary, Dir: *dir, Quick: *quick, Progress: os.Stderr}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	if o.Binary == "" {
		tmp, err := os.MkdirTemp("", "fermata-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		o.Binary = filepath.Join(tmp, "fermata")
		build := exec.Command("go", "build", "-o", o.Binary, "./cmd/fermata")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build the binary: %w", err)
		}
	}
	measure := bench.Run
	if *scaling {
		measure = bench.Scaling
	}
	report, err := measure(o)
	report.Table(os.Stdout)
	if *file == "" {
		return err
	}
	f, ferr := os.Create(*file)
	if ferr != nil {
		return errors.Join(err, ferr)
	}
	return errors.Join(err, report.JSON(f), f.Close())
}

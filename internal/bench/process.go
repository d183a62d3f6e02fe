package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const apiKey = "bench-key-bench-key-bench-key-bench-key"

// Server is a running host.
type Server struct {
	Addr string
	PID  int
	// Up is how long it took from the start of the process to its first
	// answer to /.well-known/openwop.
	Up time.Duration

	cmd *exec.Cmd
	log *os.File
}

var addressIn = regexp.MustCompile(`127\.0\.0\.1:[1-9]\d*\b`)

// Start runs the binary on a data folder and waits until it answers. env are further
// settings, NAME=value.
func Start(binary, dir string, env ...string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "host.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	s := &Server{cmd: exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--data", dir), log: log}
	s.cmd.Env = append(append(os.Environ(), "FERMATA_BOOTSTRAP_KEY="+apiKey), env...)
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	begun := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s.PID = s.cmd.Process.Pid
	if err := s.listen(out); err != nil {
		s.cmd.Process.Kill() //nolint:errcheck // it may have ended
		return nil, errors.Join(err, s.Stop())
	}
	s.Up = time.Since(begun)
	return s, nil
}

// listen finds the address in what the host prints and asks for its discovery
// document.
func (s *Server) listen(out io.Reader) error {
	in := bufio.NewReader(out)
	for s.Addr == "" {
		line, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the host did not say where it listens; see %s: %w", s.log.Name(), err)
		}
		s.Addr = addressIn.FindString(line)
	}
	go io.Copy(io.Discard, in) //nolint:errcheck // so that it never waits to be read
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Microsecond) {
		res, err := http.Get("http://" + s.Addr + "/.well-known/openwop")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the host does not answer: %v", err)
		}
	}
}

// Stop asks the process to end and waits for it, for a while.
func (s *Server) Stop() error {
	defer s.log.Close()
	s.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	late := time.AfterFunc(time.Minute, func() { s.cmd.Process.Kill() })
	defer late.Stop()
	return s.cmd.Wait()
}

package cli

import (
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/fermata-run/fermata/internal/config"
	"github.com/fermata-run/fermata/internal/telemetry"
)

// logger makes the logger of a configuration.
func (a *app) logger(cfg config.Config, w io.Writer) (*slog.Logger, error) {
	return telemetry.New(w, telemetry.Options{
		Level: cfg.LogLevel, Format: cfg.LogFormat,
		Terminal: a.isTerminal(a.env.Stderr), Colour: a.colours(a.env.Stderr),
	})
}

// relay passes log lines to whoever draws on the terminal, so that they do not
// tear his picture, and writes them itself while nobody does.
type relay struct {
	out   io.Writer
	lines chan string

	mu   sync.Mutex
	done chan struct{} // closed when the reader leaves; nil while there is none
}

func newRelay(out io.Writer) *relay { return &relay{out: out, lines: make(chan string)} }

// attach lets somebody read lines until he calls the function it returns.
func (r *relay) attach() (detach func()) {
	done := make(chan struct{})
	r.mu.Lock()
	r.done = done
	r.mu.Unlock()
	return func() {
		r.mu.Lock()
		r.done = nil
		r.mu.Unlock()
		close(done)
	}
}

// Write implements io.Writer. A logger writes one line at a time.
func (r *relay) Write(b []byte) (int, error) {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done != nil {
		select {
		case r.lines <- strings.TrimRight(string(b), "\n"):
			return len(b), nil
		case <-done:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

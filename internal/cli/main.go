package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fermata-run/fermata/internal/flow"
)

// Env is the world a command line runs in.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string

	// Environ lists the environment as name=value; nil asks the system if Getenv
	// is nil too, else it is empty.
	Environ func() []string

	Version  string
	Migrator Migrator // for migrate; nil if this program knows no shared database
	Keeper   Keeper   // for backup, restore, copy and doctor; nil if this program carries no host
	OpenHost Open     // for serve and run; nil if this program carries no host
	// NewMasterKey makes the text of a master key; nil if this program carries no host.
	NewMasterKey func() string
	Catalog      flow.Catalog // for checking workflows without a host; nil for none

	// Terminal tells whether a stream is a terminal, and how large it is; nil
	// asks the system.
	Terminal func(stream any) (Size, bool)

	// Signals delivers the requests to end; nil means interrupt and SIGTERM. The
	// second of them calls Exit, which is os.Exit unless it is set.
	Signals <-chan os.Signal
	Exit    func(code int)
}

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1 // the command, the run or the check failed
	ExitUsage       = 2 // the command line or the configuration is wrong
	ExitUnreachable = 3 // no host answers
	ExitDenied      = 4 // the host does not let this caller do it
	exitTwice       = 130
)

// Main runs one command line, without the program's name, and returns its exit
// code.
func Main(ctx context.Context, args []string, env Env) int {
	a := newApp(env)
	ctx, stop := a.interruptible(ctx)
	defer stop()
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean the process's own
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if !a.ran && !errors.As(err, new(usageError)) {
		err = usageError{err} // the tree could not make sense of the arguments
	}
	return a.fail(err)
}

// errInterrupted is why a context ended when somebody pressed Ctrl-C.
var errInterrupted = errors.New("interrupted")

// interruptible makes the first request to end cancel the context, so that the
// command can end in order, and the second end the process at once.
func (a *app) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	in := a.env.Signals
	stop := func() {}
	if in == nil {
		c := make(chan os.Signal, 2)
		signal.Notify(c, os.Interrupt, syscall.SIGTERM)
		in, stop = c, func() { signal.Stop(c) }
	}
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-in:
			}
			if n > 0 {
				if a.isTerminal(a.env.Stderr) {
					io.WriteString(a.env.Stderr, showCursor) //nolint:errcheck // it ends either way
				}
				a.env.Exit(exitTwice)
			}
			cancel(errInterrupted)
		}
	}()
	return ctx, func() {
		close(done)
		stop()
		cancel(nil)
	}
}

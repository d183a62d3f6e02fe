package kill

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fermata-run/fermata"
)

const key = "kill-key-kill-key-kill-key-kill-key-kill"

// masterKey seals what hosts keep; those that share a database need one.
var masterKey = fermata.NewMasterKey()

// patience bounds every wait for something that must happen. It is no
// measurement: a wait that reaches it has failed.
const patience = 2 * time.Minute

// process is one life of the host.
type process struct {
	cmd   *exec.Cmd
	out   *output
	ended chan struct{} // closed once it is over and waited for
	err   error         // of Wait, then
}

// launch starts the host and returns at once; it may not be listening yet.
func launch(binary, dir string, flags ...string) (*process, error) {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", dir}, flags...)
	p := &process{cmd: exec.Command(binary, args...), out: newOutput(), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "FERMATA_BOOTSTRAP_KEY="+key, "FERMATA_MASTER_KEY="+masterKey, "HOME="+dir)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// address waits until the process has said where it listens.
func (p *process) address() (string, error) {
	select {
	case <-p.out.said:
		return p.out.addr, nil
	case <-p.ended:
		return "", fmt.Errorf("the host ended: %v\n%s", p.err, p.out.tail())
	case <-time.After(patience):
		return "", fmt.Errorf("the host does not listen\n%s", p.out.tail())
	}
}

// kill ends the process without a word, and waits until it is gone.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// terminate asks the process to end, and waits until it has.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("the host did not end on SIGTERM\n%s", p.out.tail())
	}
}

// output keeps the end of what a process writes, and finds its address in it.
type output struct {
	said chan struct{} // closed once addr is set
	addr string

	mu   sync.Mutex
	text []byte
}

func newOutput() *output { return &output{said: make(chan struct{})} }

var addressIn = regexp.MustCompile(`127\.0\.0\.1:[1-9]\d*\b`)

// keepOutput is how much of a process's output is kept for a failure's sake.
const keepOutput = 64 << 10

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	if o.addr == "" {
		// Only whole lines: the last one may break off within the port.
		whole := o.text[:bytes.LastIndexByte(o.text, '\n')+1]
		if at := addressIn.Find(whole); at != nil {
			o.addr = string(at)
			close(o.said)
		}
	}
	if over := len(o.text) - keepOutput; over > 0 && o.addr != "" {
		o.text = append(o.text[:0], o.text[over:]...)
	}
	return len(b), nil
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// complaints are the lines in which the host reports a fault of its own. That
// it refuses work while it stops is none.
func (o *output) complaints() []string {
	var out []string
	for line := range strings.Lines(o.tail()) {
		fault := strings.Contains(line, "level=ERROR") || strings.Contains(line, `"level":"ERROR"`) ||
			strings.HasPrefix(line, "panic") || strings.Contains(line, "DATA RACE")
		if fault && !strings.Contains(line, "service_unavailable") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

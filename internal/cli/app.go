package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fermata-run/fermata/internal/redact"
	"golang.org/x/term"
)

// app is one invocation: the world around it and what its commands share.
type app struct {
	env   Env
	ran   bool // a command was found and begun
	lines *lineReader

	// secrets knows what this invocation was given that nothing it prints may hold.
	secrets *redact.Redactor
}

func newApp(env Env) *app {
	if env.Stdin == nil {
		env.Stdin = strings.NewReader("")
	}
	if env.Stdout == nil {
		env.Stdout = io.Discard
	}
	if env.Stderr == nil {
		env.Stderr = io.Discard
	}
	if env.Getenv == nil {
		env.Getenv = os.Getenv
		if env.Environ == nil {
			env.Environ = os.Environ
		}
	}
	if env.Terminal == nil {
		env.Terminal = terminal
	}
	if env.Exit == nil {
		env.Exit = os.Exit
	}
	if env.Version == "" {
		env.Version = "unknown"
	}
	a := &app{env: env, lines: &lineReader{in: env.Stdin}, secrets: redact.New()}
	for _, name := range []string{"FERMATA_API_KEY", "FERMATA_MASTER_KEY", "FERMATA_BOOTSTRAP_KEY"} {
		a.secrets.Know("", name, env.Getenv(name))
	}
	return a
}

// Size is the extent of a terminal in characters.
type Size struct{ Width, Height int }

// terminal asks the system about a stream.
func terminal(stream any) (Size, bool) {
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Size{}, false
	}
	if f != os.Stdin && !prepareTerminal(f) {
		return Size{}, false
	}
	w, h, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 || h <= 0 {
		w, h = 80, 24
	}
	return Size{w, h}, true
}

// isTerminal reports whether a stream is a terminal that can be drawn on.
func (a *app) isTerminal(stream any) bool {
	_, ok := a.env.Terminal(stream)
	return ok && a.env.Getenv("TERM") != "dumb"
}

// colours reports whether a stream shows colours and nobody minds them.
func (a *app) colours(stream any) bool {
	return a.isTerminal(stream) && a.env.Getenv("NO_COLOR") == ""
}

// say prints a line on the standard output.
func (a *app) say(format string, args ...any) {
	io.WriteString(a.env.Stdout, a.secrets.Known("", fmt.Sprintf(format, args...))+"\n") //nolint:errcheck // there is nobody to tell
}

// note prints a line for the person at the keyboard, beside the output proper.
func (a *app) note(format string, args ...any) {
	io.WriteString(a.env.Stderr, a.secrets.Known("", fmt.Sprintf(format, args...))+"\n") //nolint:errcheck // there is nobody to tell
}

// document prints one JSON document, indented, with its numbers as they are.
func (a *app) document(raw json.RawMessage) error {
	b, err := indent(raw)
	if err != nil {
		return err
	}
	b = a.secrets.KnownJSON("", b)
	if a.isTerminal(a.env.Stdout) {
		b = maskControls(b)
	}
	_, err = a.env.Stdout.Write(append(b, '\n'))
	return err
}

// value prints anything as one JSON document.
func (a *app) value(v any) error {
	b, err := marshal(v)
	if err != nil {
		return err
	}
	return a.document(b)
}

func indent(raw json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return nil, fmt.Errorf("what came is not JSON: %w", err)
	}
	return b.Bytes(), nil
}

// marshal encodes without touching the text inside payloads.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
